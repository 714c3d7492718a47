"""Seconds to load each data set, the imports it needs included: a new process per set.

    python benchmarks/data_loading.py --data-dir DIR [DIR ...] [--tfds-dir DIR] [--names lost ...]

The budgets: 2 s for any table, 15 s for MNIST from a prepared TFDS folder; on a busy machine the seconds
of CPU tell more. Soccer Player and Yahoo! News are timed on made files of their format and size where
theirs are not in the folders.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

_CODE = """
import sys, time
from valen_tf.data import sets as datasets
wall, cpu = time.perf_counter(), time.process_time()
datasets.load(sys.argv[1], sys.argv[2])
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(f"{sys.argv[1]:18} {wall:6.2f} s, {cpu:6.2f} s of CPU  {sys.argv[2]}", flush=True)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", nargs="+", default=[], type=pathlib.Path)
    parser.add_argument("--tfds-dir", type=pathlib.Path)
    parser.add_argument("--names", nargs="+")
    options = parser.parse_args()

    from valen_tf.data import sets as datasets

    with tempfile.TemporaryDirectory() as scratch:
        for name in options.names or datasets.NAMES:
            spec = datasets.SPECS[name]
            folders = [*options.data_dir, *([options.tfds_dir] if options.tfds_dir else [])]
            folder = next((f for f in folders if (f / spec.file).exists()), None)
            if folder is None and spec.kind == "real-world":
                folder = pathlib.Path(scratch)
                make(spec, folder / spec.file)
            if folder is None and spec.kind != "embedded":
                print(f"{name:18}      -    not at hand")
                continue
            subprocess.run([sys.executable, "-c", _CODE, name, str(folder or "")], check=True)


def make(spec, path):
    """A file of the public format, with the counts and about the candidates of a set."""
    import numpy as np
    import scipy.io
    import scipy.sparse

    from valen_tf.data import candidates

    rng = np.random.default_rng(0)
    (examples,) = spec.examples
    labels = rng.integers(spec.classes, size=examples)
    chance = (spec.candidates - 1) / (spec.classes - 1)
    sets = candidates.uniform(labels, spec.classes, flip_probability=chance, seed=0)
    content = {
        "data": rng.normal(size=(examples, *spec.shape)),
        "partial_target": scipy.sparse.csc_matrix(sets.T.astype(float)),
        "target": scipy.sparse.csc_matrix(np.eye(spec.classes)[:, labels]),
    }
    scipy.io.savemat(path, content, do_compression=True)


if __name__ == "__main__":
    main()
