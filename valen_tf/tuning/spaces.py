"""What is searched: ranges of a config's values."""

import dataclasses
import math

from valen_tf import runs


def checked(space):
    """Refuses a search space that has no range, an unknown key or a range without a logarithm."""
    if not space:
        raise ValueError("`space` must name at least one value to search. Received: none")
    for key, bounds in space.items():
        replaced(runs.Config(), key, None)  # an unknown key raises
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
