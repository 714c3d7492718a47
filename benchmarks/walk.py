"""How far a reader has to walk: the files that one training step, and a CSV's way, pass through.

    python benchmarks/walk.py [--show]

Every function of the package is met when it is called for the first time. Printed are the number of files
and how often the next function that is met stands in another file than the one before. The step is one of
VALEN's after the warm-up; the CSV's way leads from a file to the label distributions of its rows.
"""

import argparse
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

import valen_tf as vt

PACKAGE = pathlib.Path(vt.__file__).parent
IMPORTING = ("<module>", "find_spec")  # is not part of the way
LIMITS = {"step": (5, 8), "csv": (15, 50)}  # files, changes


class Walk:
    """Follows the calls of functions of the package while it is entered."""

    def __enter__(self):
        self.calls = []
        sys.setprofile(self._see)
        return self

    def _see(self, frame, event, _):
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(str(PACKAGE))
            and code.co_name not in IMPORTING
        ):
            name = str(pathlib.Path(code.co_filename).relative_to(PACKAGE))
            if (name, code.co_name) not in self.calls:
                self.calls.append((name, code.co_name))

    def __exit__(self, *_):
        sys.setprofile(None)

    @property
    def files(self):
        """The files, by first visit."""
        return list(dict.fromkeys(file for file, _ in self.calls))

    @property
    def stops(self):
        """The functions at which the file changes."""
        return [
            call
            for before, call in zip([None, *self.calls], self.calls, strict=False)
            if before is None or before[0] != call[0]
        ]

    @property
    def changes(self):
        """How often the file changes."""
        return len(self.stops) - 1


def step():
    """One step of VALEN after the warm-up."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 4)).astype(np.float32)
    data = vt.PartialLabelDataset(features, rng.integers(0, 2, (60, 3)) | [1, 0, 0])
    model = vt.Valen(vt.networks.linear((4,), 3))
    model.compile()
    schedule = [vt.callbacks.WarmUp(1), vt.callbacks.GraphRebuild()]
    model.fit(data, epochs=2, callbacks=schedule, verbose=0)
    batch = next(iter(data.batches(60)))
    with Walk() as walk:
        model.train_step(batch)
    return walk


def csv():
    """From a CSV file to its label distributions."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "data.csv")
        rows = ["a,b,candidates"]
        for x, y in rng.normal(size=(60, 2)):
            rows.append(f"{x},{y},{'cat|dog' if abs(x) < 0.3 else 'cat' if x > 0 else 'dog'}")
        path.write_text("\n".join(rows) + "\n")
        _ = vt.PartialLabelDataset, vt.Valen, vt.networks.mlp  # which are imported when first used
        with Walk() as walk:
            data = vt.PartialLabelDataset.from_csv(path)
            network = vt.networks.mlp(data.feature_shape, data.num_classes, moments=data.moments())
            model = vt.Valen(network)
            model.compile()
            model.fit(data, epochs=12, verbose=0)
            model.label_distributions()
    return walk


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="print every change of file")
    options = parser.parse_args()
    for name, walk in (("step", step()), ("csv", csv())):
        files, changes = LIMITS[name]
        print(
            f"{name}: {len(walk.files)} files (at most {files}), {walk.changes} changes (at most {changes})"
        )
        if options.show:
            print("\n".join(f"    {file:32}{function}" for file, function in walk.stops))


if __name__ == "__main__":
    main()
