"""Tables to try every command on, made of the flowers and the digits that come with scikit-learn."""

from __future__ import annotations

import functools
import pathlib
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.checks import require
from valen_tf.data import files
from valen_tf.data.answers import simulated
from valen_tf.data.sets.digits import load_digits

if TYPE_CHECKING:
    import pandas as pd

ANNOTATORS, VOTES = 12, 5


def flowers(seed: int = 0) -> pd.DataFrame:
    """150 irises: four measurements, a column of `candidates`, and the true `species`.

    To half of the flowers a random wrong species is a candidate as well.

    Args:
        seed: Seed of the wrong candidates.

    Returns:
        A row for each flower.

    Example:
        >>> sorted(flowers().candidates.unique())[:3]
        ['setosa', 'setosa|versicolor', 'setosa|virginica']

    Reference:
        R. A. Fisher. The use of multiple measurements in taxonomic problems, 1936.
    """
    import sklearn.datasets

    iris = sklearn.datasets.load_iris(as_frame=True)
    rng = np.random.default_rng(seed)
    frame, names = iris.data.copy(), iris.target_names
    wrong = names[(iris.target + rng.integers(1, len(names), len(frame))) % len(names)]
    doubtful = rng.random(len(frame)) < 0.5
    truth = names[iris.target]
    frame["candidates"] = [
        "|".join(sorted({own, other} if doubt else {own}))
        for own, other, doubt in zip(truth, wrong, doubtful, strict=True)
    ]
    frame["species"] = truth
    return frame


def crowd(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The digits and what a made-up crowd takes them for: twelve annotators, five answers an image.

    An annotator is right with a probability of their own, between 20 and 90 %, and errs at random.

    Args:
        seed: Seed of the annotators and of their answers.

    Returns:
        Two tables: `image`, 64 pixels and the true `digit` of every image, and `image`, `annotator`
        and `answer` of every answer.

    Example:
        >>> images, answers = crowd()
        >>> len(images), len(answers)
        (1797, 8985)
    """
    import pandas as pd

    digits = load_digits()
    accuracies = np.random.default_rng(seed).uniform(0.2, 0.9, ANNOTATORS)
    said = simulated(digits.labels, 10, accuracies, votes=VOTES, seed=seed)
    names = [f"image-{row:04d}" for row in range(len(digits))]
    pixels = digits.features.reshape(len(digits), -1).astype(int)
    images = pd.DataFrame(pixels, columns=[f"pixel{place}" for place in range(pixels.shape[1])])
    images.insert(0, "image", names)
    images["digit"] = digits.labels
    answers = pd.DataFrame(
        {
            "image": np.array(names)[said.example],
            "annotator": [f"annotator-{who + 1}" for who in said.annotator],
            "answer": said.label,
        }
    )
    return images, answers


def write(folder: pathlib.Path | str) -> list[pathlib.Path]:
    """Writes `flowers.csv`, `digits.csv` and `answers.csv`.

    Args:
        folder: Where to; made if missing. A file of one of these names with other contents is not replaced.

    Returns:
        The paths of the files.
    """
    images, answers = crowd()
    tables = {"flowers.csv": flowers(), "digits.csv": images, "answers.csv": answers}
    folder = pathlib.Path(folder)
    paths = [folder / name for name in tables]
    texts = [table.to_csv(index=False) for table in tables.values()]
    taken = [
        str(path)
        for path, text in zip(paths, texts, strict=True)
        if path.exists() and not (path.is_file() and path.read_bytes() == text.encode())
    ]
    rule = "`folder` must not have other files of the examples' names"
    require(not taken, rule, ", ".join(taken))
    for path, text in zip(paths, texts, strict=True):
        files.write_alone(path, functools.partial(pathlib.Path.write_bytes, data=text.encode()))
    return paths
