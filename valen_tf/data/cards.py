"""What a copy of a data set holds, and the data card of all of them."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import numpy as np

from valen_tf.data import sets as datasets
from valen_tf.data.files import checksum_warning
from valen_tf.data.sets import human
from valen_tf.data.sets.registry import CLEAN_NETWORKS, HUMAN, SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from valen_tf.data.sets.registry import Spec

# The networks of the instance-dependent procedure are trained for the card up to this size.
MAX_TRAINED = 20_000
_NONE = "-"


def statistics(name: str, data_dir: pathlib.Path | str | None = None) -> dict:
    """Loads a copy, checks it against what is known, and describes it.

    Args:
        name: As in `valen_tf.datasets.load`.
        data_dir: As in `valen_tf.datasets.load`.

    Returns:
        A dict for each part: `"all"`, or `"train"` and `"test"`.

    Example:
        >>> statistics("digits")["all"]["smallest class"]
        174
    """
    loaded = datasets.load(name, data_dir)  # refuses other counts than the known ones
    parts = loaded if isinstance(loaded, tuple) else (loaded,)
    known = SPECS[name].candidates
    found = None if known is None else loaded.average_candidates
    if known is not None and abs(found - known) > 0.005:
        raise ValueError(
            f"{SPECS[name].file} is not the public {SPECS[name].title}, which has {known} candidates "
            f"on average. Received: {found:.3f}"
        )
    keys = ("train", "test") if len(parts) == 2 else ("all",)
    return {key: _describe(part) for key, part in zip(keys, parts, strict=True)}


def _describe(part):
    sizes = np.bincount(part.labels, minlength=part.num_classes)
    text = isinstance(part, datasets.TextDataset)  # has no candidate sets before it is split
    return {
        "examples": len(part),
        "features": shape_words(part.feature_shape),
        "classes": part.num_classes,
        "average candidates": 1.0 if text else part.average_candidates,
        "label coverage": 1.0 if text else part.label_coverage,
        "smallest class": int(sizes.min()),
        "largest class": int(sizes.max()),
    }


def check(data_dirs: Sequence) -> list:
    """Compares the files at hand with those that the records of this project were made with.

    Args:
        data_dirs: Folders to look in, and in the folders in them.

    Returns:
        `(file, what is to be said of it)` for every public file and every clean network.
    """
    verdicts = []
    for file, expected, address in _files():
        found = [
            path
            for folder in map(pathlib.Path, data_dirs)
            for path in (folder / file, *sorted(folder.glob(f"*/{file}")))
            if path.is_file()
        ]
        if not found:
            verdicts.append((file, f"not at hand ({address})"))
        for path in found[:1]:
            known = "as used for the records" if expected else "at hand; no checksum is known"
            verdicts.append((file, checksum_warning(path, expected) or known))
    return verdicts


def _files():
    """(file, checksum or `None`, address) of everything that is read from a file of its publisher."""
    for spec in (*SPECS.values(), *HUMAN.values()):
        if spec.kind not in ("embedded", "images"):
            yield spec.file, spec.sha256, spec.address
    for file, checksum in CLEAN_NETWORKS.values():
        yield file, checksum, "not published; `valen-tf data clean-network` trains another"


def shape_words(shape: Sequence[int]) -> str:
    """`(28, 28, 1)` as `28 x 28 x 1`."""
    return " x ".join(map(str, shape))


def size_words(spec: Spec) -> str:
    """`60,000 + 10,000`: training and test where the split is official."""
    return " + ".join(f"{size:,}" for size in spec.examples)


def markdown(
    data_dirs: Sequence = (),
    tfds_dir: pathlib.Path | str | None = None,
    networks_dir: pathlib.Path | str | None = None,
    *,
    report: Callable[[str], object] = lambda line: None,
) -> str:
    """The data card: every set with its counts, its candidate sets, its licence and its source.

    Args:
        data_dirs: Folders with the public files.
        tfds_dir: Folder where TFDS prepared the image sets; see `valen_tf.datasets.load`.
        networks_dir: Folder with weights of clean networks in the authors' architectures,
            `mnist_400.npz` and so on, to draw for the image sets from.
        report: Called with a line of progress per set.

    Returns:
        Markdown.
    """
    columns = (
        "name",
        "title",
        "examples",
        "features",
        "classes",
        "own sets",
        "uniform 0.5",
        "instance-dependent",
        "rescaled to 0.4",
        "licence",
        "source",
    )
    lines = [_row(columns), _row(["---"] * len(columns))]
    images = {}
    specs = [*SPECS.values(), *HUMAN.values()]
    for spec in specs:
        report(spec.name)
        try:
            dataset = _load(spec, data_dirs, tfds_dir, images)
        except FileNotFoundError:
            own = _NONE if spec.candidates is None else f"{spec.candidates:.2f}"
            averages = (f"{own} (not at hand)", _NONE, _NONE, _NONE)
        else:
            averages = _averages(spec, dataset, networks_dir)
        counts = size_words(spec), shape_words(spec.shape), str(spec.classes)
        source = f"[{spec.source}]({spec.address})"
        cells = f"`{spec.name}`", spec.title, *counts, *averages, spec.licence, source
        lines.append(_row(cells))
    citations = [f"- {spec.title}: {spec.citation}." for spec in specs]
    files = [_row(("file", "SHA-256", "address")), _row(["---"] * 3)]
    for file, checksum, address in _files():
        files.append(_row((f"`{file}`", f"`{checksum}`" if checksum else _NONE, address)))
    parts = [_HEADER, *lines, "", _FILES, *files, "", "## To cite", "", *citations, ""]
    return "\n".join(parts)


def _load(spec, data_dirs, tfds_dir, images):
    """The part of a set that candidate sets are drawn for."""
    if spec.kind == "images":
        pair = datasets.load(spec.name, tfds_dir)
        if spec.name == "cifar10":  # whose images the human sets are of
            images["cifar10"] = pair
        return pair[0]
    folders = [folder for folder in data_dirs if (pathlib.Path(folder) / spec.file).exists()]
    if spec.kind == "human":
        if not folders or "cifar10" not in images:
            raise FileNotFoundError(spec.file)
        train, test = images["cifar10"]
        path = pathlib.Path(folders[0]) / spec.file
        if spec.name == "cifar10n":
            return human.load_cifar10n(path, train)
        return human.load_cifar10h(path, test)
    loaded = datasets.load(spec.name, *folders[:1])
    return loaded.split(0.2, seed=0)[0] if spec.kind == "text" else loaded


def _averages(spec, dataset, networks_dir):
    """Average candidates: own, uniform, instance-dependent in the paper's and the rescaled form."""
    from valen_tf.data import candidates, corruption

    if spec.candidates is not None:
        return f"{dataset.average_candidates:.2f}", _NONE, _NONE, _NONE
    uniform = corruption.corrupt(dataset, "uniform", seed=0).average_candidates
    network = _clean_network(spec, dataset, networks_dir)
    if network is None:
        return _NONE, f"{uniform:.2f}", _NONE, _NONE
    confusion = corruption.confusion(dataset, network)
    sets = (
        candidates.instance_dependent(dataset.labels, confusion, mean_rate=rate, seed=0)
        for rate in (None, 0.4)
    )
    return _NONE, f"{uniform:.2f}", *(f"{drawn.sum(axis=1).mean():.2f}" for drawn in sets)


def _clean_network(spec, dataset, networks_dir):
    """A network whose weights are at hand, else one trained here, or `None`."""
    from valen_tf.data import clean_networks

    file, _ = CLEAN_NETWORKS.get(spec.name, (None, None))
    if networks_dir is not None and file and (path := pathlib.Path(networks_dir) / file).exists():
        return clean_networks.load_clean_network(
            path, normalization=spec.name, feature_shape=spec.shape
        )
    if len(dataset) > MAX_TRAINED:
        return None
    return clean_networks.train_clean_network(dataset, seed=0)


def _row(cells):
    return f"| {' | '.join(cells)} |"


_HEADER = f"""\
# Data card

Written by `valen-tf data card`; not typed.

Examples are training + test where the split is official. The four columns after the classes are average
sizes of candidate sets:

- own sets: those that the set comes with;
- uniform 0.5: every wrong label is a candidate with probability 0.5;
- instance-dependent: the paper's form, by a network trained on the true labels: for the image sets from
  `--networks` (the authors' architectures, 400 epochs), for sets of up to {MAX_TRAINED:,} examples
  trained here;
- rescaled to 0.4: the form of the authors' code, by the same network.

They are drawn with seed 0 for the training part where the split is official, for four fifths of 20
Newsgroups, and else for all. "Not at hand": the set's files were not there, and the row tells what is
published of it.
"""
_FILES = """\
## Files

The checksums are those of the files that the records in `results/records` were made with. `valen-tf data
check --data-dir FOLDER` compares yours with them. A difference is no error: the archive of 20 Newsgroups
was packed anew here, so that every other copy of it has another checksum. The candidate sets of the
paper's authors, which were not used here, are at
<https://drive.google.com/drive/folders/1J_68EqOrLN6tA56RcyTgcr1komJB31Y1> by the paper's own footnote.
"""
