"""What can serve as classifier: checked once, when a model is made."""

import keras

from valen_tf.model.keras_hooks import all_layers, operation_before

_PROBABILITIES = ("softmax", "sigmoid", "hard_sigmoid")
# Operations that hand on what they receive, in another shape or with noise.
_PASSING = (keras.layers.Identity, keras.layers.Flatten, keras.layers.Reshape, keras.layers.Dropout)


def check_classifier(classifier):
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
    if not hasattr(classifier, "inputs"):
        raise ValueError(
            "`classifier` must be functional or sequential, so that its embedding can be found. Wrap a "
            "subclassed model: `keras.Model(inputs, classifier(inputs))` with a `keras.Input`. "
            f"Received: {classifier.name!r} of {type(classifier)}"
        )
    if len(classifier.inputs) != 1:
        raise ValueError(
            "`classifier` must have one input, the features. "
            f"Received: {classifier.name!r} with {len(classifier.inputs)} inputs"
        )
    output_shape = classifier.output_shape
    if not isinstance(output_shape, tuple) or len(output_shape) != 2 or not output_shape[-1]:
        raise ValueError(
            "`classifier` must give one row of logits per example, shape (batch, classes). "
            f"Received: {classifier.name!r} with output shape {output_shape}"
        )
    ending = _ending(classifier)
    if ending in _PROBABILITIES:
        raise ValueError(
            "`classifier` must give logits, so it must not end in a softmax or sigmoid. "
            f"Received: {classifier.name!r}, which ends in a {ending}"
        )
    _check_policies(classifier)
    return output_shape[-1]


def _ending(model):
    """Name of the function that a model's output went through last, as far as its layers tell it."""
    operation, source = operation_before(model.outputs[0])
    while operation is not None:
        name = _function_of(operation)
        passes = isinstance(operation, _PASSING) or name == "linear"
        if source is None or not passes or hasattr(operation, "kernel"):
            return name
        operation, source = operation_before(source)
    return None


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


def computes_in_float16(classifier):
    """Whether a layer computes in float16, whose small gradients need Keras's loss scaling."""
    return any(layer.compute_dtype == "float16" for layer in all_layers(classifier))
