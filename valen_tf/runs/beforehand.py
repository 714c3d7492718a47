"""What can be wrong with a run and is seen at once: before data are read and TensorFlow is imported."""

from __future__ import annotations

import dataclasses
import difflib
import os
import pathlib
from typing import TYPE_CHECKING

import yaml

from valen_tf import methods
from valen_tf.checks import check_file, shortened
from valen_tf.data import files

if TYPE_CHECKING:
    from valen_tf.runs.config import Config


def located(config: Config) -> Config:
    """The config with absolute paths, so that its run is found again from any folder."""

    def absolute(section, *keys):
        paths = {key: getattr(section, key) for key in keys if getattr(section, key) is not None}
        changes = {key: os.path.abspath(os.path.expanduser(path)) for key, path in paths.items()}
        return dataclasses.replace(section, **changes)

    own = ("data_dir", "csv", "clean_network", "corrections", "images", "answers")
    return dataclasses.replace(
        config,
        data=absolute(_with_folder(config.data), *own),
        network=absolute(config.network, "weights"),
    )


def _with_folder(data):
    """The section with the folder of a named set's files, which is the current one by default."""
    from valen_tf.data.sets.registry import SPECS

    spec = SPECS.get(data.name) if data.csv is None else None
    if spec is None or spec.kind == "embedded":
        return data
    return dataclasses.replace(data, data_dir=str(files.folder_of(spec, data.data_dir)))


def write_config(path: pathlib.Path, config: Config) -> None:
    """Writes a config that names its files wherever it is used.

    Args:
        path: The YAML file.
        config: A `Config`.
    """
    text = yaml.safe_dump(located(config).to_dict(), sort_keys=False)
    files.write(path, lambda scratch: scratch.write_text(text))


def check(config: Config) -> None:
    """Refuses names and files that are not there.

    Args:
        config: A `Config`.
    """
    check_method(config.method)
    known = methods.settings_of(config.method)
    for key in config.settings if known is not None else ():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"Unknown key {key!r} in `settings`; {config.method} takes "
                f"{', '.join(known) or 'none'}.{hint}"
            )
    if config.network.name == "mlp" and config.network.hidden_units is None:
        raise ValueError(
            "`network.hidden_units` must be widths, such as [128, 64], of an mlp. Received: None"
        )
    if config.data.csv is not None:
        check_file("data.csv", config.data.csv)
        return
    from valen_tf.data.sets.registry import SPECS

    if config.data.name not in SPECS:
        _refuse("data.name", config.data.name, list(SPECS))
    network = config.data.clean_network
    if network is not None and not pathlib.Path(network).exists():
        raise FileNotFoundError(f"There is no network file {network}.")


def check_method(name: str) -> None:
    """Refuses a name that no method has."""
    if methods.card(name) is None:
        aliases = [alias for card in methods.cards() for alias in card.aliases]
        _refuse("method", name, [*methods.names(), *aliases])


def _refuse(argument, value, known):
    close = difflib.get_close_matches(str(value), known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    if argument == "method":
        hint += " A method of your own is found by VALEN_TF_METHODS=module."
    raise ValueError(
        f"`{argument}` must be one of {', '.join(known)}. Received: {shortened(repr(value), 60)}.{hint}"
    )
