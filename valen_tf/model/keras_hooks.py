"""Keras's insides in one place: private names that this package touches, and what a classifier is made of.

Keras may change any of these names without notice; the tests run on the newest Keras in CI. Nothing
outside of this file may use a name of Keras that begins with an underscore.

    _distribute_strategy          whether the model was made in a strategy's scope
    _maybe_symbolic_build         Keras's build from the first batches
    _compile_metrics              the metrics that `compile` received
    _make_function                Keras's training and test loop around a step
    _get_metrics_result_or_logs   the logs of an epoch
    _initial_epoch                where `fit` begins, after a callback has restored a state
    _loss_tracker                 the metric "loss"
    _flatten_layers               a model's layers, nested ones too
    _inputs_struct                the form of a functional model's inputs
    _keras_history, _inbound_nodes   the operation that a symbolic tensor came out of, and its inputs
    _all_reduce_sum_gradients     an optimizer's sum of gradients over the replicas
    _flatten_metrics_in_order     the list that `evaluate` and `train_on_batch` return

And of TensorFlow:

    _omit_frequent_tracing_warning    of a `tf.function`
"""

from __future__ import annotations

import dataclasses
import types
import warnings
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from valen_tf.data.batches import Batches
from valen_tf.networks import LEARNED_SCALE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PROBABILITIES = ("softmax", "sigmoid", "hard_sigmoid")
# Keras's name for the share of predictions that are right, which on candidate sets it is not.
ACCURACIES = ("accuracy", "acc", "categorical_accuracy")
_SPARSE = (
    keras.metrics.SparseCategoricalAccuracy,
    keras.metrics.SparseCategoricalCrossentropy,
    keras.metrics.SparseTopKCategoricalAccuracy,
)
_WHERE = "name the layer that gives the embedding by `embedding`"
_SMALLEST, _LARGEST = 0.05, 20.0  # deviations between which a network learns at usual rates
_SCALING = (
    keras.layers.BatchNormalization,
    keras.layers.Discretization,
    keras.layers.Embedding,
    keras.layers.GroupNormalization,
    keras.layers.LayerNormalization,
    keras.layers.Normalization,
    keras.layers.Rescaling,
    keras.layers.TextVectorization,
    keras.layers.UnitNormalization,
)
# Operations that hand on what they receive, in another shape or with noise.
_PASSING = (keras.layers.Identity, keras.layers.Flatten, keras.layers.Reshape, keras.layers.Dropout)


class KerasHooks(keras.Model):
    """Repairs what keeps Keras's `fit` from batches of uneven shares, and from several machines.

    A subclass has the `classifier` and its `num_classes`, which say what a batch looks like.
    """

    def compile(
        self,
        optimizer: keras.Optimizer,
        *,
        metrics: Sequence | str | keras.metrics.Metric | None = None,
        steps_per_execution: int = 1,
        **kwargs: Any,
    ) -> None:
        """As Keras's; with a strategy, every call runs one step."""
        if self._distribute_strategy is not None and steps_per_execution != 1:
            raise ValueError(
                "`steps_per_execution` must be 1 for a model that was made in the scope of a strategy. "
                f"Received: steps_per_execution={steps_per_execution}"
            )
        if computes_in_float16(self.classifier) and not _scales(optimizer):
            # Keras goes by the policy of the outermost model, which need not be the classifier's.
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        metrics = [metrics] if isinstance(metrics, (str, keras.metrics.Metric)) else metrics
        _refuse_sparse(metrics)
        super().compile(
            optimizer, metrics=metrics, steps_per_execution=steps_per_execution, **kwargs
        )
        self.updates = ()
        object.__setattr__(self, "_get_metrics_result_or_logs", self._results)
        # Past Keras's list of metrics: how many of the examples of `evaluate` have several candidates.
        object.__setattr__(self, "set_metric", keras.metrics.Mean(name="several_candidates"))
        # Keras's running mean of the loss; past Keras's own list of metrics, which has it already.
        object.__setattr__(self, "loss_metric", self._loss_tracker)

    def add_update(self, optimizer: keras.Optimizer, variables: list) -> None:
        """Lets an optimizer update variables in every step."""
        _without_sum(optimizer)
        # On several devices a copy for each. A rate of 0 holds a network still, which may be wanted.
        rate = keras.ops.convert_to_numpy(optimizer.learning_rate)
        if not 0 <= float(rate) < float("inf"):
            raise ValueError(
                f"`learning_rate` must not be negative. Received: learning_rate={float(rate)}"
            )
        if not optimizer.built:
            optimizer.build(variables)
        self.updates = (*self.updates, Update(optimizer, variables))

    def continue_from(self, epoch: int) -> None:
        """Makes the `fit` that is about to begin start at an epoch, as `BackupAndRestore` does."""
        self._initial_epoch = epoch

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes files: the only one, or the first of several."""
        resolver = self.distribute_strategy.cluster_resolver
        if resolver is None or not resolver.task_type:
            return True
        first = "chief" if "chief" in resolver.cluster_spec().jobs else "worker"
        return (resolver.task_type, resolver.task_id) == (first, 0)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        if self._distribute_strategy is None:
            # Metrics that make their variables while a step is traced have the step traced twice.
            if self._compile_metrics is not None and not self._compile_metrics.built:
                sets = tf.zeros((2, self.num_classes))
                self._compile_metrics.build(sets, sets)
            return
        # Keras adds up the replicas' first batches to know their form, which must be of one size then.
        features = tf.nest.map_structure(
            lambda tensor: keras.KerasTensor((None, *tensor.shape[1:]), tensor.dtype),
            input_structure(self.classifier),
        )
        targets = {"candidates": keras.KerasTensor((None, self.num_classes))}
        super()._maybe_symbolic_build(data_batch=(features, targets))

    def _make_function(self, step_function):
        if self._distribute_strategy is None:
            return _of_this_model(super()._make_function(step_function))
        # Keras averages the replicas' logs here, which fails across machines. Those of one replica serve
        # to show: an epoch's are read from the metrics, which know all replicas.
        strategy = self.distribute_strategy

        def step(iterator):
            logs = strategy.run(step_function, args=(next(iterator),))
            return {
                name: strategy.experimental_local_results(value)[0] for name, value in logs.items()
            }

        return step if self.run_eagerly else tf.function(step, reduce_retracing=True)

    def make_predict_function(self, force: bool = False) -> Any:
        """As Keras's."""
        super().make_predict_function(force=force)
        return _of_this_model(self.predict_function)

    def _results(self, logs):
        """The logs of an epoch: Keras takes the mean of the last ones where a step leaves a metric out."""
        results = self.get_metrics_result()
        results = {name: results.get(name, value) for name, value in logs.items()}
        # `evaluate` sees to its own, after Keras has put them in order.
        return results if self.evaluating else named(results, self.sees_sets)

    @property
    def sees_sets(self) -> bool:
        """Whether the data at hand are candidate sets rather than true labels."""
        return float(self.set_metric.result()) > 0 if self.evaluating else self.ambiguous

    def returned(self, logs: dict, return_dict: bool) -> Any:
        """Logs as `evaluate` returns them: under the names of `named`, or as a list without names."""
        return named(logs, self.sees_sets) if return_dict else self._flatten_metrics_in_order(logs)


def _of_this_model(function):
    """Lets every model trace its loops without a warning; returns the function.

    The loops of all models have the same code, by which TensorFlow counts tracings: it takes the fifth
    model for one that is traced again and again.
    """
    inside = function
    if hasattr(function, "python_function"):
        function._omit_frequent_tracing_warning = True
        inside = function.python_function
    for cell in getattr(inside, "__closure__", None) or ():
        inner = cell.cell_contents
        if isinstance(inner, types.FunctionType) or hasattr(inner, "python_function"):
            _of_this_model(inner)
    return function


@dataclasses.dataclass(frozen=True)
class Update:
    """An optimizer and what it updates, in a class that hides the variables from Keras's own count."""

    optimizer: object
    variables: list


def _scales(optimizer):
    return isinstance(optimizer, keras.optimizers.LossScaleOptimizer)


def _without_sum(optimizer):
    """Lets an optimizer of one replica apply gradients as they are, not as a sum over replicas.

    Keras wraps the sum in a gradient of its own. TensorFlow registers the gradient for the life of the
    process, and with it keeps the graph of every step that was ever traced: megabytes of each model.
    """
    if not tf.distribute.has_strategy():
        inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a `LossScaleOptimizer`
        inner._all_reduce_sum_gradients = list  # of the pairs of gradient and variable


# -- how training reports -------------------------------------------------------------------------------


def named(logs: dict, ambiguous: bool) -> dict:
    """Logs in which the share of predictions inside candidate sets is called so.

    Args:
        logs: Name -> value.
        ambiguous: Whether some of the sets had several candidates; else each was a true label.

    Returns:
        A dict in the same order.

    Example:
        >>> named({"loss": 0.5, "accuracy": 0.9}, True)
        {'loss': 0.5, 'covering_rate': 0.9}
    """
    if not ambiguous:
        return dict(logs)
    return {"covering_rate" if name in ACCURACIES else name: value for name, value in logs.items()}


def _refuse_sparse(metrics):
    """Refuses metrics that compare with one integer for each example, where there is a set."""
    for metric in metrics or ():
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", "")
        if isinstance(metric, _SPARSE) or name.lower().startswith("sparse"):
            raise ValueError(
                "`metrics` must be those of class probabilities, not sparse ones, which compare with one "
                "integer for each example: 'accuracy' and 'top_k_categorical_accuracy' serve, and take "
                f"integer labels as well. Received: {name or type(metric).__name__}"
            )


def with_progress(
    callbacks: Sequence[keras.callbacks.Callback], verbose: int | str
) -> list[keras.callbacks.Callback]:
    """Callbacks with the progress line, unless there is one of the user's or none is wanted.

    Args:
        callbacks: The others.
        verbose: As in Keras.
    """
    theirs = any(isinstance(each, keras.callbacks.ProgbarLogger) for each in callbacks)
    return [*callbacks] if verbose == 0 or theirs else [*callbacks, ProgressLine()]


class ProgressLine(keras.callbacks.ProgbarLogger):
    """Keras's progress bar without terms that are not in use, and with the names of `named`."""

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Shows a batch."""
        super().on_train_batch_end(batch, self._shown(logs))

    def on_test_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Shows a batch of `evaluate`."""
        super().on_test_batch_end(batch, self._shown(logs))

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Shows an epoch."""
        super().on_epoch_end(epoch, self._shown(logs))

    def _shown(self, logs):
        used = self.model.terms_in_use
        left_out = {name for name in self.model.term_names if name not in used or len(used) == 1}
        if len(used) == 1:
            left_out.add("objective")  # of which the loss tells enough
        return {name: value for name, value in (logs or {}).items() if name not in left_out}


# -- what can serve as classifier -----------------------------------------------------------------------


def check_classifier(classifier: keras.Model) -> int:
    """Refuses what cannot serve as classifier; returns its number of classes."""
    if not isinstance(classifier, keras.Model):
        raise TypeError(
            "`classifier` must be a Keras model from features to logits. "
            f"Received: {type(classifier)}"
        )
    if not classifier.built:
        raise ValueError(
            "`classifier` must be built: give it a `keras.Input`, or call it on a batch first. "
            f"Received: {classifier.name!r}, which has no weights yet"
        )
    output_shape = classifier.output_shape
    if not isinstance(output_shape, tuple) or len(output_shape) != 2 or not output_shape[-1]:
        raise ValueError(
            "`classifier` must give one row of logits per example, shape (batch, classes). "
            f"Received: {classifier.name!r} with output shape {output_shape}"
        )
    ending = _ending(classifier)
    if ending is None and any(map(is_opaque, all_layers(classifier))):
        ending = _ending_by_value(classifier)
    if ending in _PROBABILITIES:
        raise ValueError(
            "`classifier` must give logits, so it must not end in a softmax or sigmoid. "
            f"Received: {classifier.name!r}, which ends in a {ending}"
        )
    _check_policies(classifier)
    return output_shape[-1]


def in_a_graph(classifier: keras.Model) -> keras.Model:
    """The classifier as a functional model: a subclassed one that is built is wrapped in one."""
    wraps = isinstance(classifier, keras.Model) and classifier.built
    if not wraps or getattr(classifier, "inputs", None):
        return classifier
    shape = (classifier.get_build_config() or {}).get("input_shape")
    try:
        inputs = keras.Input(tuple(shape)[1:], name="features")
        return keras.Model(inputs, classifier(inputs), name=classifier.name)
    except (
        Exception
    ) as error:  # whatever a call of somebody else's on inputs of its own form may raise
        raise ValueError(
            "`classifier` must be functional or sequential, or take one array of numbers. Wrap another "
            "subclassed model: `keras.Model(inputs, classifier(inputs))` with a `keras.Input`. "
            f"Received: {classifier.name!r} of {type(classifier)}"
        ) from error


def is_opaque(layer: keras.layers.Layer) -> bool:
    """Whether a layer is a subclassed model, which shows no graph."""
    return isinstance(layer, keras.Model) and not getattr(layer, "outputs", None)


def _ending(model):
    """Name of the function that a model's output went through last, as far as its layers tell it."""
    operation, sources = operation_before(model.outputs[0])
    while operation is not None:
        name = _function_of(operation)
        passes = isinstance(operation, _PASSING) or name == "linear"
        if not sources or not passes or hasattr(operation, "kernel"):
            return name
        operation, sources = operation_before(sources[0])
    return None


def _ending_by_value(classifier):
    """The same of a model that does not show its graph, by what it gives for large random features."""
    random = np.random.default_rng(0)

    def values(tensor):
        shape = (64, *tensor.shape[1:])
        if tensor.dtype.startswith("float") and None not in shape:
            return tf.constant(10 * random.normal(size=shape), tensor.dtype)
        return None

    features = tf.nest.map_structure(values, input_structure(classifier))
    if any(part is None for part in tf.nest.flatten(features)):
        return None
    outputs = keras.ops.convert_to_numpy(classifier(features, training=False))
    if not ((outputs >= 0) & (outputs <= 1)).all():
        return None
    return "softmax" if np.allclose(outputs.sum(axis=1), 1, atol=1e-2) else "sigmoid"


def _function_of(operation):
    """Name of what an operation ends in: of a nested model its last one, of a layer its activation."""
    if isinstance(operation, keras.Model):
        return _ending(operation) if getattr(operation, "outputs", None) else None
    activation = getattr(operation, "activation", None)
    if activation is not None:
        return getattr(activation, "__name__", None)
    return type(operation).__name__.lower()  # the layer Softmax, the operations Softmax and Sigmoid


def _check_policies(classifier):
    """Refuses weights of another type than float32, which tables, losses and the posterior have."""
    for layer in all_layers(classifier):
        policy = layer.dtype_policy
        if policy.variable_dtype != "float32" and layer.weights:
            raise ValueError(
                "`classifier` must have weights in float32: the dtype policies float32, mixed_bfloat16 "
                f"and mixed_float16 are supported. Received: {policy.name!r} in layer {layer.name!r}"
            )


def computes_in_float16(classifier: keras.Model) -> bool:
    """Whether a layer computes in float16, whose small gradients need Keras's loss scaling."""
    return any(layer.compute_dtype == "float16" for layer in all_layers(classifier))


# -- where the embedding is -------------------------------------------------------------------------------


def embedder(classifier: keras.Model, layer_name: str | None = None) -> keras.Model | Tap:
    """The part of a classifier that ends in its embedding, `[batch, ...]` of a batch of features.

    Args:
        classifier: A Keras model that `check_classifier` passed.
        layer_name: Name of the layer whose output is the embedding, also of a layer inside of a nested
            model; by default the input of the layer that gives the logits, wherever that layer is.

    Returns:
        A callable with `output_shape` and `trainable_variables`.
    """
    if layer_name is not None:
        return _named(classifier, layer_name)
    head, source = _head_in_graph(classifier)
    if source is not None:
        part = keras.Model(input_structure(classifier), _pooled(classifier, head, source))
    else:
        if head is not None and is_opaque(head):
            head = last_layer_called(head)
        if head is None:
            raise ValueError(
                f"`classifier` must show which layer gives its logits: {_WHERE}. "
                f"Received: {classifier.name!r}, whose output is computed by no layer of its own"
            )
        part = Tap(classifier, head)
    _warn_of_embedding(classifier, part)
    return part


class Tap:
    """What a layer receives or gives when the classifier is called, however deep inside the layer is.

    Args:
        classifier: A Keras model.
        layer: The layer.
        gives: Whether to take the layer's output; else its input.
    """

    def __init__(
        self, classifier: keras.Model, layer: keras.layers.Layer, *, gives: bool = False
    ) -> None:
        self.classifier, self.layer, self.gives = classifier, layer, gives
        specs = tf.nest.map_structure(
            lambda tensor: tf.TensorSpec((None, *tensor.shape[1:]), tensor.dtype),
            input_structure(classifier),
        )
        traced = tf.function(self, autograph=False).get_concrete_function(specs)
        self.output_shape = tuple(traced.structured_outputs.shape)

    def __call__(self, features, training=False):
        """What the layer receives or gives for a batch."""
        caught = []
        own = self.layer.call

        def catching(*args, **kwargs):
            outputs = own(*args, **kwargs)
            caught.append(outputs if self.gives else [*args, *kwargs.values()][0])
            return outputs

        object.__setattr__(self.layer, "call", catching)
        try:
            self.classifier(features, training=training)
        finally:
            object.__delattr__(self.layer, "call")
        return caught[-1]

    @property
    def trainable_variables(self) -> list:
        """The classifier's, without those of the layer whose input is taken."""
        after = () if self.gives else self.layer.trainable_variables
        own = {id(variable) for variable in after}
        return [each for each in self.classifier.trainable_variables if id(each) not in own]


def last_layer_called(model: keras.Model) -> keras.layers.Layer | None:
    """The layer that gives the output of a subclassed model, found by calling the model, or `None`.

    Args:
        model: A subclassed model that stands in a functional one.
    """
    calls = []  # (layer, what it received, what it gave), of a layer in another one the inner first

    def watching(layer, own):
        def call(*args, **kwargs):
            outputs = own(*args, **kwargs)
            calls.append((layer, next(iter([*args, *kwargs.values()]), None), outputs))
            return outputs

        return call

    watched = [layer for layer in all_layers(model) if layer is not model]
    for layer in watched:
        object.__setattr__(layer, "call", watching(layer, layer.call))
    try:
        output = _traced(model)
    finally:
        for layer in watched:
            object.__delattr__(layer, "call")
    while True:
        gave = [call for call in calls if call[2] is output]
        deciding = [layer for layer, _, _ in gave if _decides(layer)]
        if deciding or not gave:
            return deciding[0] if deciding else None
        output = gave[0][1]


def _traced(model):
    """The output of a model, without values, for what it was called with in its functional model."""
    outputs = []
    arguments = tf.nest.flatten(call_arguments(model))
    symbolic = [n for n, each in enumerate(arguments) if isinstance(each, keras.KerasTensor)]

    def call(*tensors):
        given = dict(zip(symbolic, tensors, strict=True))
        filled = [given.get(position, each) for position, each in enumerate(arguments)]
        args, kwargs = tf.nest.pack_sequence_as(call_arguments(model), filled)
        outputs.append(model.call(*args, **kwargs))
        return outputs[-1]

    specs = [
        tf.TensorSpec((None, *arguments[position].shape[1:]), arguments[position].dtype)
        for position in symbolic
    ]
    tf.function(call, autograph=False).get_concrete_function(*specs)
    return outputs[-1]


def _decides(operation):
    """Whether an operation has a kernel, and does more than to scale what it receives."""
    return any(len(weight.shape) > 1 for weight in getattr(operation, "weights", ()))


def _head_in_graph(model):
    """The layer that gives a functional model's logits, and what it receives in the graph.

    Operations without a kernel that stand between the layer and the output are passed by. The input is
    `None` where the layer is inside of a nested model.
    """
    operation, sources = operation_before(model.outputs[0])
    while len(sources) == 1:
        if is_opaque(operation):
            return operation, None
        if isinstance(operation, keras.Model):
            return _head_in_graph(operation)[0], None
        if _decides(operation):
            return operation, sources[0]
        operation, sources = operation_before(sources[0])
    several = is_opaque(operation) and len(sources) > 1
    return (operation if several else None), None


def _pooled(classifier, head, source):
    """What the head receives; of a convolution whose logits are then averaged, the average."""
    spatial = isinstance(head, keras.layers.Layer) and len(source.shape) > 2
    if spatial and classifier.outputs[0] is not head.output and hasattr(head, "kernel_size"):
        return keras.ops.mean(source, axis=tuple(range(1, len(source.shape) - 1)))
    return source


def _named(classifier, layer_name):
    if not isinstance(layer_name, str):
        raise TypeError(
            f"`embedding` must be the name of a layer. Received: embedding={layer_name!r}"
        )
    names = [layer.name for layer in classifier.layers]
    if layer_name in names:
        output = classifier.get_layer(layer_name).output
        part = keras.Model(input_structure(classifier), output)
    else:
        inside = [layer for layer in all_layers(classifier) if layer.name == layer_name]
        if not inside:
            raise ValueError(
                "`embedding` must name a layer of the classifier. "
                f"Received: embedding={layer_name!r}; the layers are {', '.join(names)}"
            )
        part = Tap(classifier, inside[0], gives=True)
    _warn_of_embedding(classifier, part)
    return part


def _warn_of_embedding(classifier, part):
    """Warns of an embedding that tells no more than the features, or no more than the logits."""
    learns = bool(part.trainable_variables)
    heads = [v for v in classifier.trainable_variables if len(v.shape) > 1]  # kernels
    kernels = [v for v in part.trainable_variables if len(v.shape) > 1]
    num_classes = classifier.output_shape[-1]
    if len(heads) > 1 and not learns:
        _warn_that_embedding_is(
            classifier, "the features as they come in, though the classifier has hidden layers"
        )
    elif (
        kernels
        and len(kernels) == len(heads)
        and int(np.prod(part.output_shape[1:])) == num_classes
    ):
        _warn_that_embedding_is(classifier, "the logits, behind every layer that learns")


def _warn_that_embedding_is(classifier, what):
    warnings.warn(
        f"The embedding of {classifier.name!r}, on which the graph is built, is {what}: {_WHERE}.",
        stacklevel=2,
    )


# -- the scale of features --------------------------------------------------------------------------------


def learn_scale(model: keras.Model, data: Batches | tf.data.Dataset) -> bool:
    """Adapts the layers of `networks` that wait for their scale, with what the training data have.

    Args:
        model: A model that has not been trained.
        data: Its training batches.

    Returns:
        Whether there was such a layer.
    """
    waiting = [
        layer
        for layer in all_layers(model)
        if isinstance(layer, keras.layers.Normalization)
        and layer.name == LEARNED_SCALE
        and not int(keras.ops.convert_to_numpy(layer.count))
    ]
    if not waiting:
        return False
    # A further network of the model, a copy of the classifier, has the same layers and the same scale.
    inside = {id(layer) for layer in all_layers(model.classifier)}
    for layer in waiting:
        if id(layer) in inside:
            moments = _moments_of(model.classifier, layer, data)
        mean, std = moments
        shape = layer.adapt_mean.shape
        layer.adapt_mean.assign(np.reshape(mean, shape))
        layer.adapt_variance.assign(np.reshape(std, shape) ** 2)
        layer.count.assign(1)
        layer.finalize_state()
    return True


def _moments_of(classifier, layer, data):
    """Mean and standard deviation of what a layer receives, over the training data."""
    first = classifier.inputs[0]
    direct = len(classifier.inputs) == 1 and any(layer is each for each in classifier.layers)
    if direct and layer.input is first:
        if isinstance(data, Batches) and not data.functions:
            if hasattr(data.source, "moments"):
                return data.source.moments()

        def received(features):
            return features
    else:
        received = tf.function(Tap(classifier, layer), autograph=False)

    # As `PartialLabelDataset.moments`: of images by channel, else by feature.
    count, total, squares = 0, 0.0, 0.0
    for features, _ in data:
        values = np.asarray(received(features), np.float64)
        axes = tuple(range(min(values.ndim, 3))) if values.ndim > 2 else (0,)
        count += values.size
        total, squares = total + values.sum(axis=axes), squares + np.square(values).sum(axis=axes)
    count /= np.size(total)
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0))
    return mean.astype(np.float32), np.where(std > 1e-6, std, 1).astype(np.float32)


def warn_of_unscaled(classifier: keras.Model, data: Batches | tf.data.Dataset) -> None:
    """Warns of features that are far from a deviation of 1, where no layer of the network scales them.

    Args:
        classifier: A Keras model.
        data: Its training batches, of which one is looked at.
    """
    layers = all_layers(classifier)
    if any(isinstance(layer, _SCALING) or "normaliz" in layer.name for layer in layers):
        return
    features = next(iter(data))[0]
    if not tf.is_tensor(features) or not features.dtype.is_floating:
        return
    values = np.asarray(features, np.float64)
    deviations = values.std(axis=0).ravel() if values.ndim == 2 else np.ravel(values.std())
    deviations = deviations[deviations > 0]
    if not len(deviations) or len(values) < 10:
        return
    middle = np.median(deviations)
    if _SMALLEST <= middle and deviations.max() <= _LARGEST:
        return
    warnings.warn(
        f"The features have standard deviations from {deviations.min():.2g} to {deviations.max():.2g}, and "
        f"no layer of {classifier.name!r} scales them, without which a network may hardly learn: put a "
        "`keras.layers.Normalization` that is adapted to them first, or train on `data.standardized()`.",
        stacklevel=2,
    )


# -- the graph of a functional model -----------------------------------------------------------------------


def input_structure(model: keras.Model) -> Any:
    """A built model's symbolic inputs in the form that it is called with: a tensor, a list or a dict."""
    if len(model.inputs) == 1 and not isinstance(getattr(model, "_inputs_struct", None), dict):
        return model.inputs[0]
    return model._inputs_struct


def all_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """A model's layers, those of nested models too."""
    return model._flatten_layers()


def call_arguments(layer: keras.layers.Layer) -> tuple[tuple, dict]:
    """The symbolic `(args, kwargs)` that a layer was called with when its model was made."""
    arguments = layer._inbound_nodes[0].arguments
    return arguments.args, arguments.kwargs


def operation_before(tensor: keras.KerasTensor) -> tuple[keras.Operation, list]:
    """The operation that a symbolic tensor came out of, and the list of its inputs."""
    history = tensor._keras_history
    return history.operation, history.operation._inbound_nodes[history.node_index].input_tensors
