"""What all deep methods share: the training step, Keras's calls on candidate sets, the memory."""

import dataclasses
import inspect

import keras
import numpy as np
import tensorflow as tf

from valen_tf import checks, export, losses, replicas
from valen_tf.data import forms
from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.model import state
from valen_tf.model.classifier import check_classifier, computes_in_float16
from valen_tf.model.keras_hooks import KerasHooks, apply
from valen_tf.model.memory import Memory

# Epochs before the classifier has a say in how good the annotators are: at first it knows nothing.
_LEARNS_FROM_ANSWERS = 10
_PAPERS_OPTIMIZER = (
    "SGD",
    {"learning_rate": 1e-2, "momentum": 0.9},
)  # of all methods in its tables


class PartialLabelModel(KerasHooks):
    """A classifier trained from candidate sets; a method is a subclass with one `objective`.

    A batch is `(features, {"candidates": [batch, classes], "index": [batch]})`, as
    `PartialLabelDataset.batches` gives it. The index says which training example a row is, because
    methods of this kind remember something about each of them. A true label is a candidate set of size
    one, so training, validation and test data share one form, one loss and one set of metrics: metrics
    see the prediction restricted to the candidate set as `y_true`, which makes `"accuracy"` the accuracy
    where the label is known and otherwise the share of predictions inside the candidate set.

    Args:
        classifier: A built Keras model from features to logits [batch, classes].
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
    rules = checks.rules(seed=checks.SEED)
    # Whether only the classifier learns yet, of a method that has further networks.
    warming_up = False

    def __init__(self, classifier, *, seed=0, name=None):
        super().__init__(name=name)
        self.classifier = classifier
        self.num_classes = check_classifier(classifier)
        self.seed = checks.SEED("seed", seed)
        self.supports_jit = False  # XLA has no kernel for the sparse products and ragged gathers
        self.term_metrics = {term: keras.metrics.Mean(name=term) for term in self.term_names}
        self.memory = Memory()
        self.memory.add("epochs_trained", (), np.int64)
        self.memory.add("fingerprint", (), np.int64)
        self.memory.add("candidates", (None, self.num_classes), np.bool_)
        self.memory.add("label_weights", (None, self.num_classes), np.float32)
        # What people's answers say of the labels, and a checksum of the answers; 0 where there are none.
        self.memory.add("evidence", (None, self.num_classes), np.float32)
        self.memory.add("answers", (), np.int64)
        self._answers = None
        self._training_data = None
        self.built = True

    # -- what a method defines ------------------------------------------------------------------

    def objective(self, features, logits, candidates, index):
        """The terms whose sum is minimized, by name, each [batch].

        A method that recovers label distributions on the way gives a pair: the terms, and what is to be
        remembered of the examples' labels [batch, classes], in place of `remember`.
        """
        raise NotImplementedError

    def remember(self, features, logits, candidates, index):
        """What is kept of a batch's examples after a step: by default the confidences in their labels."""
        self.write("label_weights", index, losses.confidence(logits, candidates))

    def start_memory(self, candidates):
        """Starts anew on other training data, with these candidate sets [examples, classes]."""
        self.memory["candidates"].assign(candidates.astype(bool))
        uniform = candidates.astype(np.float32)
        uniform /= uniform.sum(axis=1, keepdims=True)
        self.memory["label_weights"].assign(uniform)
        self.memory["epochs_trained"].assign(0)

    def forget_features(self):
        """Called when the features are not those of the last `fit`."""

    @classmethod
    def default_optimizer(cls):
        """The classifier's optimizer where `compile` names none: the one on the method's card."""
        name, arguments = (cls.card and cls.card.optimizer) or _PAPERS_OPTIMIZER
        return keras.optimizers.get({"class_name": name, "config": arguments})

    def trained_variables(self):
        """What `optimizer` updates."""
        return self.classifier.trainable_variables

    def training_callbacks(self):
        """Callbacks that the method needs; one that the user passes replaces that of the same class."""
        return []

    # -- the training step ----------------------------------------------------------------------

    def train_step(self, data):
        """One step on a batch."""
        features, targets = data
        candidates, index = targets["candidates"], targets["index"]
        rows, parts = tf.shape(index)[0], 1
        if tf.distribute.has_strategy():  # the batch is that of all replicas together
            rows, parts = replicas.size_of_batch(index)
        # What is known of the labels: which are candidates, or how far people's answers speak for each.
        known = candidates if self._answers is None else self.read("evidence", index)
        with tf.GradientTape() as tape:
            logits = self.logits(features, training=True)
            terms = self.objective(features, logits, known, index)
            terms, recovered = terms if isinstance(terms, tuple) else (terms, None)
            self.check_terms(terms)
            # The replicas' gradients are added: each one's loss is its part of the batch's mean.
            size = tf.cast(rows, logits.dtype)
            loss = tf.add_n([tf.reduce_sum(term) / size for term in terms.values()])
            penalty = tf.add_n(self.losses) / parts if self.losses else 0.0
            total = loss + penalty
            scaled = self.optimizer.scale_loss(total)  # of the policy mixed_float16
        self.update(tape, scaled)
        if recovered is None:
            self.remember(features, logits, known, index)
        else:
            self.write("label_weights", index, recovered)
        self.loss_metric.update_state(parts * total, sample_weight=size / parts)
        for name, term in terms.items():
            self.term_metrics[name].update_state(term)
        probabilities = tf.nn.softmax(logits)
        inside = losses.restrict(probabilities, candidates)
        return self.compute_metrics(features, inside, probabilities)

    def logits(self, features, training=False):
        """The classifier's output in float32, whatever it computes in [batch, classes]."""
        if training and tf.distribute.has_strategy():
            return tf.cast(replicas.forward(self.classifier, features), tf.float32)
        return tf.cast(self.classifier(features, training=training), tf.float32)

    def update(self, tape, loss):
        """Each optimizer updates its variables; while the model warms up, only the classifier's."""
        if self.warming_up:
            variables = self.classifier.trainable_variables
            apply(self.optimizer, tape.gradient(loss, variables), variables)
            return
        gradients = tape.gradient(loss, [update.variables for update in self.updates])
        # Keras's loss scaling is the classifier's: further networks compute in float32.
        scale = self.optimizer.scale_loss(1.0)
        for update, group in zip(self.updates, gradients, strict=True):
            if update.optimizer is not self.optimizer:
                group = [gradient / scale for gradient in group]
            apply(update.optimizer, group, update.variables)

    def check_terms(self, terms):
        """Refuses what `objective` gave, unless it has the form that the step relies on."""
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
            if term.shape.rank != 1:
                raise ValueError(
                    f"`objective` of {method} must give every term one value per example, shape (batch,). "
                    f"Received: {name!r} of shape {term.shape}"
                )

    def test_step(self, data):
        """Cross-entropy against the prediction restricted to the candidates, and the metrics."""
        features, targets = data
        logits = self.logits(features)
        probabilities = tf.nn.softmax(logits)
        confidence = losses.confidence(logits, targets["candidates"])
        self.loss_metric.update_state(losses.weighted_cross_entropy(logits, confidence))
        inside = losses.restrict(probabilities, targets["candidates"])
        results = self.compute_metrics(features, inside, probabilities)
        return {name: value for name, value in results.items() if name not in self.term_metrics}

    def call(self, features, training=False):
        """Class probabilities, from the classifier alone."""
        return tf.nn.softmax(self.logits(features, training=training))

    # -- the memory of the training examples ----------------------------------------------------

    def read(self, name, index):
        """A batch's rows of what is remembered [batch, ...]."""
        return tf.gather(self.memory.tables[name], index)

    def write(self, name, index, values):
        """Replaces a batch's rows of what is remembered, in every replica's copy."""
        if tf.distribute.has_strategy():
            index, values = replicas.whole_batch(index, values)
        self.memory.tables[name].scatter_update(tf.IndexedSlices(values, index))

    def label_distributions(self):
        """What was recovered for each training example: [examples, classes], zero off the candidates.

        Of people's answers no label is impossible.
        """
        if not self.num_examples:
            raise ValueError("`label_distributions` needs a trained model: call `fit` first.")
        return self.memory["label_weights"].numpy()

    @property
    def epochs_trained(self):
        """Number of epochs this model was trained for, over all calls of `fit`."""
        return int(self.memory["epochs_trained"].numpy())

    @property
    def num_examples(self):
        """Number of training examples the model remembers."""
        return int(tf.shape(self.memory["candidates"])[0])

    def _meet(self, data):
        """Reads the training data once and checks it; what is remembered of known data is kept."""
        candidates, fingerprint = forms.collect(data, self.num_classes)
        answers = forms.answers_of(data) if self.weighs_answers else None
        if (answers is None) != (self._answers is None):
            self.train_function = None  # the step reads another table
        self._answers = answers
        checksum = 0 if answers is None else answers.checksum
        known = self.memory["candidates"].numpy()
        same_answers = int(self.memory["answers"].numpy()) == checksum
        if known.shape != candidates.shape or (known != candidates).any() or not same_answers:
            self.start_memory(candidates)
            self.memory["answers"].assign(checksum)
            if answers is not None:
                posterior, _ = answers.dawid_skene()
                self.memory["label_weights"].assign(posterior.astype(np.float32))
                self.weigh_answers()
        if int(self.memory["fingerprint"].numpy()) != fingerprint:
            self.memory["fingerprint"].assign(fingerprint)
            self.forget_features()

    def weigh_answers(self):
        """Judges the annotators by what is now believed of the labels, and their answers accordingly."""
        if self._answers is not None:
            self.memory["evidence"].assign(self._answers.evidence(self.label_distributions()))

    def known_of_labels(self):
        """What is known of all labels before training: the candidates, or what the answers say."""
        name = "candidates" if self._answers is None else "evidence"
        return self.memory[name].numpy()

    def annotators(self):
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
    def repeats_features(self):
        """Whether the training data have the same features whenever they are read."""
        return isinstance(self._training_data, forms.Batches) and not self._training_data.functions

    def set_batch_order(self):
        """Makes the next pass over the training data that of the current epoch, also in a resumed run."""
        if isinstance(self._training_data, forms.Batches):  # other data order themselves
            self._training_data.epoch = self.epochs_trained

    # -- compile, fit, evaluate, predict --------------------------------------------------------

    def compile(self, optimizer=None, *, metrics=None, **kwargs):
        """As Keras's, without a loss: the method brings its own.

        Args:
            optimizer: The classifier's optimizer; by default that of the method's literature.
            metrics: Keras metrics or their names.
            **kwargs: `run_eagerly`, `steps_per_execution`, `jit_compile` of `keras.Model.compile`.
        """
        for argument in ("loss", "loss_weights", "weighted_metrics"):
            if kwargs.pop(argument, None) is not None:
                raise ValueError(
                    f"`{argument}` cannot be set: {type(self).__name__} brings its own loss. "
                    f"Received: {argument} in compile()"
                )
        optimizer = self.default_optimizer() if optimizer is None else optimizer
        optimizer = keras.optimizers.get(optimizer)
        scales = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        if computes_in_float16(self.classifier) and not scales:
            # Keras goes by the policy of the outermost model, which need not be the classifier's.
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        super().compile(optimizer=optimizer, metrics=metrics, **kwargs)
        self.updates = ()
        self.add_update(self.optimizer, self.trained_variables())

    def add_update(self, optimizer, variables):
        """Lets an optimizer update variables in every step."""
        # A rate of 0 holds a network still, which may be wanted.
        rate = keras.ops.convert_to_numpy(
            optimizer.learning_rate
        )  # a copy on each device, of several
        checks.NOT_NEGATIVE("learning_rate", float(rate))
        if not optimizer.built:
            optimizer.build(variables)
        self.updates = (*self.updates, Update(optimizer, variables))

    def compile_from_config(self, config):
        """Compiles a loaded model as it was when saved."""
        config = keras.saving.deserialize_keras_object(config)
        self.compile(**{key: value for key, value in config.items() if value is not None})

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        **kwargs,
    ):
        """Trains on candidate sets, as `keras.Model.fit` does on labels.

        Args:
            x: `PartialLabelDataset`, its batches, a `tf.data.Dataset` of batches in their form, or an array
                of features.
            y: With an array of features: candidate sets [examples, classes] of zeros and ones, or
                integer labels [examples].
            batch_size: Batch size where `x` is not batched already; 100 by default.
            epochs: As in Keras.
            verbose: As in Keras.
            callbacks: Keras callbacks; those that the method needs are added.
            validation_split: Share of the arrays, from their end, to validate on.
            validation_data: In any of the forms of `x`, or a pair `(features, candidates or labels)`.
            shuffle: Whether to shuffle arrays and `PartialLabelDataset`s.
            class_weight: Not supported.
            sample_weight: Not supported.
            **kwargs: Further arguments of `keras.Model.fit`.

        Returns:
            A `keras.callbacks.History`.
        """
        for name, value in {"class_weight": class_weight, "sample_weight": sample_weight}.items():
            if value is not None:
                raise ValueError(
                    f"`{name}` is not supported by {type(self).__name__}. Received: {name} in fit()"
                )
        checks.COUNT("epochs", epochs)
        checks.flag("shuffle", shuffle)
        checks.MOMENTUM("validation_split", validation_split)
        if validation_split:
            if validation_data is not None or y is None:
                raise ValueError(
                    "`validation_split` needs arrays and no `validation_data`; use "
                    f"`PartialLabelDataset.split` otherwise. Received: validation_split={validation_split}"
                )
            last = round(len(x) * (1 - validation_split))
            x, y, validation_data = x[:last], y[:last], (x[last:], y[last:])
        if validation_data is not None:
            pair = (
                validation_data if isinstance(validation_data, tuple) else (validation_data, None)
            )
            validation_data = self._evaluation_batches(*pair, batch_size)
        data = forms.training_batches(
            x, y, self.num_classes, batch_size=batch_size, shuffle=shuffle, seed=self.seed
        )
        self._meet(data)
        self._training_data = data
        if kwargs.get("steps_per_epoch"):
            data = forms.as_tf_data(data)
        else:
            data, kwargs["steps_per_epoch"] = forms.in_one_iteration(data, self.steps_per_execution)
        try:
            with forms.refusals():  # of the validation data
                return super().fit(
                    data,
                    epochs=epochs,
                    verbose=verbose,
                    callbacks=self._all_callbacks(callbacks),
                    validation_data=validation_data,
                    shuffle=False,  # the data set does that
                    **kwargs,
                )
        finally:
            self._training_data = None

    def evaluate(self, x=None, y=None, batch_size=None, **kwargs):
        """Loss and metrics on candidate sets or true labels, in any of the forms that `fit` takes."""
        with forms.refusals():
            return super().evaluate(self._evaluation_batches(x, y, batch_size), **kwargs)

    def _evaluation_batches(self, x, y, batch_size):
        return forms.evaluation_batches(x, y, self.num_classes, batch_size=batch_size)

    def predict(self, x, batch_size=None, **kwargs):
        """Class probabilities [examples, classes], in the order of the examples.

        Args:
            x: Features, a `PartialLabelDataset`, or batches in its form, which may be shuffled: their
                index puts the predictions back in order.
            batch_size: Batch size where `x` is not batched already.
            **kwargs: Further arguments of `keras.Model.predict`.
        """
        checks.optional(checks.COUNT)("batch_size", batch_size)
        if isinstance(x, PartialLabelDataset):
            x, batch_size = x.batches(batch_size or 32, shuffle=False), None
        predictions = super().predict(forms.as_tf_data(x), batch_size=batch_size, **kwargs)
        if isinstance(predictions, dict):
            return predictions["probabilities"][np.argsort(predictions["index"])]
        return predictions

    def predict_step(self, data):
        """Probabilities of a batch, with the index of each row where the batch has one."""
        features, targets, _ = keras.utils.unpack_x_y_sample_weight(data)
        probabilities = self(features, training=False)
        if isinstance(targets, dict) and "index" in targets:
            return {"probabilities": probabilities, "index": targets["index"]}
        return probabilities

    def _all_callbacks(self, callbacks):
        if callbacks is None:
            callbacks = []
        elif not isinstance(callbacks, (list, tuple)):
            callbacks = [callbacks]
        own = []
        for default in self.training_callbacks():
            given = [callback for callback in callbacks if isinstance(callback, type(default))]
            own += given or [default]
        rest = [callback for callback in callbacks if callback not in own]
        terminates = any(isinstance(callback, keras.callbacks.TerminateOnNaN) for callback in rest)
        # Ours come first: what they change at an epoch's end is part of what the user's callbacks save.
        return [*own, _Epochs(raise_on_nan=not terminates), *rest]

    # -- saving, exporting ----------------------------------------------------------------------

    def get_config(self):
        """Constructor arguments: an attribute of the same name holds each."""
        names = inspect.signature(type(self).__init__).parameters.keys() - {"self", "classifier"}
        classifier = keras.saving.serialize_keras_object(self.classifier)
        return {"classifier": classifier, **{name: getattr(self, name) for name in sorted(names)}}

    @classmethod
    def from_config(cls, config):
        """The model that `get_config` describes."""
        config = dict(config)
        config["classifier"] = keras.saving.deserialize_keras_object(config["classifier"])
        return cls(**config)

    def save_own_variables(self, store):
        """Keras's hook for state that is not a weight."""
        super().save_own_variables(store)
        for name, value in state.extra_state(self).items():
            store[name] = value

    def load_own_variables(self, store):
        """The counterpart of `save_own_variables`."""
        state.set_extra_state(self, {key: np.asarray(store[key]) for key in store.keys()})

    def export(self, filepath, *, class_names=None, top_k=5, warm_up=None, metadata=None, **kwargs):
        """Writes the classifier, and nothing of the training, as SavedModel for TF Serving.

        `valen_tf.export` describes its signatures. Whoever keeps several versions in a folder writes the
        next one by `valen_tf.export.new_version(model.classifier, "served/lost")`.

        Args:
            filepath: Folder to write, which must not exist; TF Serving expects its last part to be a
                version number, as in `"served/lost/1"`.
            class_names: Names of the classes, as `PartialLabelDataset.class_names` has them; their
                numbers by default.
            top_k: Number of classes that the signature `top_k` gives, or all if there are fewer.
            warm_up: Features [rows, ...] of the requests that a server warms up with; one row of zeros by
                default.
            metadata: Dict of further values for the file `assets.extra/metadata.json`.
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
        )


@dataclasses.dataclass(frozen=True)
class Update:
    """An optimizer and what it updates, in a class that hides the variables from Keras's own count."""

    optimizer: object
    variables: list


class _Epochs(keras.callbacks.Callback):
    """Counts the model's epochs, tells the data which one begins, and stops on what is not finite."""

    def __init__(self, raise_on_nan):
        super().__init__()
        self.raise_on_nan = raise_on_nan

    def on_epoch_begin(self, epoch, logs=None):
        self.model.set_batch_order()

    def on_epoch_end(self, epoch, logs=None):
        self.model.memory["epochs_trained"].assign_add(1)
        if self.model.epochs_trained > _LEARNS_FROM_ANSWERS:
            self.model.weigh_answers()
        broken = [name for name, value in (logs or {}).items() if not np.isfinite(value)]
        # The logs are of the losses before each step: they know nothing of what the last one did.
        broken = broken or [
            variable.path
            for variable in self.model.trainable_variables
            if not tf.reduce_all(tf.math.is_finite(variable))
        ]
        if broken and self.raise_on_nan:
            raise FloatingPointError(
                f"Training diverged in epoch {epoch + 1}: {', '.join(broken)} became NaN or infinite. "
                "Lower the learning rate, or check the scale of the features."
            )
