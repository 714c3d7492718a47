"""Everything that training changes, as arrays: to resume a run, to save a whole model."""

import warnings

import keras
import numpy as np


def extra_state(model):
    """What Keras does not save as weights: the memory, and the states of random layers."""
    state = model.memory.state()
    for position, variable in enumerate(_random_states(model)):
        state[f"random_{position}"] = keras.ops.convert_to_numpy(variable)
    return state


def set_extra_state(model, state):
    """Puts back what `extra_state` gave."""
    model.memory.set_state(state)
    for position, variable in enumerate(_random_states(model)):
        variable.assign(state[f"random_{position}"])


def training_state(model):
    """All of it, with weights and optimizers: a dict of arrays."""
    state = extra_state(model)
    for position, variable in enumerate(_trained(model)):
        state[f"variable_{position}"] = keras.ops.convert_to_numpy(variable)
    return state


def set_training_state(model, state):
    """Puts back what `training_state` gave, for the training data that it was taken on."""
    _check_data(model, state)
    variables = _trained(model)
    ours = {f"variable_{position}": variable.shape for position, variable in enumerate(variables)}
    theirs = {key: state[key].shape for key in state if key.startswith("variable_")}
    if ours != theirs or not state.keys() >= extra_state(model).keys():
        raise ValueError(
            "`state` must be that of a model with the same settings. Received: the state of another one"
        )
    for position, variable in enumerate(variables):
        variable.assign(state[f"variable_{position}"])
    set_extra_state(model, state)


def _check_data(model, state):
    """Refuses the state of a run on other candidate sets or features than those that the model has met."""
    rule = "`state` must be that of a run on the same training data. Received: the state of a run on other "
    known = state.get("table_candidates")
    if known is not None and not np.array_equal(known, model.memory["candidates"].numpy()):
        raise ValueError(rule + "candidate sets")
    known = state.get("table_fingerprint")
    if known is None or known == model.memory["fingerprint"].numpy():
        return
    if model.repeats_features:
        raise ValueError(rule + "features")
    warnings.warn(
        "The features are not those that the training began with. This is as it should be where the data "
        "are augmented at random, and else a sign of other data.",
        stacklevel=2,
    )


def _random_states(model):
    weights = {id(variable) for variable in model.weights}
    return [
        variable
        for variable in model.variables
        if id(variable) not in weights and "seed_generator" in variable.path
    ]


def _trained(model):
    of_optimizers = (update.optimizer.variables for update in model.updates)
    return [*model.weights, *(variable for each in of_optimizers for variable in each)]
