"""The model of a run, from its config: built, trained, opened again."""

from __future__ import annotations

import contextlib
import inspect
import json
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import require
from valen_tf.data.files import broken, read_arrays
from valen_tf.methods import enhances_labels, find, is_classical

if TYPE_CHECKING:
    from collections.abc import Sequence

    import keras
    import sklearn.pipeline
    from numpy.typing import ArrayLike

    from valen_tf.data.dataset import PartialLabelDataset
    from valen_tf.model.base import PartialLabelModel
    from valen_tf.runs.config import Config

_ANEW = "delete {path}; the `valen-tf train` of this run makes it anew."


def fit(
    config: Config,
    train_part: PartialLabelDataset,
    test: PartialLabelDataset,
    state: pathlib.Path | str,
    *,
    method: str | None = None,
    held_out: PartialLabelDataset | None = None,
    sparse: bool = False,
    further: Sequence[keras.callbacks.Callback] = (),
) -> tuple[PartialLabelModel | Estimator, dict]:
    """Trains the model of a config.

    Args:
        config: A `Config`.
        train_part: `PartialLabelDataset` to train on.
        test: `PartialLabelDataset` to follow the accuracy on, after every epoch.
        state: File that keeps the training state, so that a killed run continues.
        method: Method to train instead of the config's.
        held_out: Candidate sets for label-free scores after every epoch, or none. The accuracy on
            the test part is then logged as `"test_accuracy"`.
        sparse: Whether to save the state and to evaluate only now and then, and in each of the last
            ten epochs: on a small data set both take longer than the training.
        further: Further callbacks.

    Returns:
        `(model, history)`; the history of a classical method is empty.
    """
    method = method or config.method
    if is_classical(method):
        return Estimator.of(config, method).fit(train_part), {}
    from valen_tf import callbacks

    training = config.training
    watched = [] if held_out is None else [callbacks.HeldOutScores(held_out, test)]
    model = build(config, train_part, method)
    history = model.fit(
        train_part.batches(training.batch_size, seed=config.seed),
        epochs=training.epochs,
        validation_data=test.batches(1000, shuffle=False) if held_out is None else None,
        validation_freq=sparse_epochs(training.epochs) if sparse else 1,
        callbacks=[
            *schedule(config, method),
            *watched,
            *further,
            callbacks.Resume(state, every=max(1, training.epochs // 25) if sparse else 1),
        ],
        verbose=0,
    )
    return model, history.history


def build(
    config: Config,
    train_part: PartialLabelDataset,
    method: str | None = None,
    *,
    network: keras.Model | None = None,
    metrics: Sequence = ("accuracy",),
) -> keras.Model:
    """The compiled model of a config; also under another method, network or metrics."""
    import keras

    import valen_tf as vt

    options = {
        "moments": train_part.moments(),
        "weight_decay": config.network.weight_decay,
        "seed": config.seed,
    }
    if config.network.name == "mlp":
        options["hidden_units"] = config.network.hidden_units
        options["batch_normalization"] = config.network.batch_normalization
    if config.network.name == "backbone":
        options["weights"] = config.network.weights
        options |= {"kind": config.network.backbone} if config.network.backbone else {}
    if network is None:
        with _dtype_policy(config.network.dtype_policy):
            network = getattr(vt.networks, config.network.name)(
                train_part.feature_shape, train_part.num_classes, **options
            )
    training, method = config.training, method or config.method
    kind = find(method)
    if training.optimizer == "adam":
        optimizer = keras.optimizers.Adam(training.learning_rate)
    else:
        optimizer = keras.optimizers.SGD(training.learning_rate, momentum=training.momentum)
    settings = config.settings if method == config.method else {}
    model = kind(network, seed=config.seed, **settings)
    further = {}
    if enhances_labels(method):
        further["cooldown"] = _cooldown(config)
    if getattr(kind, "default_enhancement_optimizer", None):
        rate = training.enhancement_learning_rate
        further["enhancement_optimizer"] = kind.default_enhancement_optimizer(rate)
    # An epoch in one call: on a small network Python takes longer than the arithmetic.
    steps = -(-len(train_part) // training.batch_size)
    model.compile(optimizer, metrics=list(metrics), steps_per_execution=steps, **further)
    return model


@contextlib.contextmanager
def _dtype_policy(name):
    """Lets layers be made under a dtype policy of Keras, where one is named."""
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name or before)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def schedule(config: Config, method: str | None = None) -> list[keras.callbacks.Callback]:
    """The callbacks that a config's schedule asks for."""
    from valen_tf import callbacks

    training = config.training
    if not enhances_labels(method or config.method):
        # An ablation has the schedule of the method that it is compared with.
        return [callbacks.Cooldown(_cooldown(config))]
    return [
        callbacks.WarmUp(training.warm_up_epochs),
        callbacks.GraphRebuild(training.rebuild_every),
    ]


def _cooldown(config):
    own = getattr(find(config.method), "default_cooldown", 0.0)
    return own if config.training.cooldown is None else config.training.cooldown


class Estimator:
    """A classical method with a model's face: it predicts probabilities, and is saved."""

    suffix = ".npz"

    def __init__(self, pipeline: sklearn.pipeline.Pipeline) -> None:
        self.pipeline = pipeline

    @classmethod
    def of(cls, config: Config, method: str) -> Estimator:
        """The estimator of a config, behind a scaler that is fitted on the training part."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        kind = find(method)
        settings = config.settings if method == config.method else {}
        seed = {"seed": config.seed} if "seed" in inspect.signature(kind).parameters else {}
        return cls(make_pipeline(StandardScaler(), kind(**{**seed, **settings})))

    def fit(self, train_part: PartialLabelDataset) -> Estimator:
        """Learns from candidate sets."""
        self.pipeline.fit(_flat(train_part.features), train_part.candidates)
        return self

    def predict(
        self, features: ArrayLike | PartialLabelDataset, verbose: int | str = 0
    ) -> np.ndarray:
        """Probabilities, or for a method that has none the softmax of its scores."""
        import scipy.special

        features = _flat(getattr(features, "features", features))
        if hasattr(self.pipeline[-1], "predict_proba"):
            return self.pipeline.predict_proba(features)
        return scipy.special.softmax(self.pipeline.decision_function(features), axis=1)

    def label_distributions(self) -> np.ndarray | None:
        """What was recovered for the training examples, or none."""
        return getattr(self.pipeline[-1], "label_distributions_", None)

    def save(self, path: pathlib.Path | str) -> None:
        """Writes the scaler and the fitted estimator as arrays: to read them executes nothing."""
        scaler, estimator = self.pipeline[0], self.pipeline[-1]
        settings = estimator.get_params()
        state = {key: value for key, value in vars(estimator).items() if key not in settings}
        np.savez(
            path,
            allow_pickle=False,
            method=estimator.card.name,
            settings=json.dumps(settings),
            scaler=np.stack([scaler.mean_, scaler.scale_, scaler.var_]),
            examples=scaler.n_samples_seen_,
            **{f"state_{key}": value for key, value in state.items()},
        )

    @classmethod
    def load(cls, path: pathlib.Path | str) -> Estimator:
        """Reads what `save` wrote."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        keys = ("method", "settings", "scaler", "examples")
        values = read_arrays(pathlib.Path(path), _ANEW.format(path=path), keys)
        try:
            estimator = find(str(values["method"]))(**json.loads(str(values["settings"])))
            scaler = StandardScaler()
            scaler.mean_, scaler.scale_, scaler.var_ = values["scaler"]
            scaler.n_samples_seen_ = values["examples"].item()
            scaler.n_features_in_ = len(scaler.mean_)
            _set_state(estimator, values)
        except (KeyError, TypeError, ValueError) as error:
            raise broken(path, _ANEW.format(path=path), error) from error
        return cls(make_pipeline(scaler, estimator))


def _set_state(estimator, values):
    """Sets what was learned; a file that would take the place of methods of the class is refused."""
    for key, value in values.items():
        if key.startswith("state_"):
            name = key.removeprefix("state_")
            require(not hasattr(type(estimator), name), "A state must be what was learned", name)
            setattr(estimator, name, value.item() if value.ndim == 0 else value)


def has_model(folder: pathlib.Path | str) -> bool:
    """Whether a run left a model in its folder."""
    return any((folder / f"model{ending}").exists() for ending in (".keras", ".npz"))


def open_model(folder: pathlib.Path | str) -> PartialLabelModel | Estimator:
    """The model that a finished run left in its folder."""
    import valen_tf as vt

    folder = pathlib.Path(folder)
    path = folder / "model.keras"
    if path.exists():
        try:
            return vt.load_model(path)
        # Keras has an error of another kind for every way in which a file can be wrong.
        except Exception as error:
            raise broken(path, _ANEW.format(path=path), error) from error
    if (folder / "model.npz").exists():
        return Estimator.load(folder / "model.npz")
    raise FileNotFoundError(
        f"{folder} is not a finished run: there is no model in it. Run `valen-tf train` first."
    )


def sparse_epochs(epochs: int) -> list[int]:
    """Every tenth epoch, and the last ten: those whose accuracy is taken where every one would be dear."""
    return [epoch for epoch in range(1, epochs + 1) if epoch % 10 == 0 or epoch > epochs - 10]


def _flat(features):
    return np.asarray(features, np.float64).reshape(len(features), -1)
