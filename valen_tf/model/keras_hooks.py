"""Everything of Keras that is private and that this package touches, in one place.

Keras may change any of these names without notice; the tests run on the newest Keras in CI. Nothing
outside of this file may use a name of Keras that begins with an underscore.

    _distribute_strategy          whether the model was made in a strategy's scope
    _maybe_symbolic_build         Keras's build from the replicas' first batches
    _make_function                Keras's training and test loop around a step
    _get_metrics_result_or_logs   the logs of an epoch
    _initial_epoch                where `fit` begins, after a callback has restored a state
    _loss_tracker                 the metric "loss"
    _flatten_layers               a model's layers, nested ones too
    _keras_history, _inbound_nodes   the operation that a symbolic tensor came out of, and its inputs
    _all_reduce_sum_gradients     an optimizer's sum of gradients over the replicas

And of TensorFlow:

    _omit_frequent_tracing_warning    of a `tf.function`
"""

import types

import keras
import tensorflow as tf


class KerasHooks(keras.Model):
    """Repairs what keeps Keras's `fit` from batches of uneven shares, and from several machines.

    A subclass has the `classifier` and its `num_classes`, which say what a batch looks like.
    """

    def compile(self, *args, steps_per_execution=1, **kwargs):
        """As Keras's; with a strategy, every call runs one step."""
        if self._distribute_strategy is not None and steps_per_execution != 1:
            raise ValueError(
                "`steps_per_execution` must be 1 for a model that was made in the scope of a strategy. "
                f"Received: steps_per_execution={steps_per_execution}"
            )
        super().compile(*args, steps_per_execution=steps_per_execution, **kwargs)
        # Keras's running mean of the loss; past Keras's own list of metrics, which has it already.
        object.__setattr__(self, "loss_metric", self._loss_tracker)

    def continue_from(self, epoch):
        """Makes the `fit` that is about to begin start at an epoch, as `BackupAndRestore` does."""
        self._initial_epoch = epoch

    @property
    def is_chief(self):
        """Whether this process is the one that writes files: the only one, or the first of several."""
        resolver = self.distribute_strategy.cluster_resolver
        if resolver is None or not resolver.task_type:
            return True
        first = "chief" if "chief" in resolver.cluster_spec().jobs else "worker"
        return (resolver.task_type, resolver.task_id) == (first, 0)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        if self._distribute_strategy is None:
            return
        # Keras adds up the replicas' first batches to know their form, which must be of one size then.
        features = keras.KerasTensor((None, *self.classifier.input_shape[1:]))
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

    def make_predict_function(self, force=False):
        """As Keras's."""
        super().make_predict_function(force=force)
        return _of_this_model(self.predict_function)

    def _get_metrics_result_or_logs(self, logs):
        # Keras falls back on the mean of the replicas' last logs where a step leaves a metric out.
        results = self.get_metrics_result()
        return {name: results.get(name, value) for name, value in logs.items()}


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


def apply(optimizer, gradients, variables):
    """As `optimizer.apply`, where there is one replica without a sum over replicas.

    Keras wraps the sum in a gradient of its own. TensorFlow registers the gradient for the life of the
    process, and with it keeps the graph of every step that was ever traced: megabytes of each model.
    """
    if tf.distribute.has_strategy():
        optimizer.apply(gradients, variables)
        return
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a `LossScaleOptimizer`
    inner._all_reduce_sum_gradients = _as_they_are
    try:
        optimizer.apply(gradients, variables)
    finally:
        del inner._all_reduce_sum_gradients


def _as_they_are(pairs):
    gradients, variables = zip(*pairs, strict=True)
    if any(not tf.is_tensor(gradient) for gradient in gradients):
        return list(pairs)  # a variable without a gradient, or slices of one
    return list(zip(tf.identity_n(gradients), variables, strict=True))


def all_layers(model):
    """A model's layers, those of nested models too."""
    return model._flatten_layers()


def operation_before(tensor):
    """The operation that a symbolic tensor came out of, and its first input; `None` where there is none."""
    history = tensor._keras_history
    inputs = history.operation._inbound_nodes[history.node_index].input_tensors
    return history.operation, inputs[0] if inputs else None
