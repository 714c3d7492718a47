"""The whole campaign against this package: kills, processes at once, bad input, attacks.

    python benchmarks/campaign.py [--injected 62 --random 62] [--parts kills processes input attacks]

Printed is a row for each kind: how many were tried, and how many the package survived. A kill is survived
if the same command then leads to the same result, to the bit (`kills.py`); a second process, if it is told
that the folder is taken or finds the work done; bad input, if it is refused in one line that names the
argument; an attack, if its test passes. The exit code is 1 if anything was not survived.
"""

import argparse
import collections
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import kills

import valen_tf

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}


def killed(options):
    """Rows of the kills, by command and moment."""
    yield from kills.rows(options.injected, options.random)


def at_once(options, number=12):
    """One row: processes that train into one folder at the same time."""
    words = ["data.corruption=uniform", "training.epochs=12", "network.hidden_units=[8]"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "valen_tf.cli", "train", *words, "--out", f"{folder}/run"]
        started = [
            subprocess.Popen(
                command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            for _ in range(number)
        ]
        ended = [(process.communicate()[1].decode(), process.returncode) for process in started]
        told = [code == 0 or "another process is" in text for text, code in ended]
        whole = pathlib.Path(folder, "run", "summary.json").exists()
    yield f"{number} processes train into one folder", number, sum(told) if whole else 0


def bad_input(options):
    """Rows of the bad values, by door."""
    sys.path.insert(0, str(ROOT / "tests"))
    import bad_inputs

    counts = collections.defaultdict(lambda: [0, 0])
    for case in bad_inputs.cases():
        counts[case.kind][0] += 1
        counts[case.kind][1] += bad_inputs.verdict(case) is None
    yield from ((kind, *count) for kind, count in counts.items())


def attacks(options):
    """Rows of the attacks, by what is attacked: the tests of `tests/test_safety.py` and the server's."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        files = [ROOT / "tests" / f"test_{name}.py" for name in ("safety", "http_server")]
        command = [sys.executable, "-m", "pytest", "-q", *files, f"--junitxml={report}"]
        subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        counts = collections.defaultdict(lambda: [0, 0])
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = case.get("name").partition("[")[0].removeprefix("test_").replace("_", " ")
            counts[name][0] += 1
            counts[name][1] += not len(case)  # a failure, an error or a skip is an element
    yield from ((kind, *count) for kind, count in counts.items())


PARTS = {"kills": killed, "processes": at_once, "input": bad_input, "attacks": attacks}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--injected", type=int, default=62, help="kills at a write")
    parser.add_argument("--random", type=int, default=62, help="kills at a random moment")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    started, tried_ever, lost = time.monotonic(), 0, 0
    print(f"valen_tf {valen_tf.__version__}, Python {platform.python_version()}\n", flush=True)
    for part in options.parts:
        tried_all = survived_all = 0
        for kind, tried, survived in PARTS[part](options):
            print(f"{kind:70}{tried:6}{survived:9}", flush=True)
            tried_all, survived_all = tried_all + tried, survived_all + survived
        print(f"{part.upper():70}{tried_all:6}{survived_all:9}\n", flush=True)
        tried_ever, lost = tried_ever + tried_all, lost + tried_all - survived_all
    minutes = (time.monotonic() - started) / 60
    print(f"{'ALL':70}{tried_ever:6}{tried_ever - lost:9}   in {minutes:.0f} minutes")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
