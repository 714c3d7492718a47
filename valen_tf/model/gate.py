"""What a `.keras` file may be made of, looked at before Keras opens the file.

Keras in safe mode refuses Python code in a file. Still it calls functions of its own with arguments from
the file, some of which write files, and imports modules of some names. Here a file may name what models are
made of, and nothing else.
"""

import json
import pathlib
import zipfile

from valen_tf.checks import require

_PARTS = (
    "activations",
    "constraints",
    "dtype_policies",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "ops",
    "optimizers",
    "quantizers",
    "random",
    "regularizers",
)
# Modules that hold parts of models alone, under their public names and, where they have none, the others.
_MODULES = tuple(f"keras.{room}{part}" for room in ("", "src.") for part in _PARTS)
_FUNCTIONS = (
    "builtins",
    *(f"keras.{part}" for part in ("activations", "losses", "metrics", "ops")),
)
# They run what the file says: Python code, or a graph or pickle from anywhere.
_RUNNING = ("Lambda", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer")
_VALUES = ("__keras_tensor__", "__tensor__", "__numpy__", "__bytes__", "__ellipsis__", "__slice__")
_MOST_BYTES = 2**26  # of a config; that of a network of a thousand layers has a megabyte


def check_model_file(path):
    """Refuses a file that is no `.keras` file, or that is made of more than models are made of.

    Args:
        path: The file.

    Example:
        >>> check_model_file("model.h5")
        Traceback (most recent call last):
        ...
        ValueError: `path` must be a .keras file. Received: model.h5
    """
    path = pathlib.Path(path)
    require(path.suffix == ".keras", "`path` must be a .keras file", path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {path}.")
    if not path.is_file():  # Keras would open a folder as well, and a pipe would wait forever
        raise ValueError(f"{path} is not a .keras file, but a folder or a device.")
    try:
        config = _read_config(path)
    except (zipfile.BadZipFile, KeyError, RecursionError, NotImplementedError) as error:
        raise ValueError(f"{path} is not a whole .keras file: {error}") from error
    for named in _named(config):
        require(
            _is_allowed(named),
            f"{path} must be made of layers, optimizers, losses and metrics of Keras, and of classes that "
            "are registered with Keras; whoever trusts the file must open it with Keras alone",
            f"{named.get('module')}.{_name(named)}",
        )


def _read_config(path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            parts = pathlib.PurePosixPath(name.replace("\\", "/"))
            inside = not parts.is_absolute() and ".." not in parts.parts
            require(inside, f"{path} must hold names inside of it", repr(name))
        size = archive.getinfo("config.json").file_size
        rule = f"{path} must have a config of at most {_MOST_BYTES} bytes"
        require(size <= _MOST_BYTES, rule, f"{size} bytes")
        return json.loads(archive.read("config.json"))


def _named(value):
    """Everything in a config that names a class or function, however deep."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if "class_name" in value:
                yield value
            left += value.values()
        elif isinstance(value, list):
            left += value


def _is_allowed(named):
    from keras.saving import get_registered_object

    kind, module = str(named["class_name"]), named.get("module")
    if kind in _VALUES:
        return True
    if kind.startswith("__") or kind in _RUNNING:
        return False
    function = kind == "function"
    known = _name(named) if function else str(named.get("registered_name"))
    if get_registered_object(known) is not None:
        return True
    if function:
        return module in _FUNCTIONS
    # Keras takes a function for a class; the names of its functions begin with a small letter.
    inside = module in ("keras", None) or f"{module}.".startswith(tuple(f"{m}." for m in _MODULES))
    return kind[:1].isupper() and inside


def _name(named):
    """The name of the class or function."""
    kind = str(named["class_name"])
    return str(named.get("config")) if kind == "function" else kind
