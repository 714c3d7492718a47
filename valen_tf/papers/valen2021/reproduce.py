"""The whole evaluation from one call: runs in parallel, records, tables and figures."""

import os
import pathlib
import time

from valen_tf.checks import COUNT, optional, require
from valen_tf.data import locks
from valen_tf.data.files import write
from valen_tf.data.sets import SPECS
from valen_tf.data.sets.registry import TRAINED_NETWORK
from valen_tf.methods import card, names
from valen_tf.papers.valen2021 import grid, paper, recording, results, typeset

TARGETS = (*paper.TABLES, *paper.FIGURES)
OF_THE_PAPER = tuple(name for name in TARGETS if name != "digits")


def reproduce(
    targets=OF_THE_PAPER,
    out="reproduction",
    *,
    page=None,
    jobs=1,
    report=print,
    prepare=None,
    **options,
):
    """Runs what tables and figures need, and writes them from the records.

    Runs go over joblib: `jobs` processes here or, inside `joblib.parallel_config(backend="dask")` and its
    like, a cluster that shares the folder. Finished runs are not run again; a run that another process
    is at is left to it. `summary.md` in the folder is renewed after every run.

    Args:
        targets: Names of tables and figures; see `grid.runs`.
        out: Folder of the reproduction.
        page: Markdown file of the results; `RESULTS.md` in the folder by default.
        jobs: Number of processes.
        report: Called with lines of progress.
        prepare: Called when names and numbers are known to be good, before TensorFlow is needed.
        **options: Of `grid.runs`.

    Returns:
        Path of the page of results.
    """
    import joblib

    unknown = [name for name in targets if name not in TARGETS]
    if unknown:
        raise ValueError(f"`targets` must be of {', '.join(TARGETS)}. Received: {unknown[0]!r}")
    _check(jobs, options)
    if prepare is not None:
        prepare()
    out = pathlib.Path(out)
    wanted, missing = _at_hand(grid.runs(targets, **options))
    for name, reason in missing.items():
        report(f"left out: {name}: {reason}")
    if not wanted:
        raise ValueError("There is nothing to run: no method, data set and table go together.")
    for warning in (*_other_files(wanted), *_lacking_networks(wanted)):
        report(f"warning: {warning}")
    todo = [run for run in wanted if not recording.is_done(run, out)]
    report(f"{len(wanted)} runs, {len(wanted) - len(todo)} of them done before")
    for run in wanted:
        if run not in todo and not recording.is_tidy(run, out):
            recording.execute(run, out)  # which has nothing to do but that
    cores = max(1, joblib.cpu_count() // max(1, jobs))
    started = time.perf_counter()
    with _Bar(len(todo)) as bar:
        tasks = (joblib.delayed(_one)(run, str(out), cores) for run in todo)
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        failures = []
        for done, (name, record, error) in enumerate(parallel(tasks), 1):
            bar.step()
            if error:
                failures.append(name)
                report(f"FAILED {name}: {error}")
            elif record is None:
                report(f"{name}: another process is at it")
            else:
                left = _time_left(time.perf_counter() - started, done, len(todo))
                report(
                    f"{name}: {100 * record['accuracy']:.2f} % in {record['seconds']:.0f} s "
                    f"({done} of {len(todo)}{left})"
                )
                _summarize(out)
    if failures and len(failures) == len(todo) == len(wanted):
        raise ValueError(f"All {len(failures)} runs failed; see above.")
    _summarize(out)  # also after a kill between the last record and its summary
    with locks.claimed_file(out / "RESULTS.md", "writing results", wait=600):
        locks.sweep((out / "figures").glob("*"))
        page = results.write(out / "records", page or out / "RESULTS.md", assets=out / "figures")
    if failures:
        raise ValueError(f"{len(failures)} failed, the first is {failures[0]}; see above.")
    return page


def _check(jobs, options):
    """Refuses options that mean nothing."""
    if jobs != -1:  # joblib's word for all cores
        COUNT("jobs", jobs)
    for argument in ("trials", "epochs", "examples"):
        optional(COUNT)(argument, options.get(argument))
    for name in options.get("methods") or ():
        known = ", ".join(names())
        require(card(name) is not None, f"`methods` must be of {known}", repr(name))
    for name in options.get("datasets") or ():
        require(name in SPECS, f"`datasets` must be of {', '.join(SPECS)}", repr(name))


def _time_left(elapsed, done, total):
    """The time left by the runs so far, in words; nothing after the last.

    Example:
        >>> _time_left(60, 2, 4), _time_left(600, 1, 9), _time_left(60, 4, 4)
        (', about 60 s left', ', about 80 min left', '')
    """
    if done == total:
        return ""
    seconds = elapsed / done * (total - done)
    return (
        f", about {seconds / 60:.0f} min left" if seconds > 90 else f", about {seconds:.0f} s left"
    )


def _one(run, out, cores):
    """A run in a worker: its name, its record, and what went wrong if anything did."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.get_logger().setLevel(
        "ERROR"
    )  # it warns that functions are traced again: every run has its own
    try:  # processes side by side share the cores
        tf.config.threading.set_intra_op_parallelism_threads(cores)
        tf.config.threading.set_inter_op_parallelism_threads(cores)
    except RuntimeError:
        pass  # this process has begun before
    try:
        return run.name, recording.execute(run, out), None
    # One bad run must not end the others; it is reported, and makes the whole call fail at the end.
    except Exception as error:
        return run.name, None, f"{type(error).__name__}: {error}"


def _at_hand(runs):
    """The runs whose data can be loaded, and why the others cannot."""
    missing = {}
    for run in runs:
        data = run.config.data
        spec = SPECS[data.name]
        if spec.kind != "embedded" and data.data_dir is None:
            missing[data.name] = (
                f"{spec.file} is in none of the data folders ({spec.source}, {spec.address})"
            )
    return [run for run in runs if run.config.data.name not in missing], missing


def _other_files(runs):
    """What to say of data files that are not those of the committed records."""
    from valen_tf.data import files

    for name, folder in sorted({(run.config.data.name, run.config.data.data_dir) for run in runs}):
        if SPECS[name].sha256 is not None:
            path = files.find_file(SPECS[name], folder)
            warning = files.checksum_warning(path, SPECS[name].sha256)
            if warning:
                yield warning


def _lacking_networks(runs):
    """That other candidate sets are drawn than the published ones, for want of a clean network."""
    for name, data in sorted({(run.lacks, run.config.data.name) for run in runs if run.lacks}):
        tables = ", ".join(dict.fromkeys(run.table for run in runs if run.lacks == name))
        command = f"valen-tf data clean-network {data} --epochs 400"
        yield (
            f"NO CLEAN NETWORK: {name} is in none of the data folders. {tables} on {data} gets OTHER "
            f"CANDIDATE SETS, by a network {TRAINED_NETWORK} instead of 400; the tables say so. "
            f"`{command} --data-dir TFDS_FOLDER --out FOLDER/{name}` trains one."
        )


def _summarize(out):
    found = results.read(out / "records")
    pages = [
        typeset.markdown([record for record in found if record["table"] == name], name)
        for name in paper.TABLES
        if any(record["table"] == name for record in found)
    ]
    with locks.claimed_file(out / "summary.md", "writing a summary", wait=600):
        write(out / "summary.md", lambda path: path.write_text("\n\n".join(pages) + "\n"))


class _Bar:
    """Progress over runs with the time left, on a terminal."""

    def __init__(self, total):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        console = Console()
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("runs", total=total)

    def __enter__(self):
        self._progress.start()
        return self

    def step(self):
        """One run more."""
        self._progress.advance(self._task)

    def __exit__(self, *_):
        self._progress.stop()
