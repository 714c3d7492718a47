"""What an epoch of a deep method costs beside a plain supervised Keras epoch of the same classifier.

    python benchmarks/epoch_cost.py [--idx FOLDER | --lost FOLDER] [--methods valen proden ...]
        [--examples 60000] [--network mlp|small|wide|linear|resnet32] [--features 784] [--classes 10]
        [--rounds 5] [--epochs 1] [--policy mixed_bfloat16]

All models are trained in turns, an epoch each or `--epochs` of them, in batches of 256; ratios are of
medians over the rounds; on a busy machine, which `load average` tells, those of CPU time tell more. The
networks: the MNIST MLP (300-301-302-303 hidden units), a small one (64), a wide one (256), a linear one,
and ResNet-32, whose data are images of 32x32x3. `--policy` trains each model once more under that dtype
policy, and says how many times as fast as in float32. `--idx` names a folder with MNIST-like gzipped idx
files (train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz), `--lost` the folder of Lost's file; else
the data are synthetic clusters. Prints a table, and JSON with `--json FILE`. `benchmarks/scale.py` runs
this at several sizes.
"""

import argparse
import gzip
import json
import os
import pathlib
import resource
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

_BATCH_SIZE = 256
_NETWORKS = ["mlp", "small", "wide", "linear", "resnet32"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--idx", type=pathlib.Path)
    parser.add_argument("--lost", type=pathlib.Path)
    parser.add_argument("--methods", nargs="+", default=["valen"])
    parser.add_argument("--examples", type=int, default=60_000)
    parser.add_argument("--network", choices=_NETWORKS, default="mlp")
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--policy")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    import keras

    import valen_tf as vt
    from valen_tf.methods import find

    dataset = _dataset(options)

    def optimizer():
        return keras.optimizers.SGD(1e-2, momentum=0.9)

    def supervised_model(policy=None):
        model = _network(options.network, dataset, policy)
        loss = keras.losses.CategoricalCrossentropy(from_logits=True)
        model.compile(optimizer(), loss, metrics=["accuracy"])
        return model

    supervised = supervised_model()
    labeled = dataset.revealed().batches(_BATCH_SIZE).map(lambda x, y: (x, y["candidates"]))

    def supervised_epochs(number, model=supervised, **options):
        # One iteration over all epochs, as the methods have it: on small data setting one up takes as
        # long as the epoch.
        steps = len(labeled)
        model.fit(labeled.endless, steps_per_epoch=steps, epochs=number, verbose=0, **options)

    supervised_epochs(1)
    after_supervised = _peak_gigabytes()

    batches = dataset.batches(_BATCH_SIZE)
    models = {name: find(name)(_network(options.network, dataset)) for name in options.methods}
    if options.policy:
        lower = supervised_model(options.policy)
        supervised_epochs(1, lower)
        for name in options.methods:
            network = _network(options.network, dataset, options.policy)
            models[_lower(name, options.policy)] = find(name)(network)
    clock = _Clock()

    def epoch(name):
        callbacks = [clock]
        if hasattr(models[name], "set_enhancing"):
            callbacks += [vt.callbacks.WarmUp(1), vt.callbacks.GraphRebuild(10**9)]
        models[name].fit(batches, epochs=options.epochs, callbacks=callbacks, verbose=0)
        return clock.times

    for name, model in models.items():
        model.compile(optimizer(), metrics=["accuracy"])
        # A warm-up epoch, then one that builds the graph and traces the step: neither is counted.
        epoch(name)
        epoch(name)

    plain, lowered, others, load = [], [], {name: [] for name in models}, []
    for _ in range(options.rounds):
        supervised_epochs(options.epochs, callbacks=[clock])
        plain.append(clock.times)
        if options.policy:
            supervised_epochs(options.epochs, lower, callbacks=[clock])
            lowered.append(clock.times)
        load.append(os.getloadavg()[0])
        for name, times in others.items():
            times.append(epoch(name))

    reference, reference_cpu = _medians(plain)
    steps = int(batches.cardinality())
    report = {
        "examples": len(dataset),
        "classes": dataset.num_classes,
        "data": _name_of_data(options),
        "network": options.network,
        **_sampler(models),
        "load_average": round(statistics.median(load), 1),
        "supervised_epoch_seconds": round(reference, 2),
        "supervised_step_milliseconds": round(1e3 * reference / steps, 2),
    }
    for name, times in others.items():
        seconds, cpu_seconds = _medians(times)
        prefix = "" if name == "valen" else f"{name}_"
        report[f"{name}_epoch_seconds"] = round(seconds, 2)
        report[f"{name}_step_milliseconds"] = round(1e3 * seconds / steps, 2)
        report[f"{prefix}epoch_ratio"] = round(seconds / reference, 2)
        report[f"{prefix}epoch_cpu_ratio"] = round(cpu_seconds / reference_cpu, 2)
    if options.policy:
        report["policy"] = options.policy
        pairs = {"supervised": (plain, lowered)}
        pairs |= {
            name: (others[name], others[_lower(name, options.policy)]) for name in options.methods
        }
        for name, pair in pairs.items():
            full, low = map(_medians, pair)
            report[f"{name}_policy_gain"] = round(full[0] / low[0], 2)
            report[f"{name}_policy_cpu_gain"] = round(full[1] / low[1], 2)
    if "valen" in models:
        seconds = report["valen_epoch_seconds"]
        report.update(_graph_cost(models["valen"], batches, lambda: epoch("valen"), seconds))
    report["peak_gigabytes"] = round(_peak_gigabytes(), 2)
    report["peak_gigabytes_supervised_part"] = round(after_supervised, 2)
    for name, value in report.items():
        print(f"{name.replace('_', ' '):34}{value}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _lower(name, policy):
    """The name of a method's model under another dtype policy."""
    return f"{name}_{policy}"


def _sampler(models):
    """What draws VALEN's label distributions, where VALEN is measured."""
    if "valen" not in models:
        return {}
    return {"sampler": "vectorized" if models["valen"].vectorized else "tensorflow"}


def _network(name, dataset, policy=None):
    """A network, under a dtype policy where one is given."""
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy or before)
    try:
        return _network_of(name, dataset)
    finally:
        keras.config.set_dtype_policy(before)


def _network_of(name, dataset):
    import valen_tf as vt

    shape, classes, moments = dataset.feature_shape, dataset.num_classes, dataset.moments()
    if name == "linear":
        return vt.networks.linear(shape, classes, moments=moments)
    if name == "resnet32":
        return vt.networks.resnet32(shape, classes, moments=moments)
    hidden_units = {"mlp": (300, 301, 302, 303), "small": (64,), "wide": (256,)}[name]
    return vt.networks.mlp(
        shape, classes, moments=moments, weight_decay=1e-4, hidden_units=hidden_units
    )


def _graph_cost(model, batches, epoch, epoch_seconds):
    """What building VALEN's graph takes, and bringing it up to date after an epoch; their recall."""
    import valen_tf as vt

    def rebuild():
        model._training_data = batches  # as `fit` sets it
        started = time.perf_counter()
        model.rebuild_graph()
        seconds = time.perf_counter() - started
        found = model.memory["neighbors"].numpy()
        return round(seconds, 2), round(_recall(model.training_embeddings(), found), 3)

    model.forget_features()
    build, build_recall = rebuild()
    epoch()
    refresh, refresh_recall = rebuild()
    share = build / vt.callbacks.GraphRebuild().every / epoch_seconds
    return {
        "graph_rebuild_seconds": build,
        "rebuild_share_of_training": round(share, 3),
        "graph_recall_at_10": build_recall,
        "graph_refresh_seconds": refresh,
        "graph_refresh_recall_at_10": refresh_recall,
    }


def _Clock():
    """A callback that times the epochs of a `fit`: without start-up, tracing and graph building."""
    import keras

    class Clock(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self._of_epochs = []

        def on_epoch_begin(self, epoch, logs=None):
            self._started = time.perf_counter(), time.process_time()

        def on_epoch_end(self, epoch, logs=None):
            now = time.perf_counter(), time.process_time()
            self._of_epochs.append([b - a for a, b in zip(self._started, now, strict=True)])

        @property
        def times(self):
            """Seconds and seconds of CPU time of an epoch."""
            return [statistics.mean(column) for column in zip(*self._of_epochs, strict=True)]

    return Clock()


def _medians(times):
    return [statistics.median(column) for column in zip(*times, strict=True)]


def _name_of_data(options):
    if options.lost:
        return "Lost"
    return options.idx.name if options.idx else "synthetic clusters"


def _dataset(options):
    import numpy as np

    import valen_tf as vt

    if options.lost:
        return vt.datasets.load("lost", data_dir=options.lost)
    examples, classes = options.examples, options.classes
    rng = np.random.default_rng(0)
    if options.idx:
        images = gzip.decompress((options.idx / "train-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((options.idx / "train-labels-idx1-ubyte.gz").read_bytes())
        features = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)[:examples]
        features = features.astype(np.float32) / 255
        labels = np.frombuffer(labels, np.uint8, offset=8)[:examples].astype(np.int64)
    else:  # clusters of few dimensions in a space of many
        shape = (32, 32, 3) if options.network == "resnet32" else (options.features,)
        width = int(np.prod(shape))
        labels = rng.integers(0, classes, examples)
        latent = 0.7 * rng.standard_normal((examples, 16), dtype=np.float32)
        latent += rng.normal(size=(classes, 16)).astype(np.float32)[labels]
        features = latent @ rng.normal(size=(16, width)).astype(np.float32)
        for start in range(0, examples, 10_000):
            noise = features[start : start + 10_000]
            noise += 0.3 * rng.standard_normal(noise.shape, dtype=np.float32)
        features = features.reshape(examples, *shape)
    # About five candidates, whatever the number of classes.
    candidates = vt.candidates.uniform(labels, classes, flip_probability=5 / classes, seed=0)
    return vt.PartialLabelDataset(features, candidates, labels)


def _recall(embeddings, neighbors):
    """Share of the true nearest neighbours that were found, of a thousand examples."""
    import faiss
    import numpy as np

    sample = np.random.default_rng(0).permutation(len(embeddings))[:1000]
    _, truth = faiss.knn(embeddings[sample], embeddings, neighbors.shape[1] + 1)
    found = 0
    for row, near in zip(sample, truth, strict=True):
        near = near[near != row][: neighbors.shape[1]]
        found += np.isin(near, neighbors[row]).sum()
    return found / neighbors[sample].size


def _peak_gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
