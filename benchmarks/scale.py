"""How time, memory and the graph's recall grow with the number of examples.

    python benchmarks/scale.py [--sizes 10000 30000 60000 250000 1000000] [--network small] [--rounds 3]
        [--json FILE] [--plot FILE]

Synthetic clusters of 64 features and 100 classes, batches of 256. Every size is measured by
`benchmarks/epoch_cost.py` in a process of its own: VALEN against a plain supervised Keras epoch, at up to
60,000 examples the other deep methods too; the graph's build, its refresh after one more epoch, the recall
of both against exact search; peak memory. Growth is the slope of a straight line through the logarithms: 1
is linear in the number of examples. The graph is exact up to 20,000 examples, and its growth is that of the
sizes above.

The last lines compare the largest size with 60,000 examples: time per example of an epoch with a tenth of
a graph build, as the default schedule has it, is to be at most 1.1 times as long; peak memory at most 6 GB;
the recall at least 0.95.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

_BASELINES = ["proden", "rc", "cc", "ga", "d2cnn", "valen_authors"]
_BASELINE_LIMIT = 60_000  # examples
_EXACT_LIMIT = 20_000  # examples
_COLUMNS = {
    "examples": "examples",
    "supervised_epoch_seconds": "supervised s",
    "valen_epoch_seconds": "VALEN s",
    "epoch_ratio": "ratio",
    "valen_step_milliseconds": "step ms",
    "graph_rebuild_seconds": "graph s",
    "graph_recall_at_10": "recall",
    "graph_refresh_seconds": "refresh s",
    "graph_refresh_recall_at_10": "recall",
    "microseconds_per_example": "us/example",
    "peak_gigabytes": "peak GB",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [10_000, 30_000, 60_000, 250_000, 1_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes)
    parser.add_argument("--network", default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    options = parser.parse_args()

    reports = []
    print("".join(f"{title:>13}" for title in _COLUMNS.values()), flush=True)
    for size in sorted(options.sizes):
        reports.append(measure(size, options.network, options.rounds))
        print("".join(f"{reports[-1][key]:>13}" for key in _COLUMNS), flush=True)
    exponents = growth(reports)
    print("\ngrowth with the number of examples, as an exponent (1: linear)")
    for name, slope in exponents.items():
        print(f"  {name.replace('_', ' '):30}{slope}")
    print_baselines(reports)
    print_comparison(reports)
    if options.json:
        content = {"sizes": reports, "exponents": exponents}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    if options.plot:
        plot(reports, options.plot)


def measure(size, network, rounds):
    """The report of one size, from a process of its own."""
    methods = ["valen", *(_BASELINES if size <= _BASELINE_LIMIT else [])]
    script = pathlib.Path(__file__).with_name("epoch_cost.py")
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "report.json"
        command = [sys.executable, str(script), "--examples", str(size), "--network", network]
        command += ["--features", "64", "--classes", "100", "--rounds", str(rounds)]
        command += ["--json", str(path), "--methods", *methods]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        report = json.loads(path.read_text())
    seconds = report["valen_epoch_seconds"] + report["graph_rebuild_seconds"] / 10
    report["microseconds_per_example"] = round(1e6 * seconds / size, 1)
    return report


def growth(reports):
    """Slopes of logarithms of time and memory over the logarithm of the number of examples."""
    import numpy as np

    exponents = {}
    for name in (
        "supervised_epoch_seconds",
        "valen_epoch_seconds",
        "graph_rebuild_seconds",
        "graph_refresh_seconds",
        "peak_gigabytes",
    ):
        first = _EXACT_LIMIT if name.startswith("graph") else 0
        points = [(r["examples"], r[name]) for r in reports if r["examples"] > first and r[name]]
        if len(points) > 1:
            slope, _ = np.polyfit(*np.log(points).T, 1)
            exponents[name] = round(float(slope), 2)
    return exponents


def print_baselines(reports):
    for report in reports:
        if "proden_epoch_ratio" in report:
            ratios = [f"{name} {report[f'{name}_epoch_ratio']}" for name in _BASELINES]
            print(f"\nepochs relative to a supervised one, {report['examples']} examples")
            print(f"  valen {report['epoch_ratio']}, {', '.join(ratios)}")


def print_comparison(reports):
    large = reports[-1]
    print(f"\n{large['examples']} examples")
    print(f"  peak memory                           {large['peak_gigabytes']} GB (at most 6)")
    worst = min(report["graph_recall_at_10"] for report in reports)
    worst = min(worst, *(report["graph_refresh_recall_at_10"] for report in reports))
    print(f"  lowest recall of all sizes            {worst} (at least 0.95)")
    reference = [report for report in reports if report["examples"] == 60_000]
    if reference:
        ratio = large["microseconds_per_example"] / reference[0]["microseconds_per_example"]
        print(f"  time per example, against 60000       {ratio:.2f} (at most 1.1)")
        graph = large["graph_rebuild_seconds"] / large["examples"]
        graph /= reference[0]["graph_rebuild_seconds"] / 60_000
        print(f"  of the graph's build alone            {graph:.2f}")


def plot(reports, path):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    sizes = [report["examples"] for report in reports]
    figure, (time, memory) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for name, label in {
        "supervised_epoch_seconds": "supervised epoch",
        "valen_epoch_seconds": "VALEN epoch",
        "graph_rebuild_seconds": "graph build",
        "graph_refresh_seconds": "graph refresh",
    }.items():
        time.loglog(sizes, [report[name] for report in reports], marker="o", label=label)
    time.set_ylabel("seconds")
    time.legend()
    memory.plot(sizes, [report["peak_gigabytes"] for report in reports], marker="o")
    memory.set_ylim(bottom=0)
    memory.set_ylabel("peak memory, GB")
    for axes in (time, memory):
        axes.set_xlabel("examples")
        axes.grid(alpha=0.3)
    figure.savefig(path)


if __name__ == "__main__":
    main()
