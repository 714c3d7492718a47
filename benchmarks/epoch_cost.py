"""What an epoch of a deep method costs beside a plain supervised Keras epoch of the same classifier.

    python benchmarks/epoch_cost.py [--idx FOLDER] [--methods valen proden ...] [--examples 60000]
        [--rounds 5]

All models are trained in turns, an epoch each, on the MNIST MLP (784-300-301-302-303-10, batch 256);
ratios are of medians over the rounds; on a busy machine those of CPU time tell more. `--idx` names a
folder with MNIST-like gzipped idx files (train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz); without
it the data are synthetic clusters of the same size. Prints a table, and JSON with `--json FILE`.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--idx", type=pathlib.Path)
    parser.add_argument("--methods", nargs="+", default=["valen"])
    parser.add_argument("--examples", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    import keras

    import valen_tf as vt
    from valen_tf.experiments.methods import method_class

    features, labels = _data(options)
    candidates = vt.candidates.uniform(labels, 10, flip_probability=0.5, seed=0)
    dataset = vt.PartialLabelDataset(features, candidates, labels)

    def network():
        return vt.networks.mlp(
            dataset.feature_shape, 10, moments=dataset.moments(), weight_decay=1e-4
        )

    def optimizer():
        return keras.optimizers.SGD(1e-2, momentum=0.9)

    supervised = network()
    supervised.compile(
        optimizer(), keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    labelled = dataset.revealed().batches(256).map(lambda x, y: (x, y["candidates"]))
    after_supervised = _peak_gigabytes()

    batches = dataset.batches(256)
    models = {name: method_class(name)(network()) for name in options.methods}
    clock = _Clock()

    def epoch(name):
        callbacks = [clock]
        if hasattr(models[name], "set_enhancing"):
            callbacks += [vt.callbacks.WarmUp(1), vt.callbacks.GraphRebuild(10**9)]
        models[name].fit(batches, epochs=1, callbacks=callbacks, verbose=0)
        return clock.seconds, clock.cpu_seconds

    for name, model in models.items():
        model.compile(optimizer(), metrics=["accuracy"])
        # A warm-up epoch, then one that builds the graph and traces the step: neither is counted.
        epoch(name)
        epoch(name)
    supervised.fit(labelled, epochs=1, verbose=0)

    plain, others = [], {name: [] for name in models}
    for _ in range(options.rounds):
        supervised.fit(labelled, epochs=1, callbacks=[clock], verbose=0)
        plain.append((clock.seconds, clock.cpu_seconds))
        for name, times in others.items():
            times.append(epoch(name))

    reference, reference_cpu = _medians(plain)
    report = {
        "examples": len(dataset),
        "data": str(options.idx.name) if options.idx else "synthetic clusters",
        "supervised_epoch_seconds": round(reference, 2),
    }
    for name, times in others.items():
        seconds, cpu_seconds = _medians(times)
        prefix = "" if name == "valen" else f"{name}_"
        report[f"{name}_epoch_seconds"] = round(seconds, 2)
        report[f"{prefix}epoch_ratio"] = round(seconds / reference, 2)
        report[f"{prefix}epoch_cpu_ratio"] = round(cpu_seconds / reference_cpu, 2)
    if "valen" in models:
        seconds = report["valen_epoch_seconds"]
        report.update(_graph_cost(models["valen"], dataset, batches, seconds))
    report["peak_gigabytes"] = round(_peak_gigabytes(), 2)
    report["peak_gigabytes_supervised_part"] = round(after_supervised, 2)
    for name, value in report.items():
        print(f"{name.replace('_', ' '):34}{value}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _graph_cost(model, dataset, batches, epoch_seconds):
    """What rebuilding VALEN's graph takes, and how many neighbours the search finds."""
    import numpy as np

    import valen_tf as vt
    from valen_tf import graph

    model._training_data = batches
    started = time.perf_counter()
    model.rebuild_graph()
    rebuild = time.perf_counter() - started
    embeddings = np.concatenate(
        [model._embed(x).numpy() for x, _ in dataset.batches(1000, shuffle=False)]
    )
    sample = np.random.default_rng(0).permutation(len(embeddings))[:1000]
    recall = _recall(embeddings, graph.nearest_neighbours(embeddings, 10), sample)
    default_interval = vt.callbacks.GraphRebuild().every
    return {
        "graph_rebuild_seconds": round(rebuild, 2),
        "rebuild_share_of_training": round(rebuild / default_interval / epoch_seconds, 3),
        "graph_recall_at_10": round(recall, 3),
    }


def _Clock():
    """A callback that times an epoch's steps: without start-up, tracing and graph building."""
    import keras

    class Clock(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self._started = time.perf_counter(), time.process_time()

        def on_epoch_end(self, epoch, logs=None):
            self.seconds = time.perf_counter() - self._started[0]
            self.cpu_seconds = time.process_time() - self._started[1]

    return Clock()


def _medians(times):
    return [statistics.median(column) for column in zip(*times, strict=True)]


def _data(options):
    import numpy as np

    if options.idx:
        images = gzip.decompress((options.idx / "train-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((options.idx / "train-labels-idx1-ubyte.gz").read_bytes())
        features = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)
        labels = np.frombuffer(labels, np.uint8, offset=8)
        features, labels = features[: options.examples], labels[: options.examples]
        return features.astype(np.float32) / 255, labels.astype(np.int64)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, options.examples)
    latent = rng.normal(size=(10, 16))[labels] + 0.7 * rng.normal(size=(options.examples, 16))
    features = latent @ rng.normal(size=(16, 784)) + rng.normal(size=(options.examples, 784))
    return features.astype(np.float32), labels


def _recall(embeddings, neighbours, sample):
    """Share of the sample's true 10 nearest neighbours that were found."""
    from sklearn.neighbors import NearestNeighbors

    exact = NearestNeighbors(n_neighbors=11, algorithm="brute").fit(embeddings)
    truth = exact.kneighbors(embeddings[sample], return_distance=False)
    found = 0
    for row, near in zip(sample, truth, strict=True):
        near = [other for other in near if other != row][:10]
        found += len(set(near) & set(neighbours[row]))
    return found / (10 * len(sample))


def _peak_gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
