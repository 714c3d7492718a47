"""Every deep method as a scikit-learn classifier: `vt.ValenClassifier`, `vt.methods.RCClassifier`, ..."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from valen_tf import checks, methods
from valen_tf.checks import require
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.readers import read_label_lists
from valen_tf.model.estimator import covering_rate_scorer, label_lists

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike

_NETWORKS = ("linear", "mlp", "resnet32")
_OPTIMIZERS = ("sgd", "adam")
_OWN = {
    "network": "mlp",
    "hidden_layer_sizes": (128, 64),
    "network_weight_decay": 1e-4,
    "epochs": 60,
    "batch_size": 100,
    "optimizer": None,
    "learning_rate": None,
    "verbose": 0,
    "random_state": 0,
}


class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier that trains a network by a deep method.

    `estimator_of` makes the class of a method. Its parameters are those here and the settings of the
    method. The features need no scaling: the network learns their scale in `fit`.

    Args:
        network: `"mlp"`, `"linear"`, `"resnet32"`, or a function of `(feature_shape, num_classes)` that
            gives a Keras model of logits.
        hidden_layer_sizes: Widths of the MLP's hidden layers.
        network_weight_decay: Strength of the L2 penalty of the named networks.
        epochs: Passes over the training data.
        batch_size: Examples in a batch.
        optimizer: `"sgd"` (with momentum 0.9) or `"adam"`; by default that of the method's literature.
        learning_rate: The optimizer's rate; by default that of the method's literature.
        verbose: As in Keras.
        random_state: Seed, or a `numpy.random.RandomState`, or `None` for another one in every `fit`.
        **settings: Those of the method.

    Attributes:
        classes_: The class of each column: its number, or the label that stood for it in `fit`.
        label_distributions_: What was recovered for each training example [examples, classes].
        model_: The Keras model of the method.
        n_features_in_: Number of features of an example.
        history_: Keras's history of the training, a dict.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> import valen_tf as vt
        >>> X, y = load_iris(return_X_y=True)
        >>> model = vt.methods.ProdenClassifier(epochs=20, learning_rate=0.1).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
    """

    method = None  # name of the method

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NetworkClassifier:
        """Learns from candidate sets.

        Args:
            X: Features [examples, ...], a pandas frame of numbers, or a `PartialLabelDataset`.
            y: Candidate sets as a 0/1 matrix [examples, classes] (of a pandas frame the columns name the
                classes), as a list of labels for each example, or true labels [examples].
            sample_weight: A weight for each example, or none.

        Returns:
            The estimator itself.
        """
        import keras

        checks.COUNT("epochs", self.epochs)
        checks.COUNT("batch_size", self.batch_size)
        dataset, classes = self._data(X, y)
        kind = methods.find(self.method)
        seed = self._seed()
        settings = {name: getattr(self, name) for name in _settings(kind)}
        model = kind(self._network(dataset, seed), seed=seed, **settings)
        model.compile(self._optimizer(kind, keras))
        model.fit(
            dataset,
            batch_size=self.batch_size,
            epochs=self.epochs,
            sample_weight=_weights(sample_weight),
            verbose=self.verbose,
        )
        self.model_, self.classes_, self.history_ = model, classes, model.history.history
        self.label_distributions_ = model.label_distributions()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities [examples, classes]."""
        check_is_fitted(self)
        if isinstance(X, PartialLabelDataset):
            X = X.features
        X = validate_data(self, X, reset=False, allow_nd=True, dtype=np.float32)
        return self.model_.predict(X, batch_size=1000, verbose=0)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class [examples], one of `classes_`."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Share of predictions that are right, or, where `y` holds candidate sets, inside them."""
        if sample_weight is not None:
            return super().score(X, y, sample_weight)
        return covering_rate_scorer(self, X, y)

    # -- what `fit` is made of --------------------------------------------------------------------

    def _data(self, X, y):
        if isinstance(X, PartialLabelDataset):
            rule = "`y` must not be given with a `PartialLabelDataset`, which has its own candidate sets"
            require(y is None, rule, f"{type(y)}")
            self.n_features_in_ = X.features.shape[1]
            names = X.class_names
            return X, np.arange(X.num_classes) if names is None else np.array(names)
        X = validate_data(self, X, allow_nd=True, dtype=np.float64)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: candidate sets "
                "or true labels"
            )
        candidates, classes = _candidates(y, len(X))
        return PartialLabelDataset(X, candidates), classes

    def _seed(self):
        if isinstance(self.random_state, (int, np.integer)):
            return checks.SEED("random_state", self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _network(self, dataset, seed):
        from valen_tf import networks

        if callable(self.network):
            return self.network(dataset.feature_shape, dataset.num_classes)
        checks.one_of(*_NETWORKS)("network", self.network)
        options = {"hidden_units": tuple(self.hidden_layer_sizes)} if self.network == "mlp" else {}
        return getattr(networks, self.network)(
            dataset.feature_shape,
            dataset.num_classes,
            weight_decay=self.network_weight_decay,
            seed=seed,
            **options,
        )

    def _optimizer(self, kind, keras):
        checks.optional(checks.one_of(*_OPTIMIZERS))("optimizer", self.optimizer)
        checks.optional(checks.POSITIVE)("learning_rate", self.learning_rate)
        if self.optimizer is None:
            optimizer = kind.default_optimizer()
        elif self.optimizer == "sgd":
            optimizer = keras.optimizers.SGD(1e-2, momentum=0.9)
        else:
            optimizer = keras.optimizers.Adam(1e-3)
        if self.learning_rate is not None:
            optimizer.learning_rate = self.learning_rate
        return optimizer


def estimator_of(method: type) -> type[NetworkClassifier]:
    """The scikit-learn class of a deep method.

    Args:
        method: Class of the method.
    """
    defaults = {**_settings(method), **_OWN}

    def __init__(self, **parameters):
        known = [name for name in parameters if name not in defaults]
        if known:
            raise TypeError(
                f"{type(self).__name__} takes {', '.join(defaults)}. Received: {known[0]!r}"
            )
        for name, default in defaults.items():
            setattr(self, name, parameters.get(name, default))

    kind = inspect.Parameter.KEYWORD_ONLY
    __init__.__signature__ = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(inspect.Parameter(name, kind, default=value) for name, value in defaults.items()),
        ]
    )
    first, _, _ = inspect.getdoc(method).partition("\n")
    words = inspect.getdoc(NetworkClassifier).partition("\n")[2]
    return type(
        f"{method.__name__}Classifier",
        (NetworkClassifier,),
        {
            "__init__": __init__,
            "__doc__": f"{first} As a scikit-learn classifier.\n{words}",
            "__module__": "valen_tf.methods",  # where pickle finds it
            "method": method.card.name,
        },
    )


def _settings(method):
    """The settings of a method and their defaults."""
    parameters = inspect.signature(method.__init__).parameters
    own = ("self", "classifier", "seed", "name")
    return {name: each.default for name, each in parameters.items() if name not in own}


def _weights(sample_weight):
    return None if sample_weight is None else np.asarray(sample_weight, np.float64)


def _candidates(y, num_examples):
    """Candidate sets [examples, classes] and the class of each column."""
    checks.refuse_masked("y", y)
    rows = label_lists(y)
    if rows is not None:
        require(len(rows) == num_examples, _LENGTHS, f"{num_examples} and {len(rows)} examples")
        fields = read_label_lists(np.zeros((len(rows), 1)), rows)
        candidates, names = fields["candidates"], fields["class_names"]
        return candidates, np.arange(candidates.shape[1]) if names is None else np.array(names)
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        require(len(values) == num_examples, _LENGTHS, f"{num_examples} and {len(values)} examples")
        columns = getattr(y, "columns", None)
        return values, np.arange(values.shape[1]) if columns is None else np.asarray(columns)
    labels = column_or_1d(y, warn=True)
    require(len(labels) == num_examples, _LENGTHS, f"{num_examples} and {len(labels)} examples")
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, columns = np.unique(labels, return_inverse=True)
    return np.eye(len(classes), dtype=np.uint8)[columns], classes


_LENGTHS = "`X` and `y` must be of the same length"
