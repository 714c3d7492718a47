"""Kills commands while they write, gives them again, and compares with a run that nobody disturbed.

`python benchmarks/kills.py --injected 60 --random 60` prints a row for each kind of command: how many kills
were tried, and after how many the same command led to the same result, to the bit and without leftovers.
An injected kill comes at the k-th call that changes a file (open, write, fsync, rename, unlink, mkdir ...),
also of TensorFlow and HDF5: `kills.c` is preloaded and counts. A write that kills leaves half of its bytes.
TensorFlow is imported once; every command runs in a fork. Needs a C compiler, and Linux.
"""

import argparse
import ctypes
import dataclasses
import functools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
SMALL = ("data.corruption=uniform", "data.examples=80")
DEEP = (*SMALL, "training.epochs=2", "training.warm_up_epochs=1", "network.hidden_units=[8]")
RUN = ("train", "--method", "plknn", *SMALL, "--out", "{}/run")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A command, its arguments without the folder, and how dear it is."""

    name: str
    arguments: tuple
    share: int  # of the kills
    before: tuple = ()  # a command whose folder, `before`, the first needs


KINDS = (
    Kind("train plknn", RUN, 4),
    Kind("train proden", ("train", "--method", "proden", *DEEP, "--out", "{}/run"), 2),
    Kind("train valen", ("train", *DEEP, "--out", "{}/run"), 1),
    Kind(
        "tune plknn, bayesian",
        ("tune", "--method", "plknn", *SMALL, "--trials", "5", "--out", "{}/search"),
        4,
    ),
    Kind(
        "tune proden, hyperband",
        ("tune", "--method", "proden", *DEEP, "--tuner", "hyperband", "--out", "{}/search"),
        1,
    ),
    Kind(
        "reproduce digits",
        (
            "reproduce",
            "digits",
            "--methods",
            "proden",
            "--trials",
            "1",
            "--epochs",
            "2",
            "--examples",
            "80",
            "--no-selection",
            "--out",
            "{}/grid",
        ),
        1,
    ),
    Kind(
        "export",
        ("export", "{}/../before/run", "{}/served"),
        2,
        ("train", "--method", "proden", *DEEP, "--out", "{}/run"),
    ),
    Kind("data corrupt", ("data", "corrupt", "digits", "--out", "{}/sets/digits.npz"), 1),
    Kind(
        "compare",
        (
            "compare",
            "--methods",
            "plknn",
            "proden",
            "--repeats",
            "2",
            *DEEP,
            "--out",
            "{}/compared",
        ),
        2,
    ),
    Kind("predict", ("predict", "{}/../before/run", "--output", "{}/new/predictions.csv"), 1, RUN),
    Kind(
        "report",
        ("report", "{}/../before/run", "--output", "{}/report.html", "--frame", "{}/labels.csv"),
        1,
        RUN,
    ),
    Kind("data example", ("data", "example", "{}/tables"), 1),
)


def rows(injected=60, at_random=60, *, kinds=None, seed=0, report=print):
    """Kills, and counts what survives.

    Args:
        injected: Number of kills at a call that changes a file.
        at_random: Number of kills at a random moment.
        kinds: Names of `KINDS`; all by default.
        seed: Of the moments.
        report: Called with a line for each kill that did harm.

    Yields:
        `(kind, tried, survived)`.
    """
    library = pathlib.Path(tempfile.mkdtemp()) / "kills.so"
    compiler = shutil.which("gcc") or shutil.which("cc")
    command = [compiler, "-shared", "-fPIC", "-w", "-o", library, ROOT / "benchmarks/kills.c"]
    subprocess.run([*command, "-ldl"], check=True)
    environment = {
        **os.environ,
        **{"LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        **{"KILLS_LIBRARY": str(library), "CUDA_VISIBLE_DEVICES": ""},
    }
    request = json.dumps([injected, at_random, kinds, seed])
    script = [sys.executable, __file__, "--serve", request]
    with subprocess.Popen(script, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("row "):
                yield tuple(json.loads(line[4:]))
            elif line.startswith("harm "):
                report(line[5:].rstrip())
    if process.returncode:
        raise RuntimeError(f"the kills ended with code {process.returncode}")
    shutil.rmtree(library.parent)


# -- the process that forks ---------------------------------------------------------------------


def serve(injected, at_random, kinds, seed):
    """Prints a row for each kind; runs with `kills.c` preloaded."""
    import h5py  # noqa: F401, imported once for all forks
    import keras_tuner  # noqa: F401
    import sklearn.neighbors  # noqa: F401
    import tensorflow  # noqa: F401

    import valen_tf as vt

    del vt
    chosen = [kind for kind in KINDS if kinds is None or kind.name in kinds]
    shares = sum(kind.share for kind in chosen)
    draw = random.Random(seed)
    for kind in chosen:
        number = [max(1, round(total * kind.share / shares)) for total in (injected, at_random)]
        with tempfile.TemporaryDirectory() as folder:
            for how, tried, survived in _kind(kind, pathlib.Path(folder), number, draw):
                print("row " + json.dumps([f"{kind.name}, {how}", tried, survived]), flush=True)


def _kind(kind, folder, number, draw):
    if kind.before:
        _run(kind.before, folder / "before")
    started = time.monotonic()
    calls = _run(kind.arguments, folder / "whole")
    seconds = time.monotonic() - started
    expected = result(folder / "whole")
    for how, tried in zip(("at a write", "at random"), number, strict=True):
        survived = 0
        for trial in range(tried):
            if how == "at a write":  # over the whole run, not at the same calls each time
                place = 1 + int(calls * (trial + draw.random()) / tried)
                harm = _harm(kind, folder, expected, call=place)
                where = f"call {place} of {calls}"
            else:
                place = seconds * draw.random()
                harm = _harm(kind, folder, expected, after=place)
                where = f"after {place:.2f} of {seconds:.2f} s"
            survived += harm is None
            if harm:
                print(f"harm {kind.name}, {where}: {harm}", flush=True)
        yield how, tried, survived


def _harm(kind, folder, expected, *, call=0, after=None):
    """What a kill did that the same command did not repair, or none."""
    here = folder / "killed"
    shutil.rmtree(here, ignore_errors=True)
    try:
        _run(kind.arguments, here, call=call, after=after)
        _run(kind.arguments, here)
    except RuntimeError as error:
        return str(error)
    try:
        found = result(here)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        return f"a broken file: {error}"
    if (
        kind.name == "export"
    ):  # a kill after the rename leaves a whole version, and the next is made
        versions = {name.split("/")[1] for name in found}
        ends = [
            {n.split("/", 2)[2]: v for n, v in found.items() if f"/{w}/" in n} for w in versions
        ]
        wanted = {name.split("/", 2)[2]: value for name, value in expected.items()}
        return None if ends and all(end == wanted for end in ends) else f"versions {versions}"
    differing = sorted(
        name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
    )
    return f"differs: {', '.join(differing)}" if differing else None


def _run(arguments, folder, *, call=0, after=None):
    """Runs a command in a fork; returns how often it changed a file, and raises where it failed."""
    folder.mkdir(exist_ok=True)
    end, begin = os.pipe()
    child = os.fork()
    if not child:
        _command(arguments, folder, begin, call)
    os.close(begin)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(end) as answer:
        told = answer.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, *([-signal.SIGKILL] if call or after else [])):
        raise RuntimeError((folder.parent / "output.txt").read_text().strip()[-600:])
    return int(told or 0)


def _command(arguments, folder, begin, call):
    """The fork."""
    code = 70
    try:
        output = os.open(folder.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        library = ctypes.CDLL(os.environ["KILLS_LIBRARY"])
        library.kills_arm(str(folder).encode(), ctypes.c_long(call))
        from valen_tf.cli import main

        code = main([argument.format(folder) for argument in arguments])
        os.write(begin, str(library.kills_count()).encode())
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
    finally:
        sys.stdout.flush()
        os._exit(code)


# -- results, without times ---------------------------------------------------------------------

_TIMES = ("seconds", "peak_gigabytes", "commit", "display", "created", "date_saved")


def result(folder):
    """What a command left: name of a file below the folder -> its content, or what of it must be equal."""
    return {
        str(path.relative_to(folder)): _content(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _content(path):
    if path.suffix == ".json":
        return _timeless(json.loads(path.read_text()))
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return {name: archive[name].tobytes() for name in archive if name not in _TIMES}
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            return _weights(archive.open("model.weights.h5"))
    if path.suffix == ".h5":
        return _weights(path)
    if path.name == "variables.index":
        return _variables(path.with_suffix(""))
    if path.name == "comparison.csv":
        import pandas

        return pandas.read_csv(path).drop(columns=[*_TIMES], errors="ignore").to_csv(index=False)
    # Times, and the order in which Python made its objects, are in them.
    if path.suffix in (".svg", ".png", ".pb", ".md", ".html", ".tex") or ".data-" in path.name:
        return path.stat().st_size > 0
    return path.read_bytes()


def _timeless(value):
    if isinstance(value, dict):
        known = {key: _timeless(inner) for key, inner in value.items() if key not in _TIMES}
        if "tried_so_far" in known:  # a set, which KerasTuner writes in any order
            known["tried_so_far"] = sorted(known["tried_so_far"])
        return known
    return value


def _weights(file):
    import h5py

    found = {}
    with h5py.File(file) as archive:

        def visit(name, item):
            if isinstance(item, h5py.Dataset):
                found[name] = np.asarray(item).tobytes()

        archive.visititems(visit)
    return found


def _variables(prefix):
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(prefix))
    names = [name for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name]
    return sorted(np.asarray(reader.get_tensor(name)).tobytes() for name in names)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--injected", type=int, default=60)
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--kinds", nargs="+", choices=[kind.name for kind in KINDS])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*json.loads(options.serve))
    else:
        show = functools.partial(print, flush=True)
        table = []
        for row in rows(options.injected, options.random, kinds=options.kinds, report=show):
            table.append(row)
            show(f"{row[0]:40} {row[2]:4} of {row[1]}")
        show(f"{'all':40} {sum(row[2] for row in table):4} of {sum(row[1] for row in table)}")
