"""What all deep methods share: the training step, Keras's calls on candidate sets, the memory."""

from __future__ import annotations

import functools
import inspect
import json
import zlib
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from valen_tf import checks, export, losses
from valen_tf.callbacks import Cooldown, with_defaults
from valen_tf.data import batches, inputs
from valen_tf.data import coverage as covering
from valen_tf.data.dataset import PartialLabelDataset, as_dataset, as_learned, preparation_of
from valen_tf.data.preparation import Preparation
from valen_tf.graph import neighbors
from valen_tf.model import memory, replicas, weighting
from valen_tf.model.front import front_of, named
from valen_tf.model.keras_hooks import (
    KerasHooks,
    check_classifier,
    in_a_graph,
    learn_scale,
    warn_of_unscaled,
    with_progress,
)

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence
    from typing import Any

    import pandas
    from numpy.typing import ArrayLike

    from valen_tf.data.batches import Batches
    from valen_tf.reports.uncertainty import Calibration

_PAPERS_OPTIMIZER = (
    "SGD",
    {"learning_rate": 1e-2, "momentum": 0.9},
)  # of all methods in its tables


class PartialLabelModel(KerasHooks):
    """A classifier trained from candidate sets; a method is a subclass with one `objective`.

    A batch is `(features, {"candidates": [batch, classes], "index": [batch]})`, as
    `PartialLabelDataset.batches` gives it. The index says which training example a row is, because
    the methods remember something about each example. A true label is a candidate set of size
    one, so training, validation and test data share one form, one loss and one set of metrics: metrics
    see the prediction restricted to the candidate set as `y_true`, which makes `"accuracy"` the accuracy
    where the label is known and otherwise the share of predictions inside the candidate set.

    Args:
        classifier: A built Keras model from features to logits [batch, classes].
        coverage: How probable it is that a candidate set holds the true label, above 0 and up to 1; or
            `"estimate"`, by the sets of similar examples (`valen_tf.data.coverage`). Below 1 a label
            outside of the set is possible. People's answers need no coverage.
        seed: Seed of everything random in training.
        name: Name of the model.
    """

    # Terms of the objective, each a metric of its own.
    term_names = ("classification",)
    # What the rest of the package knows of a method; `methods.register` sets it.
    card = None
    # Whether the method can weigh the labels by people's answers; else it sees candidate sets alone.
    weighs_answers = True
    # What arguments of the constructor must be, by name; see `valen_tf.checks`.
    rules = checks.rules(seed=checks.SEED, coverage=checks.coverage)
    # Whether XLA has a kernel for every operation of the step.
    runs_on_xla = True
    # Whether only the classifier learns yet, of a method that has further networks.
    warming_up = False

    def __init__(
        self,
        classifier: keras.Model,
        *,
        coverage: float | str = 1.0,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.classifier = in_a_graph(classifier)
        self.num_classes = check_classifier(self.classifier)
        self.coverage = checks.coverage("coverage", coverage)
        self.seed = checks.SEED("seed", seed)
        self.supports_jit = False  # `compile` says otherwise
        self.term_metrics = {term: keras.metrics.Mean(name=term) for term in self.term_names}
        self.memory = memory.Memory()
        self.memory.add("epochs_trained", (), np.int64)
        self.memory.add("fingerprint", (), np.int64)
        self.memory.add("candidates", (None, self.num_classes), np.bool_)
        self.memory.add("label_weights", (None, self.num_classes), np.float32)
        # How probable what is known of an example is under each label, where that is more than a set: by
        # people's answers, of which this is a checksum (0 where there are none), or by the sets' coverage.
        self.memory.add("evidence", (None, self.num_classes), np.float32)
        self.memory.add("answers", (), np.int64)
        # Whether the classifier judges annotators: 1 or -1, and 0 before that is known.
        self.memory.add("judges", (), np.int64)
        self.memory.add("coverage", (), np.float32)
        self._answers = self._gold = None
        # What made features of the training data's columns, a `Preparation`, or `None`.
        self.preparation = self._front = None
        self._training_data = None
        self._sample_weights = self._class_weights = None
        self.ambiguous = True  # whether candidate sets of the training data are more than labels
        self.evaluating = False
        self.built = True

    # -- what a method defines ------------------------------------------------------------------

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The terms whose sum is minimized, by name, each [batch]."""
        raise NotImplementedError

    def remember(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> None:
        """What is kept of a batch's examples after a step: by default the confidences in their labels."""
        self.write("label_weights", index, losses.confidence(logits, candidates))

    def start_memory(self, candidates: np.ndarray) -> None:
        """Starts anew on other training data, with these candidate sets [examples, classes]."""
        self.memory["candidates"].assign(candidates.astype(bool))
        uniform = candidates.astype(np.float32)
        uniform /= uniform.sum(axis=1, keepdims=True)
        self.memory["label_weights"].assign(uniform)
        self.memory["epochs_trained"].assign(0)

    def forget_features(self) -> None:
        """Called when the features are not those of the last `fit`."""

    @classmethod
    def default_optimizer(cls) -> keras.Optimizer:
        """The classifier's optimizer where `compile` names none: the one on the method's card."""
        name, arguments = (cls.card and cls.card.optimizer) or _PAPERS_OPTIMIZER
        return keras.optimizers.get({"class_name": name, "config": arguments})

    def trained_variables(self) -> list:
        """What `optimizer` updates."""
        return self.classifier.trainable_variables

    def training_callbacks(self) -> list[keras.callbacks.Callback]:
        """Callbacks that the method needs; one that the user passes replaces that of the same class."""
        return []

    # -- the training step ----------------------------------------------------------------------

    def train_step(self, data: tuple) -> dict:
        """One step on a batch `(features, {"candidates": ..., "index": ...})`."""
        features, targets, weights = keras.utils.unpack_x_y_sample_weight(data)
        self.check_targets(targets)
        candidates, index = targets["candidates"], targets["index"]
        rows, parts = tf.shape(index)[0], 1
        if tf.distribute.has_strategy():  # the batch is that of all replicas together
            rows, parts = replicas.size_of_batch(index)
        # What is known of the labels: which are candidates, or how far there is evidence for each.
        known = self.read("evidence", index) if self.has_evidence else candidates
        with tf.GradientTape() as tape:
            logits = self.logits(features, training=True)
            terms = self.objective(features, logits, known, index)
            self.check_terms(terms, index.shape[0])
            weights = self.weights_of(index, weights)
            if weights is not None:
                terms = {name: weights * term for name, term in terms.items()}
            # The replicas' gradients are added: each one's loss is its part of the batch's mean.
            size = tf.cast(rows, logits.dtype)
            loss = tf.add_n([tf.reduce_sum(term) / size for term in terms.values()])
            penalty = tf.add_n(self.losses) / parts if self.losses else 0.0
            total = loss + penalty
            scaled = self.optimizer.scale_loss(total)  # of the policy mixed_float16
        self.update(tape, scaled)
        self.remember(features, logits, known, index)
        self.report(logits, known, parts * total, size / parts)
        for name, term in terms.items():
            self.term_metrics[name].update_state(term)
        probabilities = tf.nn.softmax(logits)
        inside = losses.restrict(probabilities, candidates)
        return self.compute_metrics(features, inside, probabilities)

    def check_targets(self, targets: Any) -> None:
        """Refuses targets of a training step without candidate sets or index."""
        if not (isinstance(targets, dict) and {"candidates", "index"} <= set(targets)):
            raise ValueError(
                "A training step takes batches (features, {'candidates': ..., 'index': ...}), as "
                "`model.meet(train)` and `train.batches(...)` give them; the index says which training "
                f"example a row is. Received: targets of {type(targets).__name__}"
            )

    def weights_of(self, index: tf.Tensor, given: tf.Tensor | None = None) -> tf.Tensor | None:
        """The weights of a batch's examples [batch], by `sample_weight` and `class_weight`, or none."""
        factors = [] if given is None else [tf.cast(given, tf.float32)]
        if self._sample_weights is not None:
            factors.append(tf.gather(self._sample_weights, index))
        if self._class_weights is not None:
            # The true class is not known: that of every class by what is believed of the label.
            believed = self.read("label_weights", index)
            factors.append(tf.linalg.matvec(believed, self._class_weights))
        return functools.reduce(tf.multiply, factors) if factors else None

    @property
    def terms_in_use(self) -> Sequence[str]:
        """Names of the terms that are minimized now."""
        return self.term_names

    def report(
        self,
        logits: tf.Tensor,
        candidates: tf.Tensor,
        objective: tf.Tensor,
        size: tf.Tensor | float,
    ) -> None:
        """Adds a batch to the loss that is logged: here that which is minimized, penalties included.

        Args:
            logits: [batch, classes].
            candidates: What is known of the labels [batch, classes].
            objective: What was minimized, a mean over the batch.
            size: Number of examples that the mean stands for.
        """
        self.loss_metric.update_state(objective, sample_weight=size)

    def logits(self, features: tf.Tensor, training: bool = False) -> tf.Tensor:
        """The classifier's output in float32, whatever it computes in [batch, classes]."""
        if training and tf.distribute.has_strategy():
            return tf.cast(replicas.forward(self.classifier, features), tf.float32)
        return tf.cast(self.classifier(features, training=training), tf.float32)

    def update(self, tape: tf.GradientTape, loss: tf.Tensor) -> None:
        """Each optimizer updates its variables; while the model warms up, only the classifier's."""
        if self.warming_up:
            variables = self.classifier.trainable_variables
            self.optimizer.apply(tape.gradient(loss, variables), variables)
            return
        gradients = tape.gradient(loss, [update.variables for update in self.updates])
        # Keras's loss scaling is the classifier's: further networks compute in float32.
        scale = self.optimizer.scale_loss(1.0)
        for update, group in zip(self.updates, gradients, strict=True):
            if update.optimizer is not self.optimizer:
                group = [gradient / scale for gradient in group]
            update.optimizer.apply(group, update.variables)

    def check_terms(self, terms: dict[str, tf.Tensor], batch: int | None = None) -> None:
        """Refuses what `objective` gave, unless it has the form that the step relies on.

        Args:
            terms: What `objective` gave.
            batch: Number of examples in the batch, where the trace knows it.
        """
        method = type(self).__name__
        if not isinstance(terms, dict) or not terms:
            raise TypeError(
                f"`objective` of {method} must return a dict of terms. Received: {type(terms)}"
            )
        for name, term in terms.items():
            if name not in self.term_metrics:
                raise ValueError(
                    f"`objective` of {method} must return terms that its `term_names` declares, which are "
                    f"{', '.join(self.term_names)}. Received: {name!r}"
                )
            if term.shape.rank != 1 or (term.shape[0] == 1 and batch != 1):
                raise ValueError(
                    f"`objective` of {method} must give every term one value per example, shape (batch,). "
                    f"Received: {name!r} of shape {term.shape}"
                )

    def test_step(self, data: tuple) -> dict:
        """Cross-entropy against the prediction restricted to the candidates, and the metrics."""
        features, targets, _ = keras.utils.unpack_x_y_sample_weight(data)
        targets = batches.as_targets(targets, self.num_classes)
        several = tf.reduce_sum(tf.cast(targets["candidates"] > 0, tf.float32), axis=-1) > 1
        self.set_metric.update_state(tf.cast(several, tf.float32))
        logits = self.logits(features)
        probabilities = tf.nn.softmax(logits)
        confidence = losses.confidence(logits, targets["candidates"])
        self.loss_metric.update_state(losses.weighted_cross_entropy(logits, confidence))
        inside = losses.restrict(probabilities, targets["candidates"])
        results = self.compute_metrics(features, inside, probabilities)
        of_training = {*self.term_metrics, "objective"}
        return {name: value for name, value in results.items() if name not in of_training}

    def call(self, features: Any, training: bool = False) -> tf.Tensor:
        """Class probabilities, from the classifier alone, of features, or of a dict of columns."""
        front = self.front
        if isinstance(features, dict) and front is not None:
            features = front(named(front.inputs, features))
        return tf.nn.softmax(self.logits(features, training=training))

    @property
    def front(self) -> Any:
        """The `Front` that takes the columns which the model learned from, or `None`."""
        if self.preparation is None:
            return None
        if self._front is None or self._front.preparation is not self.preparation:
            self._front = front_of(self.preparation)
        return self._front

    # -- the memory of the training examples ----------------------------------------------------

    def read(self, name: str, index: tf.Tensor) -> tf.Tensor:
        """A batch's rows of what is remembered [batch, ...]."""
        return tf.gather(self.memory.tables[name], index)

    def write(self, name: str, index: tf.Tensor, values: tf.Tensor) -> None:
        """Replaces a batch's rows of what is remembered, in every replica's copy."""
        if tf.distribute.has_strategy():
            index, values = replicas.whole_batch(index, values)
        self.memory.tables[name].scatter_update(tf.IndexedSlices(values, index))

    def label_distributions(self) -> np.ndarray:
        """The distribution that was recovered for each training example, zero off the candidates.

        With people's answers, and with sets that may miss the truth, no label is impossible.

        Returns:
            [examples, classes].
        """
        if not self.num_examples:
            raise ValueError("`label_distributions` needs a trained model: call `fit` first.")
        return self.memory["label_weights"].numpy()

    @property
    def epochs_trained(self) -> int:
        """Number of epochs this model was trained for, over all calls of `fit`."""
        return int(self.memory["epochs_trained"].numpy())

    @property
    def num_examples(self) -> int:
        """Number of training examples the model remembers."""
        return int(tf.shape(self.memory["candidates"])[0])

    def meet(
        self,
        x: PartialLabelDataset | Batches | tf.data.Dataset | ArrayLike,
        y: ArrayLike | None = None,
        *,
        batch_size: int | None = None,
        shuffle: bool = True,
    ) -> Batches | tf.data.Dataset:
        """Makes the training data known, for a training loop of one's own; `fit` does so itself.

        A method remembers something of every training example. What is remembered of known data is kept.
        `train_on_batch` then takes batches of the data; methods with label enhancement also have
        `set_enhancing` and `rebuild_graph`.

        Args:
            x: As in `fit`.
            y: As in `fit`.
            batch_size: As in `fit`.
            shuffle: As in `fit`.

        Returns:
            The batches, to iterate over.
        """
        checks.optional(checks.COUNT)("batch_size", batch_size)
        first = not self.num_examples
        data = as_dataset(x, y, self.num_classes, len(self.classifier.inputs))
        if not hasattr(data, "element_spec"):
            data = data.batches(batch_size or 100, shuffle=shuffle, seed=self.seed)
        batches.check_element_spec(data, self.num_classes)
        with batches.refusals():
            known = batches.collect(data, self.num_classes)
        self.preparation = preparation_of(data)
        self._meet(data, *known)
        self._training_data = data
        if learn_scale(self, data):
            self.train_function = self.test_function = self.predict_function = None
        if first:
            warn_of_unscaled(self.classifier, data)
        return data

    def _meet(self, data, candidates, fingerprint):
        """Keeps what is remembered of known data, and starts anew on others."""
        self.ambiguous = bool((candidates.sum(axis=1) > 1).any())
        answers = batches.answers_of(data) if self.weighs_answers else None
        gold = batches.gold_of(data)
        before = self.has_evidence
        self._answers, self._gold = answers, gold
        checksum = 0 if answers is None else answers.checksum
        if gold is not None and self.has_evidence:
            checksum = zlib.crc32(gold.tobytes(), checksum) or 1
        known = self.memory["candidates"].numpy()
        same_answers = int(self.memory["answers"].numpy()) == checksum
        other = self.num_examples != len(candidates) or (known != candidates).any()
        if other or not same_answers:
            self.memory.clear("evidence")
            self.start_memory(candidates)
            self.memory["answers"].assign(checksum)
            self.memory["judges"].assign(0)
            if answers is not None:
                posterior, _ = answers.dawid_skene(gold=self._true_labels())
                self.start_from(posterior)
                self.weigh_answers()
            elif self.coverage != 1:
                self.weigh_sets(data)
                evidence = self.memory["evidence"].numpy()
                self.start_from(evidence / evidence.sum(axis=1, keepdims=True))
        if before != self.has_evidence:
            self.train_function = None  # the step reads another table
        if int(self.memory["fingerprint"].numpy()) != fingerprint:
            self.memory["fingerprint"].assign(fingerprint)
            self.forget_features()

    def start_from(self, probabilities: np.ndarray) -> None:
        """What is remembered of the labels [examples, classes] before anything is learned."""
        self.memory["label_weights"].assign(probabilities.astype(np.float32))

    def _true_labels(self):
        """The true labels of examples where they are known, and -1 elsewhere; `None` where none is."""
        if self._gold is None:
            return None
        labels = self.memory["candidates"].numpy().argmax(axis=1)
        return np.where(self._gold, labels, -1)

    @property
    def has_evidence(self) -> bool:
        """Whether more is known of the labels than which are candidates."""
        return self._answers is not None or self.coverage != 1

    def weigh_answers(self) -> None:
        """Judges the annotators by what is now believed of the labels, and their answers accordingly."""
        if self._answers is not None:
            believed = self.label_distributions()
            self.memory["evidence"].assign(self._answers.evidence(believed, self._true_labels()))

    def judge_annotators(self) -> None:
        """Judges the annotators anew, if the classifier knows more than they do.

        A classifier that knows less would take its errors for theirs, and would then believe them less and
        less. Who knows more is asked once: a classifier that goes on learns its training labels by heart.
        """
        if self._answers is None:
            return
        if not self.memory["judges"].numpy():
            predicted = np.zeros(self.num_examples, int)
            self.set_batch_order()
            for features, targets in self._training_data:
                logits = self.classifier(features, training=False).numpy()
                predicted[targets["index"].numpy()] = logits.argmax(axis=1)
            self.memory["judges"].assign(1 if self._answers.agree_with(predicted) else -1)
        if self.memory["judges"].numpy() > 0:
            self.weigh_answers()

    def weigh_sets(self, data: Batches | tf.data.Dataset) -> None:
        """Lets candidate sets be as much evidence as similar examples' sets make of them."""
        if self.num_examples < 3:
            raise ValueError(
                "`coverage` below 1 needs similar examples: at least 3 examples to train on. "
                f"Received: {self.num_examples}"
            )
        nearest, _ = neighbors.search(
            batches.projected_features(data, self.num_examples),
            min(covering.MOST_NEIGHBORS, self.num_examples - 1),
            seed=self.seed,
        )
        given = None if self.coverage == "estimate" else self.coverage
        candidates = self.memory["candidates"].numpy()
        coverage, evidence = covering.judge(candidates, nearest, given, self._gold)
        self.memory["coverage"].assign(coverage)
        self.memory["evidence"].assign(evidence)

    def leave_neighbors(self) -> None:
        """Halves what similar examples say, in logarithms, once the classifier has taken that in.

        The classifier may be the better judge, and the same opinion would count again in every step. Yet
        of sets alone, a network takes back in what it has just unlearned.
        """
        if self.has_evidence and self._answers is None:
            evidence = self.memory["evidence"].numpy()
            sets = self.memory["candidates"].numpy()
            sets = covering.likelihoods(sets, float(self.memory["coverage"].numpy()), self._gold)
            halved = np.sqrt(evidence * sets)
            self.memory["evidence"].assign(halved / halved.max(axis=1, keepdims=True))

    def annotators(self) -> pandas.DataFrame:
        """How good each annotator is, by what was recovered of the labels.

        Returns:
            A pandas frame, a row for each annotator: `answers`, how many examples they answered;
            `accuracy`, the probability that an answer of theirs is right.
        """
        if self._answers is None:
            raise ValueError(
                "`annotators` needs a model that was trained on people's answers: see "
                "`PartialLabelDataset.from_answers`. Received: a model without answers"
            )
        return self._answers.quality(self.label_distributions())

    @property
    def repeats_features(self) -> bool:
        """Whether the training data have the same features whenever they are read."""
        return (
            isinstance(self._training_data, batches.Batches) and not self._training_data.functions
        )

    def set_batch_order(self) -> None:
        """Makes the next pass over the training data that of the current epoch, also in a resumed run."""
        if isinstance(self._training_data, batches.Batches):  # other data order themselves
            self._training_data.epoch = self.epochs_trained

    # -- compile, fit, evaluate, predict --------------------------------------------------------

    def compile(
        self,
        optimizer: keras.Optimizer | str | None = None,
        *,
        metrics: Sequence | None = None,
        **kwargs: Any,
    ) -> None:
        """As Keras's, without a loss: the method brings its own.

        Args:
            optimizer: The classifier's optimizer; by default that of the method's literature.
            metrics: Keras metrics or their names.
            **kwargs: `run_eagerly`, `steps_per_execution`, `jit_compile` of `keras.Model.compile`. XLA
                compiles on request alone, and not the methods that learn on a graph.
        """
        for argument in ("loss", "loss_weights", "weighted_metrics"):
            if kwargs.pop(argument, None) is not None:
                raise ValueError(
                    f"`{argument}` cannot be set: {type(self).__name__} brings its own loss. "
                    f"Received: {argument} in compile()"
                )
        optimizer = self.default_optimizer() if optimizer is None else optimizer
        variables = self.trained_variables()
        # Keras's "auto" would choose XLA on some machines, where training rounds otherwise.
        self.supports_jit = self.runs_on_xla and kwargs.get("jit_compile") is True
        super().compile(optimizer=keras.optimizers.get(optimizer), metrics=metrics, **kwargs)
        self.add_update(self.optimizer, variables)

    def compile_from_config(self, config: dict) -> None:
        """Compiles a loaded model as it was when saved."""
        config = keras.saving.deserialize_keras_object(config)
        self.compile(**{key: value for key, value in config.items() if value is not None})

    def fit(
        self,
        x: PartialLabelDataset | Batches | tf.data.Dataset | ArrayLike | None = None,
        y: ArrayLike | None = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Sequence[keras.callbacks.Callback] | keras.callbacks.Callback | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains on candidate sets, as `keras.Model.fit` does on labels.

        Args:
            x: `PartialLabelDataset`, its batches, a `tf.data.Dataset` or `keras.utils.PyDataset` of batches
                in their form, a function that gives a generator of them, or an array of features. A
                classifier with several inputs takes a list or dict of arrays; one that reads texts, texts.
            y: With an array of features: candidate sets [examples, classes] of zeros and ones, or
                integer labels [examples].
            batch_size: Batch size where `x` is not batched already; 100 by default.
            epochs: As in Keras.
            verbose: As in Keras.
            callbacks: Keras callbacks; those that the method needs are added.
            validation_split: Share of the arrays, from their end, to validate on.
            validation_data: In any of the forms of `x`, or a pair `(features, candidates or labels)`.
            shuffle: Whether to shuffle arrays and `PartialLabelDataset`s.
            class_weight: Class number -> weight. An example weighs as its label is believed to; with a true
                label as in Keras.
            sample_weight: A weight for each training example, in the order of their index.
            **kwargs: Further arguments of `keras.Model.fit`.

        Returns:
            A `keras.callbacks.History`.
        """
        checks.COUNT("epochs", epochs)
        checks.flag("shuffle", shuffle)
        checks.MOMENTUM("validation_split", validation_split)
        checks.optional(checks.COUNT)("batch_size", batch_size)
        if validation_split:
            if validation_data is not None or y is None:
                raise ValueError(
                    "`validation_split` needs arrays and no `validation_data`; use "
                    f"`PartialLabelDataset.split` otherwise. Received: validation_split={validation_split}"
                )
            last = round(len(y) * (1 - validation_split))
            first, second = inputs.parts(x, last)
            x, y, validation_data = first, y[:last], (second, y[last:])
            sample_weight = None if sample_weight is None else sample_weight[:last]
        if validation_data is not None:
            pair = (
                validation_data if isinstance(validation_data, tuple) else (validation_data, None)
            )
            rule = "`validation_data` must be data, or a pair (features, candidates or labels)"
            checks.require(len(pair) == 2, rule, f"{len(pair)} parts")
            validation_data = self._evaluation_batches(*pair, batch_size)
        data = self.meet(x, y, batch_size=batch_size, shuffle=shuffle)
        self._weigh(sample_weight, class_weight)
        callbacks = with_defaults(callbacks, self.training_callbacks())
        if kwargs.get("steps_per_epoch"):
            iterated = batches.as_tf_data(data)
        else:
            iterated, steps = batches.in_one_iteration(data, self.steps_per_execution)
            kwargs["steps_per_epoch"] = steps
        try:
            with batches.refusals():
                return super().fit(
                    iterated,
                    epochs=epochs,
                    verbose=verbose,
                    callbacks=with_progress(callbacks, verbose),
                    validation_data=validation_data,
                    shuffle=False,  # the data set does that
                    **kwargs,
                )
        finally:
            self._training_data = None
            for callback in callbacks:
                if isinstance(callback, Cooldown):
                    callback.put_back()

    def evaluate(
        self,
        x: PartialLabelDataset | Batches | tf.data.Dataset | ArrayLike | None = None,
        y: ArrayLike | None = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        callbacks: Sequence[keras.callbacks.Callback] | keras.callbacks.Callback | None = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Loss and metrics on candidate sets or true labels, in any of the forms that `fit` takes.

        On candidate sets Keras's accuracy is named `"covering_rate"`, which it is there.
        """
        data = self._evaluation_batches(x, y, batch_size)
        if not isinstance(callbacks, keras.callbacks.CallbackList):  # which `fit` hands over
            own = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
            callbacks = with_progress([each for each in own if each is not None], verbose)
        self.evaluating = True
        try:
            self.set_metric.reset_state()
            with batches.refusals():
                logs = super().evaluate(
                    data, verbose=verbose, callbacks=callbacks, return_dict=True, **kwargs
                )
            return self.returned(logs, return_dict)
        finally:
            self.evaluating = False

    def train_on_batch(
        self,
        x: Any,
        y: dict | None = None,
        sample_weight: ArrayLike | None = None,
        class_weight: None = None,
        return_dict: bool = False,
    ) -> Any:
        """One step on a batch of training data that are known by `meet` or `fit`.

        Args:
            x: Features of a batch.
            y: `{"candidates": ..., "index": ...}`, as the batches that `meet` returns have it.
            sample_weight: A weight for each example of the batch, or none.
            class_weight: Not here: `fit` has it.
            return_dict: As in Keras.
        """
        if class_weight is not None:
            raise ValueError(
                "`class_weight` cannot be set for a batch, but in `fit`. Received: class_weight in "
                "train_on_batch()"
            )
        self.check_targets(y)
        index = np.asarray(y["index"])
        checks.require(
            index.size and index.min() >= 0 and index.max() < self.num_examples,
            "`train_on_batch` must be given examples of training data that are known, for a method "
            "remembers something of each: `batches = model.meet(train)` makes them known",
            f"indices up to {index.max() if index.size else None} of {self.num_examples} examples",
        )
        logs = super().train_on_batch(
            x, batches.as_tensors(y), sample_weight=sample_weight, return_dict=True
        )
        return self.returned(logs, return_dict)

    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Loss and metrics of a batch of candidate sets or labels."""
        self.evaluating = True
        try:
            self.set_metric.reset_state()
            y = batches.as_targets(y, self.num_classes)
            logs = super().test_on_batch(x, y, sample_weight, return_dict=True)
            return self.returned(logs, return_dict)
        finally:
            self.evaluating = False

    def _weigh(self, sample_weight, class_weight):
        """Sets the weights of the `fit` that begins."""
        given = self._sample_weights, self._class_weights, sample_weight, class_weight
        if all(each is None for each in given):
            return
        samples = weighting.sample_weights(sample_weight, self.num_examples)
        classes = weighting.class_weights(class_weight, self.num_classes)
        self._sample_weights, self._class_weights = (
            None if each is None else tf.constant(each) for each in (samples, classes)
        )
        self.train_function = None  # in whose trace they are

    def _evaluation_batches(self, x, y, batch_size):
        checks.optional(checks.COUNT)("batch_size", batch_size)
        x = as_learned(x, self.preparation)
        x = as_dataset(x, y, self.num_classes, len(self.classifier.inputs))
        return batches.evaluation_batches(x, self.num_classes, batch_size=batch_size)

    def predict(
        self,
        x: PartialLabelDataset | Batches | tf.data.Dataset | ArrayLike,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> np.ndarray:
        """Class probabilities [examples, classes], in the order of the examples.

        Args:
            x: Features, a `PartialLabelDataset`, or batches in its form, which may be shuffled: their
                index puts the predictions back in order. A model that learned from columns takes a frame or
                a dict of such columns as well.
            batch_size: Batch size where `x` is not batched already.
            **kwargs: Further arguments of `keras.Model.predict`.
        """
        checks.optional(checks.COUNT)("batch_size", batch_size)
        x = as_learned(x, self.preparation)
        if isinstance(x, PartialLabelDataset):
            x, batch_size = x.batches(batch_size or 32, shuffle=False), None
        if isinstance(x, keras.utils.PyDataset) or callable(x):
            x = inputs.from_python(x, "predict")
        x = inputs.as_inputs(batches.as_tf_data(x))
        predictions = super().predict(x, batch_size=batch_size, **kwargs)
        if isinstance(predictions, dict):
            return predictions["probabilities"][np.argsort(predictions["index"])]
        return predictions

    def predict_step(self, data: Any) -> Any:
        """Probabilities of a batch, with the index of each row where the batch has one."""
        features, targets, _ = keras.utils.unpack_x_y_sample_weight(data)
        probabilities = self(features, training=False)
        if isinstance(targets, dict) and "index" in targets:
            return {"probabilities": probabilities, "index": targets["index"]}
        return probabilities

    # -- saving, exporting ----------------------------------------------------------------------

    def get_config(self) -> dict:
        """Constructor arguments: an attribute of the same name holds each."""
        names = inspect.signature(type(self).__init__).parameters.keys() - {"self", "classifier"}
        classifier = keras.saving.serialize_keras_object(self.classifier)
        config = {"classifier": classifier, **{name: getattr(self, name) for name in sorted(names)}}
        if self.preparation is not None:
            config["preparation"] = json.dumps(self.preparation.to_dict())
        return config

    @classmethod
    def from_config(cls, config: dict) -> PartialLabelModel:
        """The model that `get_config` describes."""
        config = dict(config)
        config["classifier"] = keras.saving.deserialize_keras_object(config["classifier"])
        preparation = config.pop("preparation", None)
        model = cls(**config)
        if preparation is not None:
            model.preparation = Preparation.from_dict(json.loads(preparation))
        return model

    def save_own_variables(self, store: Any) -> None:
        """Keras's hook for state that is not a weight."""
        super().save_own_variables(store)
        for name, value in memory.extra_state(self).items():
            store[name] = value

    def load_own_variables(self, store: Any) -> None:
        """The counterpart of `save_own_variables`."""
        memory.set_extra_state(self, {key: np.asarray(store[key]) for key in store.keys()})

    def export(
        self,
        filepath: pathlib.Path | str,
        *,
        class_names: Sequence[str] | None = None,
        top_k: int = 5,
        warm_up: np.ndarray | None = None,
        metadata: dict | None = None,
        calibration: Calibration | None = None,
        **kwargs: Any,
    ) -> None:
        """Writes the classifier, and nothing of the training, as SavedModel for TF Serving.

        `valen_tf.export` describes its signatures. Whoever keeps several versions in a folder writes the
        next one by `valen_tf.export.new_version(model.classifier, "served/lost")`.

        Args:
            filepath: Folder to write, which must not exist; TF Serving expects its last part to be a
                version number, as in `"served/lost/1"`.
            class_names: Names of the classes, as `PartialLabelDataset.class_names` has them; their
                numbers by default.
            top_k: Number of classes that the signature `top_k` gives, or all if there are fewer.
            warm_up: Features [rows, ...], or a dict of columns, of the requests that a server warms up
                with; one row of zeros or empty texts by default.
            metadata: Dict of further values for the file `assets.extra/metadata.json`.
            calibration: What `valen_tf.reports.calibrate` found on held-out candidate sets, to serve
                calibrated probabilities and prediction sets as well.
            **kwargs: None: the other arguments of `keras.Model.export` are refused.
        """
        if kwargs:
            raise TypeError(
                f"`{next(iter(kwargs))}` is not supported: the export is always a SavedModel with "
                "signatures of its own; `valen_tf.export.tflite` makes TFLite files of it, and "
                "`model.classifier.export` is Keras's export. "
                f"Received: {', '.join(kwargs)} in export()"
            )
        known = {"model": type(self).__name__, "epochs_trained": self.epochs_trained}
        export.saved_model(
            self.classifier,
            filepath,
            class_names=class_names,
            top_k=top_k,
            warm_up=warm_up,
            metadata={**known, **(metadata or {})},
            front=self.front,
            calibration=calibration,
        )
