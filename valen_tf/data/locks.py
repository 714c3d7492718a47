"""Who may write: one lock for everything, names for what is half written, and what a kill left behind.

A lock is `flock` on a file: the system takes it from a process that ends, however it ends, so no lock is
ever stale. The file itself is deleted by whoever had the lock last; one that a kill left behind is free.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import socket
import time
import uuid

LOCK = ".lock"  # name of the lock of a whole folder
_OF_A_FILE = re.compile(r"\..+\.lock")  # names of locks that `claimed_file` makes
_SCRATCH = re.compile(
    r"\.(\d+|[0-9a-f]{32})\.partial(\.|$)"
)  # earlier versions had process numbers
_held = {}  # folder -> its open lock


@contextlib.contextmanager
def locked(path, doing="writing", *, wait=0.0):
    """Whether this process has a lock, for the length of a block.

    Args:
        path: The file of the lock; folders are made as needed.
        doing: What the process does, in a word, for those who find the lock taken.
        wait: Seconds to wait for another process.

    Yields:
        The open file, or `None` while another process has the lock.
    """
    path = pathlib.Path(path).absolute()
    file = _acquire(path, wait)
    if file is None:
        yield None
        return
    with file:
        file.truncate(0)
        file.write(f"{doing} here (process {os.getpid()} on {socket.gethostname()})")
        file.flush()
        try:
            yield file
        finally:
            if _is_at(file, path):
                path.unlink()


def _acquire(path, wait):
    """The open lock, or none while another process has it."""
    until = time.monotonic() + wait
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = open(path, "a")
        except FileNotFoundError:
            continue  # a process that ended took its empty folder along
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            if time.monotonic() >= until:
                return None
            time.sleep(0.05)
            continue
        if _is_at(file, path):
            return file
        file.close()  # the lock of a process that has just deleted it


def _is_at(file, path):
    """Whether an open file is still the one under its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def claimed(folder, doing, *, wait=0.0):
    """Makes a folder this process's own for the length of a block.

    What killed processes left half written in the folder is removed. A folder that was made for the block
    and is empty at its end is removed as well. `check` finds out whether somebody deleted the folder.

    Args:
        folder: The folder.
        doing: What the process does there, such as `"training"`.
        wait: Seconds to wait for another process.
    """
    folder = pathlib.Path(folder).absolute()
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with locked(folder / LOCK, doing, wait=wait) as lock:
            if lock is None:
                raise _taken(folder, folder / LOCK, doing)
            sweep(folder.rglob("*"))
            _held[folder] = lock
            try:
                yield
                check(folder)
            finally:
                del _held[folder]
    finally:
        for path in made:
            with contextlib.suppress(OSError):  # there is something in it
                path.rmdir()


@contextlib.contextmanager
def claimed_file(path, doing, *, wait=0.0):
    """As `claimed`, for a single file, or a few whose names differ in the ending."""
    path = pathlib.Path(path).absolute()
    lock = path.with_name(f".{path.stem}.lock")
    with locked(lock, doing, wait=wait) as mine:
        if mine is None:
            raise _taken(path, lock, doing)
        sweep_file(path)
        yield


def holds(path):
    """Whether this process has claimed a folder that a path is in."""
    return any(folder in pathlib.Path(path).absolute().parents for folder in _held)


def _taken(path, lock, doing):
    with contextlib.suppress(FileNotFoundError):
        doing = lock.read_text() or f"{doing} here"
    return BlockingIOError(
        f"{path} is taken: another process is {doing}. Wait until it has ended, or choose another place."
    )


def check(path):
    """Refuses a path in a claimed folder that was deleted since, which would begin with nothing in it."""
    path = pathlib.Path(path).absolute()
    for folder, lock in _held.items():
        if folder in (path, *path.parents) and not _is_at(lock, folder / LOCK):
            raise FileNotFoundError(
                f"{folder} was deleted while this process wrote to it, or {LOCK} in it was: what was "
                "written is not whole. The same command begins again, or continues with what is left."
            )


def scratch(path):
    """A name beside a path, of this process's own, for what is not yet whole."""
    return path.with_name(f"{path.stem}.{uuid.uuid4().hex}.partial{path.suffix}")


def is_ours(path):
    """Whether a file is none of the user's: a lock, or what is not yet whole."""
    name = path.name
    return name == LOCK or bool(_OF_A_FILE.fullmatch(name) or _SCRATCH.search(name))


def sweep(paths):
    """Removes those of some paths that are not whole; whoever calls it has the lock that they need."""
    for path in list(paths):
        if not _SCRATCH.search(path.name):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sweep_file(path):
    """Removes what killed processes left half written under a file's name, whatever its ending."""
    if path.parent.is_dir():
        beside = path.parent.iterdir()
        sweep(other for other in beside if _SCRATCH.split(other.name)[0] in _stems(path))


def _stems(path):
    return path.stem, f".{path.stem}"
