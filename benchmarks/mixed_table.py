"""Seconds and memory to read, check and prepare a table of mixed columns, beside pandas.read_csv alone.

`python benchmarks/mixed_table.py [--rows 100000]` writes a table of 50 columns and the candidates (30
of numbers, 3 with gaps; 14 of words; 4 of dates; 1 of texts; 1 of ids) into a temporary folder, and
measures each part in a process of its own, in seconds by the clock and of the processor.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np


def write(path, rows):
    import pandas as pd

    random = np.random.default_rng(0)
    frame = {"id": [f"row-{number:07d}" for number in range(rows)]}
    for number in range(30):
        values = random.normal(number, 1 + number, rows).round(4)
        if number < 3:
            values[random.random(rows) < 0.1] = np.nan
        frame[f"number {number}"] = values
    for number in range(14):
        words = np.array([f"word {word}" for word in range(3 + 2**number % 97)])
        frame[f"words {number}"] = words[random.integers(len(words), size=rows)]
    for number in range(4):
        days = random.integers(0, 10_000, rows)
        frame[f"date {number}"] = pd.Timestamp("1995-01-01") + pd.to_timedelta(days, "D")
    vocabulary = np.array([f"term{number}" for number in range(20_000)])
    ranks = np.minimum(random.zipf(1.3, (rows, 12)), len(vocabulary)) - 1
    frame["text"] = [" ".join(line) for line in vocabulary[ranks]]
    labels = random.integers(10, size=(rows, 2))
    frame["candidates"] = [f"class {a}|class {b}" for a, b in labels]
    pd.DataFrame(frame).to_csv(path, index=False)


def times():
    """By the clock, and of the processor; they differ where others work on the same one."""
    return np.array([time.perf_counter(), time.process_time()])


def measure(part, path):
    """Runs in a process of its own: imports count neither as time nor as memory of the part."""
    import pandas as pd
    import sklearn.feature_extraction.text

    import valen_tf as vt
    from valen_tf.data import tabular

    assert sklearn and tabular
    seconds = {}
    start = times()
    if part == "pandas":
        pd.read_csv(path)
        seconds["pandas.read_csv"] = times() - start
    else:
        data = vt.PartialLabelDataset.from_table(path)
        seconds["read and prepare"] = times() - start
        start = times()
        train, _ = data.split(0.2, seed=0)
        seconds["split, prepare anew"] = times() - start
        start = times()
        vt.check(train)
        seconds["check"] = times() - start
    told = {name: list(pair) for name, pair in seconds.items()}
    print(json.dumps({"seconds": told, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--json", help="file to write the record to")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        measure(options.part, options.path)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "mixed.csv")
        write(path, options.rows)
        print(f"{options.rows} rows, 50 columns, {path.stat().st_size / 2**20:.0f} MB")
        found, load = {}, round(os.getloadavg()[0], 1)
        for part in ("pandas", "valen_tf"):
            command = [sys.executable, __file__, "--part", part, "--path", str(path)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found[part] = json.loads(output.splitlines()[-1])
    if options.json:
        record = {"rows": options.rows, "load_average": load, **found}
        pathlib.Path(options.json).write_text(json.dumps(record) + "\n")
    print(f"{'':24} {'clock':>8} {'processor':>11}")
    for part in found.values():
        for name, (clock, processor) in part["seconds"].items():
            print(f"{name:24} {clock:8.2f} s {processor:8.2f} s")
    clock, processor = np.sum([*found["valen_tf"]["seconds"].values()], axis=0)
    alone = found["pandas"]["seconds"]["pandas.read_csv"]
    print(f"{'all of it (below 20)':24} {clock:8.2f} s {processor:8.2f} s")
    print(f"{'against pandas.read_csv':24} {clock / alone[0]:8.1f} x {processor / alone[1]:8.1f} x")
    print(f"{'peak memory (below 2)':24} {found['valen_tf']['peak'] / 2**20:8.2f} GB")


if __name__ == "__main__":
    main()
