"""Pictures in files: read and scaled when they are needed, a batch at a time, and never all in memory."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import re
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import COUNT, WrongType, is_inside, require, shortened, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import pandas
    import tensorflow as tf
    from numpy.typing import ArrayLike

_THREADS = 8  # TensorFlow decodes outside of Python's lock
_OF_TENSORFLOW = re.compile(r"{{.*?}} *| *\[Op:.*")  # in its errors, what names its own parts


class Pictures:
    """An array `[examples, height, width, 3]` of bytes whose rows are files.

    Indexing reads and scales the files, JPEG, PNG, GIF or BMP, each time anew; `subset` only chooses some.

    Args:
        paths: A file for each example.
        size: Height and width that all are scaled to, or one number for both.
    """

    ndim = 4
    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[str], size: Sequence[int] = 64) -> None:
        self.paths = np.array([str(path) for path in paths], object)
        self.preparation = Scaling(size)

    def __len__(self):
        """Number of pictures."""
        return len(self.paths)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of the array with all pictures."""
        return (len(self), *self.preparation.size, 3)

    @property
    def size(self) -> int:
        """Number of bytes of the array."""
        return int(np.prod(self.shape))

    def __getitem__(self, index):
        """The pictures of some rows, uint8 [rows, height, width, 3]."""
        with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
            read = list(pool.map(self._read, self.paths[index]))
        return np.stack(read) if read else np.zeros((0, *self.shape[1:]), np.uint8)

    def __array__(self, dtype=None, copy=None):
        """All of them in memory."""
        return self[:] if dtype is None else self[:].astype(dtype)

    def tensor(self, paths: tf.Tensor) -> tf.Tensor:
        """The pictures of a tensor of paths, float32 [paths, height, width, 3].

        In a pipeline this is the way, not `[...]`: eager operations inside of one wait for its threads.
        """
        return decode_all(paths, self.preparation.size, from_files=True)

    def subset(self, index: ArrayLike) -> Pictures:
        """Some of the pictures, unread."""
        return Pictures(self.paths[index], self.preparation.size)

    def _read(self, path):
        import tensorflow as tf

        try:
            with tf.device("CPU:0"):
                picture = decode(tf.io.read_file(path), self.preparation.size)
        except (tf.errors.OpError, ValueError) as error:
            reason = shortened(_OF_TENSORFLOW.sub("", str(error).strip().split("\n")[0]), 120)
            raise ValueError(
                f"{path} must be a picture (JPEG, PNG, GIF or BMP). Received: {reason}"
            ) from None
        return picture.numpy()


class Scaling:
    """What makes features of pictures: all are scaled to one size.

    Args:
        size: Height and width, or one number for both.
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        pair = size if isinstance(size, (tuple, list)) else (size, size)
        require(len(pair) == 2, "`size` must be (height, width)", shown("size", size))
        self.size = tuple(COUNT("size", part) for part in pair)

    def to_dict(self) -> dict:
        """All of it, in values of JSON."""
        return {"pictures": list(self.size)}

    def same_as(self, other: Any) -> bool:
        """Whether another scaling is the same."""
        return isinstance(other, Scaling) and other.size == self.size

    def transform(self, X: Sequence[str]) -> Pictures:
        """The `Pictures` of paths."""
        if isinstance(X, dict) or hasattr(X, "columns"):
            raise WrongType(
                f"`x` must be a list of files, or pictures. Received: {shortened(type(X))}"
            )
        return Pictures(X, self.size)


def decode(contents: tf.Tensor, size: Sequence[int]) -> tf.Tensor:
    """A file's contents, a string tensor, as a picture uint8 [height, width, 3]."""
    import tensorflow as tf

    picture = tf.io.decode_image(contents, channels=3, expand_animations=False)
    picture = tf.ensure_shape(picture, [None, None, 3])
    scaled = tf.image.resize(picture, size, antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(scaled), 0, 255), tf.uint8)


def decode_all(contents: tf.Tensor, size: Sequence[int], *, from_files: bool = False) -> tf.Tensor:
    """Contents of files, or their paths [pictures], as float32 [pictures, height, width, 3]."""
    import tensorflow as tf

    def one(content):
        return decode(tf.io.read_file(content) if from_files else content, size)

    spec = tf.TensorSpec([*size, 3], tf.uint8)
    return tf.cast(tf.map_fn(one, contents, fn_output_signature=spec), tf.float32)


def find(folder: pathlib.Path | str, names: Sequence[str]) -> list[pathlib.Path]:
    """Paths of files in a folder; a name that leads out of it is refused.

    Args:
        folder: The folder.
        names: Names of files in it, or in folders in it.
    """
    folder = pathlib.Path(folder)
    require(folder.is_dir(), "`images` must be a folder", folder)
    home, paths = folder.resolve(), []
    for row, name in enumerate(names):
        path = folder / name
        rule = f"Every picture must be a file in {folder}"
        require(name and is_inside(home, path), rule, f"{shortened(repr(name), 60)} in row {row}")
        paths.append(path)
    return paths


def column_of(frame: pandas.DataFrame, folder: pathlib.Path | str, aside: Sequence[str]) -> str:
    """The column that names files in a folder."""
    for name in frame:
        first = str(frame[name].iloc[0]).strip() if len(frame) else ""
        if name not in aside and first and os.path.isfile(os.path.join(folder, first)):
            return name
    require(False, f"There must be a column of names of files in {folder}", [*frame.columns[:50]])
