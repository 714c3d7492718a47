"""What is searched: ranges of a config's values."""

import dataclasses
import math

from valen_tf import experiments

_LAMBDA_AND_EPSILON = {
    "settings.compatibility_weight": (0.1, 10.0),
    "settings.prior_concentration": (1e-3, 1.0),
}
_RATE_AND_DECAY = {"training.learning_rate": (1e-3, 1e-1), "network.weight_decay": (1e-5, 1e-2)}

# What is searched by default: of VALEN the paper's lambda and epsilon, else what the method's own paper
# tunes. A range is (low, high), on a logarithmic scale; of integers if both are integers.
SPACES = {
    **dict.fromkeys(("valen", "valen_paper"), _LAMBDA_AND_EPSILON),
    "valen_authors": {
        "settings.compatibility_weight": (1.0, 50.0),
        "settings.kl_weight": (1e-3, 1.0),
    },
    **dict.fromkeys(("proden", "rc", "cc", "ga", "clpl_softmax"), _RATE_AND_DECAY),
    "d2cnn": {
        "settings.discrimination_weight": (1e-2, 10.0),
        "settings.ensembling_weight": (1e-1, 100.0),
    },
    "clpl": {"settings.regularization": (1e-2, 1e2)},
    "plsvm": {"settings.regularization": (1e-3, 1e3)},
    "plknn": {"settings.num_neighbours": (3, 50)},
    "ipal": {"settings.num_neighbours": (3, 50), "settings.propagation": (0.5, 0.99)},
    "plle": {"settings.num_neighbours": (5, 50), "settings.ridge": (1e-2, 1e2)},
}


def checked(space):
    """Refuses a search space that has no range, an unknown key or a range without a logarithm."""
    if not space:
        raise ValueError("`space` must name at least one value to search. Received: none")
    for key, bounds in space.items():
        replaced(experiments.Config(), key, None)  # an unknown key raises
        if len(bounds) != 2 or not 0 < bounds[0] < bounds[1]:
            raise ValueError(
                f"`space` must give a range 0 < low < high for {key!r}. Received: {bounds!r}"
            )
    return dict(space)


def replaced(config, key, value):
    """The config with one value changed, named as on the command line."""
    section, _, name = key.rpartition(".")
    if section == "settings":
        return dataclasses.replace(config, settings={**config.settings, name: value})
    known = {field.name for field in dataclasses.fields(getattr(config, section, config))}
    if section not in ("data", "network", "training") or name not in known:
        raise ValueError(f"`space` must name values of a config. Received: {key!r}")
    inner = dataclasses.replace(getattr(config, section), **{name: value})
    return dataclasses.replace(config, **{section: inner})


def default(config, key, low, high):
    """The config's own value where it lies in the range, else the range's middle."""
    section, _, name = key.rpartition(".")
    value = (
        config.settings.get(name)
        if section == "settings"
        else getattr(getattr(config, section), name)
    )
    if value is None or not low <= value <= high:
        value = math.sqrt(low * high)
    return round(value) if isinstance(low, int) and isinstance(high, int) else float(value)
