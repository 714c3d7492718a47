"""What all partial-label methods share: the batch contract, the per-example tables, the training step."""

import keras
import numpy as np
import tensorflow as tf

from valen_tf import contract, export, forms, losses, replicas
from valen_tf.data import PartialLabelDataset
from valen_tf.distributed import DistributedModel


class PartialLabelModel(DistributedModel):
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
    """

    # Terms of the objective, each a metric of its own.
    term_names = ("classification",)

    def __init__(self, classifier, *, seed=0, name=None):
        super().__init__(name=name)
        self.classifier = classifier
        self.num_classes = contract.check_classifier(classifier)
        if not 0 <= seed < 2**31:
            raise ValueError(f"`seed` must be in [0, 2^31). Received: seed={seed}")
        self.seed = seed
        self.supports_jit = False  # XLA has no kernel for the sparse products and ragged gathers
        self.term_metrics = {term: keras.metrics.Mean(name=term) for term in self.term_names}
        self.add_table("epochs_trained", (), np.int64)
        self.add_table("fingerprint", (), np.int64)
        self.add_table("candidates", (None, self.num_classes), np.bool_)
        self.add_table("weights", (None, self.num_classes), np.float32)
        self._training_data = None
        self.built = True

    # -- what a method defines ------------------------------------------------------------------

    def objective(self, features, logits, candidates, index):
        """The terms whose sum is minimised, by name, each [batch]."""
        raise NotImplementedError

    def remember(self, features, logits, candidates, index):
        """What is kept of a batch's examples after a step: by default the confidences in their labels."""
        self.set_weights_of(index, losses.confidence(logits, candidates))

    @classmethod
    def default_optimizer(cls):
        """The classifier's optimiser where `compile` names none: that of the method's literature."""
        return keras.optimizers.SGD(1e-2, momentum=0.9)

    def label_distributions(self):
        """What was recovered for each training example: [examples, classes], zero off the candidates."""
        self._check_fitted("label_distributions")
        return self.tables["weights"].numpy()

    def training_callbacks(self):
        """Callbacks that the method needs; one that the user passes replaces that of the same class."""
        return []

    # -- the training step ----------------------------------------------------------------------

    def call(self, features, training=False):
        """Class probabilities, from the classifier alone."""
        return tf.nn.softmax(self.logits(features, training=training))

    def logits(self, features, training=False):
        """The classifier's output in float32, whatever it computes in [batch, classes]."""
        return tf.cast(self.classifier(features, training=training), tf.float32)

    def train_step(self, data):
        """One step on a batch of the contract's form."""
        features, targets = data
        candidates, index = targets["candidates"], targets["index"]
        place = replicas.Place(index)
        with tf.GradientTape() as tape:
            # Losses and tables are of float32, whatever the classifier computes in.
            logits = tf.cast(replicas.forward(self.classifier, features), tf.float32)
            terms = self.objective(features, logits, candidates, index)
            # The replicas' gradients are added: each one's loss is its part of the batch's mean.
            size = tf.cast(place.batch_size, logits.dtype)
            loss = tf.add_n([tf.reduce_sum(term) / size for term in terms.values()])
            penalty = tf.add_n(self.losses) / place.num_replicas if self.losses else 0.0
            total = loss + penalty
            scaled = self.optimizer.scale_loss(total)  # of the policy mixed_float16
        self.apply_gradients(tape, scaled)
        self.remember(features, logits, candidates, index)
        parts = place.num_replicas
        self._loss_tracker.update_state(parts * total, sample_weight=size / parts)
        for name, term in terms.items():
            self.term_metrics[name].update_state(term)
        return self.compute_metrics(features, targets, tf.nn.softmax(logits))

    def apply_gradients(self, tape, loss):
        """Updates what is trained; a method with a second optimiser uses it here."""
        variables = self.trained_variables()
        self.optimizer.apply(tape.gradient(loss, variables), variables)

    def trained_variables(self):
        """What `optimizer` updates."""
        return self.classifier.trainable_variables

    def weights_of(self, index):
        """The stored weights of a batch's labels [batch, classes], at first uniform over the candidates."""
        return tf.gather(self.tables["weights"], index)

    def set_weights_of(self, index, weights):
        """Replaces the weights of a batch's labels, in place."""
        self.write_rows("weights", index, weights)

    def test_step(self, data):
        """Cross-entropy against the prediction restricted to the candidates, and the metrics."""
        features, targets = data
        logits = self.logits(features)
        confidence = losses.confidence(logits, targets["candidates"])
        loss = losses.weighted_cross_entropy(logits, confidence)
        self._loss_tracker.update_state(loss)
        results = self.compute_metrics(features, targets, tf.nn.softmax(logits))
        return {name: value for name, value in results.items() if name not in self.term_metrics}

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Keras's metrics on the contract's targets."""
        y_true = losses.restrict(y_pred, y["candidates"])
        return super().compute_metrics(x, y_true, y_pred, sample_weight)

    # -- compile, fit, evaluate, predict --------------------------------------------------------

    def compile(self, optimizer=None, *, metrics=None, **kwargs):
        """As Keras's, without a loss: the method brings its own.

        Args:
            optimizer: The classifier's optimiser; by default that of the method's literature.
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
        if contract.computes_in_float16(self.classifier) and not scales:
            # Keras goes by the policy of the outermost model, which need not be the classifier's.
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        super().compile(optimizer=optimizer, metrics=metrics, **kwargs)
        if not self.optimizer.built:
            self.optimizer.build(self.trained_variables())

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
            x: `PartialLabelDataset`, `tf.data.Dataset` of the contract's batches, or array of features.
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
        if validation_split:
            if validation_data is not None or y is None:
                raise ValueError(
                    "`validation_split` needs arrays and no `validation_data`; use "
                    f"`PartialLabelDataset.split` otherwise. Received: validation_split={validation_split}"
                )
            last = round(len(x) * (1 - validation_split))
            x, y, validation_data = x[:last], y[:last], (x[last:], y[last:])
        if validation_data is not None:
            parts = (
                validation_data if isinstance(validation_data, tuple) else (validation_data, None)
            )
            validation_data = self._evaluation_batches(*parts, batch_size)
        data = forms.training_batches(
            x, y, self.num_classes, batch_size=batch_size, shuffle=shuffle, seed=self.seed
        )
        self._remember(data)
        self._training_data = data
        if not kwargs.get("steps_per_epoch"):
            data, kwargs["steps_per_epoch"] = forms.in_one_iteration(data, self.steps_per_execution)
        try:
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
        return super().evaluate(self._evaluation_batches(x, y, batch_size), **kwargs)

    def _evaluation_batches(self, x, y, batch_size):
        return forms.evaluation_batches(x, y, self.num_classes, batch_size=batch_size)

    def predict(self, x, batch_size=None, **kwargs):
        """Class probabilities [examples, classes], in the order of the examples.

        Args:
            x: Features, a `PartialLabelDataset`, or batches of the contract's form, which may be
                shuffled: their index puts the predictions back in order.
            batch_size: Batch size where `x` is not batched already.
            **kwargs: Further arguments of `keras.Model.predict`.
        """
        if isinstance(x, PartialLabelDataset):
            x, batch_size = x.batches(batch_size or 32, shuffle=False), None
        predictions = super().predict(x, batch_size=batch_size, **kwargs)
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

    # -- per-example tables ---------------------------------------------------------------------

    @property
    def epochs_trained(self):
        """Number of epochs this model was trained for, over all calls of `fit`."""
        return int(self.tables["epochs_trained"].numpy())

    @property
    def num_examples(self):
        """Number of training examples the model remembers."""
        return int(tf.shape(self.tables["candidates"])[0])

    def _remember(self, data):
        """Reads the training data once and checks it; the tables of known data are kept."""
        candidates, fingerprint = contract.collect(data, self.num_classes)
        known = self.tables["candidates"].numpy()
        if known.shape != candidates.shape or (known != candidates).any():
            self.start_tables(candidates)
        if int(self.tables["fingerprint"].numpy()) != fingerprint:
            self.tables["fingerprint"].assign(fingerprint)
            self.forget_features()

    def forget_features(self):
        """Called when the features are not those of the last `fit`."""

    def start_tables(self, candidates):
        """Sets all tables for new training data with these candidate sets [examples, classes]."""
        self.tables["candidates"].assign(candidates.astype(bool))
        weights = candidates.astype(np.float32)
        weights /= weights.sum(axis=1, keepdims=True)
        self.tables["weights"].assign(weights)
        self.tables["epochs_trained"].assign(0)

    def set_batch_order(self):
        """Makes the next pass over the training data that of the current epoch, also in a resumed run."""
        epoch = getattr(self._training_data, "epoch", None)
        if epoch is not None:  # a data set that is not ours orders itself
            epoch.assign(self.epochs_trained)

    def set_training_state(self, state):
        """Puts back what `training_state` gave, for the training data that it was taken on."""
        known = state.get("table_candidates")
        if known is not None and not np.array_equal(known, self.tables["candidates"].numpy()):
            raise ValueError(
                "`state` must be that of a run on the same training data. Received: the state of a run "
                "on other candidate sets"
            )
        super().set_training_state(state)

    def _check_fitted(self, method):
        if not self.num_examples:
            raise ValueError(f"`{method}` needs a trained model: call `fit` first.")

    # -- saving ---------------------------------------------------------------------------------

    def get_config(self):
        """Constructor arguments, the classifier included."""
        classifier = keras.saving.serialize_keras_object(self.classifier)
        return {"classifier": classifier, "seed": self.seed, "name": self.name}

    @classmethod
    def from_config(cls, config):
        """The model that `get_config` describes."""
        config = dict(config)
        config["classifier"] = keras.saving.deserialize_keras_object(config["classifier"])
        return cls(**config)


class _Epochs(keras.callbacks.Callback):
    """Counts the model's epochs, tells the data which one begins, and stops on what is not finite."""

    def __init__(self, raise_on_nan):
        super().__init__()
        self.raise_on_nan = raise_on_nan

    def on_epoch_begin(self, epoch, logs=None):
        self.model.set_batch_order()

    def on_epoch_end(self, epoch, logs=None):
        self.model.tables["epochs_trained"].assign_add(1)
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
