"""Files: written whole or not at all, read or told what is wrong; public ones, told from other copies."""

import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import zipfile
import zlib

import numpy as np

from valen_tf.checks import require
from valen_tf.data import locks


def write(path, writer):
    """Writes a file whole or not at all, under a name of this process's own until it is on the disk.

    Args:
        path: The file.
        writer: Called with another path in the same folder, where it writes.
    """
    # Before the folder is made: a deleted one must not come back without its contents.
    locks.check(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = locks.scratch(path)
    try:
        writer(scratch)
        sync(scratch)
        os.replace(scratch, path)
        sync(path.parent)  # the new name is on the disk as well
    finally:
        scratch.unlink(missing_ok=True)


_WAIT = 60  # seconds, for another process that writes the same file
_STREAMS = tuple(map(pathlib.Path, ("/dev", "/dev/fd", "/proc/self/fd")))


def write_alone(path, writer):
    """As `write`, of a file that need not be in a folder that this process has claimed.

    Another process that writes the file is waited for, and what a kill left half written is removed. A
    stream, such as /dev/stdout, is written to and not replaced.

    Args:
        path: The file.
        writer: As of `write`.
    """
    path = pathlib.Path(path)
    if locks.holds(path):
        write(path, writer)
    elif is_stream(path):
        with tempfile.TemporaryDirectory() as folder:
            scratch = pathlib.Path(folder, path.name)
            writer(scratch)
            with open(scratch, "rb") as made, _stream(path) as stream:
                shutil.copyfileobj(made, stream)
    else:
        with locks.claimed_file(path, "writing", wait=_WAIT):
            write(path, writer)


def is_stream(path):
    """Whether a path is that of a pipe or a device, or names an open file of this process."""
    path = pathlib.Path(path)
    other = path.exists() and not path.is_file() and not path.is_dir()
    return other or path.absolute().parent in _STREAMS


def _stream(path):
    """A stream, open for writing; one of this process's own goes on where it is."""
    number = {"stdout": "1", "stderr": "2"}.get(path.name, path.name)
    if path.absolute().parent in _STREAMS and number.isdigit():
        sys.stdout.flush()
        return os.fdopen(os.dup(int(number)), "wb")
    return open(path, "ab")


def sync(path):
    """Waits until a file is on the disk, or the names in a folder are."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(folder):
    """As `sync`, for all that a folder holds."""
    for path in (*folder.rglob("*"), folder):
        sync(path)


def renew(page, begin, end, text):
    """Puts a text in the place of the one between two lines of a page that people write.

    Args:
        page: Path of the page.
        begin: The line before the text, which the page has once.
        end: The line after the text; the first one that follows counts.
        text: The new text.
    """
    page = pathlib.Path(page)
    before, found, rest = page.read_text(encoding="utf-8").partition(f"{begin}\n")
    _, closed, after = rest.partition(end)
    rule = f"The page must have the lines {begin} and {end} once, in this order"
    require(found and closed and begin not in rest, rule, str(page))
    renewed = f"{before}{begin}\n{text}\n{end}{after}"
    write(page, lambda scratch: scratch.write_text(renewed, encoding="utf-8"))


def write_arrays(path, arrays, write=write):
    """Writes arrays, a dict, in NumPy's format, whatever the ending of the path, by `write` or its like."""

    def writer(scratch):
        with open(scratch, "wb") as file:
            np.savez(file, **arrays)

    write(path, writer)


def write_json(path, value):
    """Writes a value as JSON."""
    write(path, lambda scratch: scratch.write_text(json.dumps(value, indent=1) + "\n"))


def read_json(path, advice, keys=()):
    """Reads a dict from JSON, or says which file is broken and what to do.

    Args:
        path: The file.
        advice: What to do about a broken file.
        keys: Keys that the dict must have.
    """
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise broken(path, advice, error) from error
    if not isinstance(value, dict) or not set(keys) <= value.keys():
        raise broken(path, advice, f"no {', '.join(keys) or 'dict'} in it")
    return value


def read_arrays(path, advice, keys=()):
    """Reads what `write_arrays` wrote, or says which file is broken and what to do."""
    try:
        # Opened here, as NumPy leaves a file open that it cannot read.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise broken(path, advice, error) from error
    if not set(keys) <= arrays.keys():
        raise broken(path, advice, f"no {', '.join(keys)} in it")
    return arrays


def broken(path, advice, reason):
    """The error that tells of a file that is empty, cut short or something else."""
    reason = str(reason).strip().split("\n")[0] or type(reason).__name__
    return ValueError(f"{path} is empty, cut short or of another kind ({reason}): {advice}")


def folder_of(spec, data_dir=None):
    """Where the files of a data set are looked for.

    Args:
        spec: Row of the registry.
        data_dir: A folder. By default the one that the environment names: `TFDS_DATA_DIR` of an image set,
            else TFDS's own; `VALEN_TF_DATA_DIR` of the others, else the current one.

    Returns:
        The path, with the home folder in the place of `~`.
    """
    images = spec.kind == "images"
    variable, usual = "VALEN_TF_DATA_DIR", "."
    if images:
        variable, usual = "TFDS_DATA_DIR", "~/tensorflow_datasets"
    return pathlib.Path(data_dir or os.environ.get(variable) or usual).expanduser()


def find_file(spec, data_dir=None):
    """Path of a data set's public file, or an error that names file, folder and source.

    Args:
        spec: Row of the registry.
        data_dir: Folder of the file, or of its folder, as in `folder_of`.

    Returns:
        A path that exists.
    """
    folder = folder_of(spec, data_dir)
    for path in (folder / spec.file, *sorted(folder.glob(f"*/{spec.file}"))):
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"{spec.file} is not in {folder.resolve()}, nor in a folder in it: get it from {spec.source}, "
        f"{spec.address}, and name its folder by `data_dir` or the environment variable VALEN_TF_DATA_DIR."
    )


def sha256(path):
    """The checksum of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_warning(path, expected):
    """What to say of a file that is not the one that was used before; nothing where it is.

    No error: an archive that was packed anew, or other line ends, change the checksum and nothing else.

    Args:
        path: The file.
        expected: Checksum of the file that the records were made with, or `None` where none is known.

    Returns:
        A sentence, or `None`.
    """
    found = sha256(path)
    if expected in (None, found):
        return None
    return (
        f"{path} is not byte for byte the file that the records of this project were made with (SHA-256 "
        f"{found}, theirs {expected}). A copy that was only packed or saved anew gives the same numbers; "
        "other contents do not."
    )
