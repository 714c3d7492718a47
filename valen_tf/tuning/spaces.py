"""What is searched: ranges of a config's values."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from valen_tf import runs
from valen_tf.checks import number, require, shown, text

if TYPE_CHECKING:
    from valen_tf.runs.config import Config


def checked(space: dict) -> dict:
    """Refuses a search space that has no range, an unknown key or a range without a logarithm."""
    if not space:
        raise ValueError("`space` must name at least one value to search. Received: none")
    for key, bounds in space.items():
        known(text("space", key))
        range_ = f"`space` must give a range 0 < low < high for {key!r}"
        pair = isinstance(bounds, (tuple, list)) and len(bounds) == 2
        require(pair, range_, shown("space", space))
        low, high = (number("space", bound) for bound in bounds)
        require(0 < low < high, range_, repr(bounds))
    return dict(space)


def known(key: str) -> None:
    """Refuses a key that no config has."""
    section, _, name = key.rpartition(".")
    if section == "settings":
        return
    good = section in ("data", "network", "training")
    good = good and hasattr(getattr(runs.Config(), section), name)
    require(good, "`space` must name values of a config", repr(key))


def replaced(config: Config, key: str, value: object) -> Config:
    """The config with one value changed, named as on the command line."""
    known(key)
    section, _, name = key.rpartition(".")
    if section == "settings":
        return dataclasses.replace(config, settings={**config.settings, name: value})
    inner = dataclasses.replace(getattr(config, section), **{name: value})
    return dataclasses.replace(config, **{section: inner})


def default(config: Config, key: str, low: float, high: float) -> float | int:
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
