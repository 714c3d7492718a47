"""Named data sets: the real files where they are at hand, made ones of the same format elsewhere."""

import dataclasses
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import valen_tf as vt
from valen_tf import cli
from valen_tf.data.sets import SPECS, TextDataset, human, read_mat
from valen_tf.data.sets.registry import CLEAN_NETWORKS, HUMAN

ROOT = pathlib.Path(vt.__file__).parents[1]
UCI = ("yeast", "texture", "synthetic_control", "dermatology")


def made(spec):
    """A data set with the counts and the average candidates of a real-world one."""
    rng = np.random.default_rng(0)
    (examples,) = spec.examples
    labels = rng.integers(spec.classes, size=examples)
    candidates = np.eye(spec.classes, dtype=np.uint8)[labels]
    wrong = round((spec.candidates - 1) * examples)
    for step in range(1, 4):
        rows = np.arange(min(wrong, examples))
        candidates[rows, (labels[rows] + step) % spec.classes] = 1
        wrong -= len(rows)
    features = rng.normal(size=(examples, *spec.shape)).astype(np.float32)
    return vt.PartialLabelDataset(features, candidates, labels)


def write_public(path, dataset):
    """The public format: float64, sparse label matrices [classes, examples]."""
    target = np.eye(dataset.num_classes)[dataset.labels]
    content = {
        "data": dataset.features.astype(np.float64),
        "partial_target": scipy.sparse.csc_matrix(dataset.candidates.T.astype(np.float64)),
        "target": scipy.sparse.csc_matrix(target.T),
    }
    scipy.io.savemat(path, content)


def write_uci(name, folder):
    """A made file in the original format, and the features and labels in it."""
    spec = SPECS[name]
    examples, width, classes = spec.examples[0], spec.shape[0], spec.classes
    rng = np.random.default_rng(0)
    features = rng.integers(0, 99, size=(examples, width)) / 10
    labels = np.arange(examples) % classes
    cells = features.astype(str)
    if name == "yeast":
        names = np.array([f"C{number}" for number in range(classes)])[labels]
        lines = ["  ".join([f"ADT{n}_YEAST", *row, names[n]]) for n, row in enumerate(cells)]
    elif name == "synthetic_control":
        labels = np.arange(examples) // 100
        lines = [" ".join(row) + " \r" for row in cells]
    else:
        numbers = labels + 1
        if name == "texture":
            numbers = np.array([2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14])[labels]
        else:
            cells[:8, -1], features[:8, -1] = "?", 40
        lines = [",".join([*row, str(numbers[n])]) for n, row in enumerate(cells)]
    path = folder / spec.file
    path.write_text("\n".join(lines) + "\n", newline="")
    return path, features, labels


# -- all of them --------------------------------------------------------------------------------


def test_digits_are_scikit_learns():
    digits = vt.datasets.load("digits")
    assert (len(digits), digits.num_classes, digits.feature_shape) == (1797, 10, (64,))
    assert digits.average_candidates == 1 and digits.label_coverage == 1


@pytest.mark.parametrize("name", [name for name in SPECS if name != "digits"])
def test_a_missing_file_is_named_with_its_folder_and_source(name, tmp_path):
    spec = SPECS[name]
    expected = spec.file.rstrip("/")
    with pytest.raises(FileNotFoundError) as caught:
        vt.datasets.load(name, tmp_path)
    message = str(caught.value)
    assert expected in message and str(tmp_path) in message
    assert (spec.source in message and spec.address in message) or f"tfds.load('{name}'" in message


def test_a_missing_image_set_is_missed_without_asking_tfds(tmp_path):
    code = f"""if True:
        import sys
        from valen_tf.data import sets as datasets
        try:
            datasets.load("mnist", {str(tmp_path)!r})
        except FileNotFoundError:
            assert not {{"tensorflow", "tensorflow_datasets", "sklearn"}} & set(sys.modules)
        else:
            raise AssertionError"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_unknown_names_and_needless_downloads_are_refused():
    with pytest.raises(ValueError, match="digits, mnist.*lost.*name='imagenet'"):
        vt.datasets.load("imagenet")
    with pytest.raises(ValueError, match="`download` serves the image sets alone.*'lost'"):
        vt.datasets.load("lost", download=True)


@pytest.mark.parametrize("name", ["lost", *UCI, "20newsgroups"])
@pytest.mark.parametrize("content", [b"", b"not what it says\n", bytes(range(256)) * 9])
def test_a_foreign_file_is_refused_by_name(name, content, tmp_path):
    path = tmp_path / SPECS[name].file
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path} is not the|{path} is not a whole"):
        vt.datasets.load(name, tmp_path)


# -- real-world ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "examples", "features", "classes", "candidates"),
    [
        ("lost", 1122, 108, 16, 2.23),
        ("msrcv2", 1758, 48, 23, 3.16),
        ("birdsong", 4998, 38, 13, 2.18),
    ],
)
def test_real_world_sets_have_their_known_counts(
    name, examples, features, classes, candidates, real_data
):
    dataset = vt.datasets.load(name, real_data / "realworld")
    assert (len(dataset), dataset.feature_shape) == (examples, (features,))
    assert dataset.num_classes == classes
    assert dataset.average_candidates == pytest.approx(candidates, abs=0.005)
    assert dataset.label_coverage == 1


@pytest.mark.parametrize("name", ["soccer_player", "yahoo_news"])
def test_the_large_real_world_sets_are_read_from_files_of_their_size(name, tmp_path):
    expected = made(SPECS[name])
    write_public(tmp_path / SPECS[name].file, expected)
    dataset = vt.datasets.load(name, tmp_path)
    np.testing.assert_array_equal(dataset.features, expected.features)
    np.testing.assert_array_equal(dataset.candidates, expected.candidates)
    np.testing.assert_array_equal(dataset.labels, expected.labels)
    assert dataset.average_candidates == pytest.approx(SPECS[name].candidates, abs=0.005)


def test_sparse_label_matrices_are_never_dense_floats(tmp_path, monkeypatch):
    write_public(tmp_path / "lost.mat", made(SPECS["lost"]))

    def refuse(*_):
        raise AssertionError("a sparse matrix was made dense")

    monkeypatch.setattr(scipy.sparse.csc_matrix, "toarray", refuse)
    monkeypatch.setattr(scipy.sparse.csr_matrix, "toarray", refuse)
    monkeypatch.setattr(scipy.sparse.coo_matrix, "toarray", refuse)
    assert len(vt.datasets.load("lost", tmp_path)) == 1122


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    expected = made(SPECS["lost"])
    write_public(tmp_path / "lost.mat", expected)
    monkeypatch.setenv("VALEN_TF_DATA_DIR", str(tmp_path))
    np.testing.assert_array_equal(vt.datasets.load("lost").labels, expected.labels)


LABELS = np.array([0, 2, 1, 1])
SETS = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 0]])
TRUE = np.eye(3, dtype=int)[LABELS]
SMALL = {"data": np.arange(8.0).reshape(4, 2), "partial_target": SETS.T, "target": TRUE.T}


@pytest.mark.parametrize("keys", [tuple(SMALL), ("features", "p_labels", "logitlabels")])
@pytest.mark.parametrize("examples_first", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csc_matrix])
def test_any_file_of_the_format_is_read_whichever_way_it_lies(
    keys, examples_first, storage, tmp_path
):
    sets, true = (SETS, TRUE) if examples_first else (SETS.T, TRUE.T)
    values = SMALL["data"], storage(sets.astype(float)), storage(true.astype(float))
    scipy.io.savemat(tmp_path / "own.mat", dict(zip(keys, values, strict=True)))
    dataset = read_mat(tmp_path / "own.mat")
    assert dataset.labels.tolist() == LABELS.tolist()
    assert dataset.candidates.tolist() == SETS.tolist()
    assert dataset.features.tolist() == SMALL["data"].tolist()


@pytest.mark.parametrize("keys", [tuple(SMALL), ("features", "p_labels", "logitlabels")])
def test_as_many_classes_as_examples_lie_as_the_keys_say(keys, tmp_path):
    sets = np.triu(np.ones((3, 3), dtype=int))
    given = (sets.T if keys[0] == "data" else sets), np.eye(3)
    content = dict(zip(keys, (np.eye(3), *given), strict=True))
    scipy.io.savemat(tmp_path / "square.mat", content)
    assert read_mat(tmp_path / "square.mat").candidates.tolist() == sets.tolist()


def test_sparse_features_are_read(tmp_path):
    scipy.io.savemat(tmp_path / "s.mat", SMALL | {"data": scipy.sparse.csc_matrix(SMALL["data"])})
    assert read_mat(tmp_path / "s.mat").features.tolist() == SMALL["data"].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": None}, "no 'target'"),
        ({"data": None}, "no 'data'"),
        ({"data": np.ones((5, 2))}, "partial_target must be a matrix with a side of 5 examples"),
        ({"data": np.full((4, 2), np.nan)}, "`features` must be finite"),
        ({"data": np.array(["a", "b", "c", "d"])}, "could not convert|must be numbers"),
        ({"partial_target": 2 * SETS.T}, "partial_target must hold only 0 and 1"),
        ({"partial_target": 0 * SETS.T}, "must name a label in every row"),
        ({"target": SETS.T}, "target must name one true label of every example.*2 in row 0"),
        ({"target": np.eye(4)[:, LABELS]}, "partial_target and target must have one shape"),
    ],
)
def test_a_wrong_mat_file_is_refused_by_name(change, message, tmp_path):
    content = {key: value for key, value in (SMALL | change).items() if value is not None}
    scipy.io.savemat(tmp_path / "own.mat", content)
    with pytest.raises(
        ValueError, match=rf"own.mat is not a whole partial-label file: .*{message}"
    ):
        read_mat(tmp_path / "own.mat")


def test_a_file_of_matlab_7_3_is_refused_by_name(tmp_path):
    (tmp_path / "own.mat").write_bytes(
        b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(999)
    )
    with pytest.raises(ValueError, match="own.mat is not a whole partial-label file: .*v7.3"):
        read_mat(tmp_path / "own.mat")


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.9999])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_truncated_mat_file_is_refused_by_name(share, compressed, tmp_path):
    path = tmp_path / "own.mat"
    rng = np.random.default_rng(0)
    content = SMALL | {"data": rng.normal(size=(4, 500))}
    scipy.io.savemat(path, content, do_compression=compressed)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match="own.mat is not a whole partial-label file"):
        read_mat(path)


def test_the_file_of_another_set_is_refused(tmp_path):
    write_public(tmp_path / "lost.mat", made(SPECS["msrcv2"]))
    message = r"lost.mat is not the public Lost, which has 1,122 ex.*108 .*16 .*Received: 1,758"
    with pytest.raises(ValueError, match=message):
        vt.datasets.load("lost", tmp_path)


# -- UCI ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UCI)
def test_uci_files_have_their_known_counts(name, real_data):
    dataset, spec = vt.datasets.load(name, real_data / "uci"), SPECS[name]
    assert ((len(dataset),), dataset.feature_shape) == (spec.examples, spec.shape)
    assert len(np.unique(dataset.labels)) == dataset.num_classes == spec.classes
    assert dataset.average_candidates == 1 and dataset.label_coverage == 1
    sizes = dict(zip(dataset.class_names, np.bincount(dataset.labels).tolist(), strict=True))
    if name == "yeast":
        assert (sizes["CYT"], sizes["NUC"], sizes["ERL"]) == (463, 429, 5)
    elif name == "dermatology":
        assert list(sizes.values()) == [112, 61, 72, 49, 52, 20]
    else:
        assert set(sizes.values()) == {spec.examples[0] // spec.classes}


@pytest.mark.parametrize("name", UCI)
def test_uci_formats_are_read(name, tmp_path):
    _, features, labels = write_uci(name, tmp_path)
    dataset = vt.datasets.load(name, tmp_path)
    np.testing.assert_allclose(dataset.features, features, rtol=1e-6)
    np.testing.assert_array_equal(dataset.labels, labels)
    if name == "texture":
        assert dataset.class_names[::3] == ("2", "6", "9", "13")


def test_the_header_of_keel_is_skipped(tmp_path):
    path, _, labels = write_uci("texture", tmp_path)
    path.write_text("@relation texture\n@data\n" + path.read_text().replace(",", ", "))
    np.testing.assert_array_equal(vt.datasets.load("texture", tmp_path).labels, labels)


@pytest.mark.parametrize("name", UCI)
@pytest.mark.parametrize("damage", ["half", "a row less", "mid-row", "word", "column"])
def test_damaged_tables_are_refused_by_name(name, damage, tmp_path):
    path, _, _ = write_uci(name, tmp_path)
    text = path.read_text()
    rows = text.rstrip().split("\n")
    path.write_text(
        {
            "half": text[: len(text) // 2],
            "a row less": "\n".join(rows[:-1]) + "\n",
            "mid-row": text.rstrip()[:-3],
            "word": text.replace(".", "x", 1),
            "column": "\n".join(f"{row.rstrip()},7" for row in rows)
            if "," in text
            else "\n".join(f"{row.rstrip()} 7" for row in rows),
        }[damage]
    )
    with pytest.raises(ValueError, match=f"{path} is not the public"):
        vt.datasets.load(name, tmp_path)


def test_a_number_cut_at_the_end_of_synthetic_control_is_noticed(tmp_path):
    path, _, _ = write_uci("synthetic_control", tmp_path)
    path.write_text(path.read_text().rstrip()[:-1])
    with pytest.raises(ValueError, match=f"{path} is not the public.*must end with a newline"):
        vt.datasets.load("synthetic_control", tmp_path)


# -- text ---------------------------------------------------------------------------------------


def write_news(path, documents):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in documents.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))


def test_newsgroups_are_read_and_their_parts_merged(tmp_path, monkeypatch):
    spec = dataclasses.replace(SPECS["20newsgroups"], examples=(3,), classes=2)
    monkeypatch.setitem(SPECS, "20newsgroups", spec)
    documents = {"test/b/1": b"caf\xe9", "train/b/2": b"two", "train/a/9": b"nine"}
    write_news(tmp_path / spec.file, documents)
    dataset = vt.datasets.load("20newsgroups", tmp_path)
    assert dataset.texts == ("nine", "café", "two")
    assert dataset.class_names == ("a", "b") and dataset.labels.tolist() == [0, 1, 1]


def test_a_truncated_archive_is_refused_by_name(tmp_path):
    path = tmp_path / SPECS["20newsgroups"].file
    write_news(path, {f"train/a/{n}": os.urandom(999) for n in range(20)})
    with pytest.raises(ValueError, match="gz is not the public 20 News.*18,846.*Received: 20 "):
        vt.datasets.load("20newsgroups", tmp_path)
    path.write_bytes(path.read_bytes()[:9999])
    with pytest.raises(ValueError, match="gz is not the whole public archive"):
        vt.datasets.load("20newsgroups", tmp_path)


@pytest.fixture
def texts():
    rng = np.random.default_rng(0)
    words = np.array([["red", "apple", "sweet"], ["iron", "cold", "heavy"]])
    labels = np.arange(40) % 2
    return TextDataset(
        tuple(" ".join(rng.choice(words[label], 6)) for label in labels),
        labels,
        ("fruit", "metal"),
        dimension=3,
    )


def test_texts_become_features_that_tell_them_apart(texts):
    train, test = texts.split(0.25, seed=1)
    assert (len(train), len(test), train.feature_shape) == (30, 10, (3,))
    similarity = test.features @ train.features.T  # [held out, training]
    nearest = train.labels[similarity.argmax(axis=1)]
    np.testing.assert_array_equal(nearest, test.labels)


def test_text_features_are_fitted_on_the_training_part_alone(texts):
    rows = vt.PartialLabelDataset(np.arange(40), np.ones((40, 1))).split(0.25, seed=1)[1].features
    other = np.array(texts.texts, dtype=object)
    other[rows] = "apple quartz quartz quartz"  # even new words must not matter
    changed = dataclasses.replace(texts, texts=tuple(other))
    first, second = texts.split(0.25, seed=1), changed.split(0.25, seed=1)
    np.testing.assert_array_equal(first[0].features, second[0].features)
    assert (first[1].features != second[1].features).any()


def test_text_folds_hold_out_every_text_once(texts):
    folds = texts.folds(4, seed=0)
    assert [(len(train), len(test)) for train, test in folds] == [(30, 10)] * 4
    again = texts.folds(4, seed=0)
    np.testing.assert_array_equal(folds[3][1].features, again[3][1].features)
    assert sum(test.labels.sum() for _, test in folds) == texts.labels.sum()


def test_too_few_words_are_refused(texts):
    with pytest.raises(ValueError, match="9 features need as many words in 5 texts. Received: 6"):
        dataclasses.replace(texts, dimension=9).split()


def test_the_real_newsgroups_have_their_known_counts(real_data):
    dataset = vt.datasets.load("20newsgroups", real_data / "20newsgroups")
    assert (len(dataset), dataset.num_classes) == (18846, 20)
    assert dataset.class_names[0] == "alt.atheism"
    assert np.bincount(dataset.labels).tolist()[:3] == [799, 973, 985]
    assert dataset.texts[0] != dataset.texts[1]


# -- TFDS: image sets ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tfds():
    import tensorflow_datasets

    tensorflow_datasets.disable_progress_bar()
    return tensorflow_datasets


def prepare(tfds, folder, name="mnist", sizes=(12, 5), version="3.0.1"):
    """A small image set as TFDS prepares it; the first pixel is the number of the image."""
    shape, classes = SPECS[name].shape, SPECS[name].classes

    class Small(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version(version)

        def _info(self):
            features = {
                "image": tfds.features.Image(shape=shape),
                "label": tfds.features.ClassLabel(names=[f"c{n}" for n in range(classes)]),
            }
            if self.name == "cifar10":
                features["id"] = tfds.features.Text()
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(features)
            )

        def _split_generators(self, dl_manager):
            splits = zip(("train", "test"), sizes, strict=True)
            return {split: self._generate_examples(split, size) for split, size in splits}

        def _generate_examples(self, split, size):
            for number in range(size):
                example = {"image": np.full(shape, number, np.uint8), "label": number % classes}
                if self.name == "cifar10":
                    example["id"] = f"{split}_{number:05d}"
                yield number, example

    Small.name = name
    Small(data_dir=folder).download_and_prepare()


@pytest.fixture
def small(tfds, tmp_path, monkeypatch):
    """A folder with small prepared sets, known to the registry by their small counts."""
    for name in ("mnist", "cifar10"):
        prepare(tfds, tmp_path, name)
        monkeypatch.setitem(SPECS, name, dataclasses.replace(SPECS[name], examples=(12, 5)))
    return tmp_path


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_prepared_images_come_as_training_and_test(name, small, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(small))
    train, test = vt.datasets.load(name)
    assert (len(train), len(test)) == (12, 5)
    assert train.features.dtype == np.uint8 and train.feature_shape == SPECS[name].shape
    numbers = train.features.reshape(12, -1)[:, 0]
    np.testing.assert_array_equal(train.labels, numbers % 10)
    assert sorted(numbers) == list(range(12))
    assert train.class_names[:2] == ("c0", "c1") and train.average_candidates == 1


def test_cifar10_comes_in_its_original_order(small, tfds):
    train, test = vt.datasets.load("cifar10", small)
    assert train.features[:, 0, 0, 0].tolist() == list(range(12))
    assert test.features[:, 0, 0, 0].tolist() == list(range(5))
    builder = tfds.builder_from_directory(small / "cifar10" / "3.0.1")
    given = [image[0, 0, 0] for image in map(lambda x: x["image"], builder.as_dataset("train"))]
    assert given != list(range(12))  # TFDS shuffles


def test_the_newest_version_is_read(small, tfds):
    prepare(tfds, small, "mnist", (3, 2), "10.0.0")
    with pytest.raises(ValueError, match=r"mnist/10.0.0 is not the public MNIST.*Received: 3 \+ 2"):
        vt.datasets.load("mnist", small)


def test_a_half_prepared_set_is_not_taken_for_a_whole_one(small):
    version = small / "mnist" / "3.0.1"
    version.rename(version.with_name("incomplete.4X7Q2A_3.0.1"))
    with pytest.raises(FileNotFoundError, match="mnist is not prepared in"):
        vt.datasets.load("mnist", small)
    version.with_name("incomplete.4X7Q2A_3.0.1").rename(version)
    (version / "dataset_info.json").unlink()
    with pytest.raises(FileNotFoundError, match="mnist is not prepared in"):
        vt.datasets.load("mnist", small)


@pytest.mark.parametrize(
    "damage", ["shard lost", "shard cut", "shard short", "info", "features", "split"]
)
def test_a_damaged_prepared_set_is_refused_by_name(damage, small):
    version = small / "mnist" / "3.0.1"
    shard = version / "mnist-train.tfrecord-00000-of-00001"
    if damage == "shard lost":
        shard.unlink()
    elif damage == "shard cut":
        shard.write_bytes(shard.read_bytes()[:-20])
    elif damage == "shard short":  # at the end of a record: nothing looks wrong but the number
        import tensorflow as tf

        records = [record.numpy() for record in tf.data.TFRecordDataset(str(shard))]
        with tf.io.TFRecordWriter(str(shard)) as writer:
            for record in records[:-1]:
                writer.write(record)
    elif damage == "info":
        (version / "dataset_info.json").write_text('{"name": ')
    elif damage == "features":
        (version / "features.json").unlink()
    else:
        info = version / "dataset_info.json"
        info.write_text(info.read_text().replace('"test"', '"other"'))
    with pytest.raises(ValueError, match=f"{version} is not a whole prepared image set"):
        vt.datasets.load("mnist", small)


def test_a_download_is_left_to_tfds(tfds, tmp_path, monkeypatch):
    asked = []

    class Downloading:
        def __init__(self, name, data_dir):
            asked.append((name, data_dir))

        def download_and_prepare(self):
            prepare(tfds, asked[0][1])

    monkeypatch.setattr(tfds, "builder", Downloading)
    monkeypatch.setitem(SPECS, "mnist", dataclasses.replace(SPECS["mnist"], examples=(12, 5)))
    train, _ = vt.datasets.load("mnist", tmp_path, download=True)
    assert len(train) == 12 and asked == [("mnist", tmp_path)]
    vt.datasets.load("mnist", tmp_path, download=True)
    assert len(asked) == 1  # it is there


@pytest.fixture
def real_images():
    folder = os.environ.get("VALEN_TF_TEST_TFDS")
    if not folder:
        pytest.skip("VALEN_TF_TEST_TFDS does not name a folder with image sets prepared by TFDS")
    return folder


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("kmnist", "fashion_mnist")]


@pytest.mark.parametrize("name", ["mnist", *SLOW])
def test_real_images_equal_tfdss_own_counts(name, real_images, tfds):
    train, test = vt.datasets.load(name, real_images)
    splits = tfds.builder(name, data_dir=real_images).info.splits
    assert len(train) == splits["train"].num_examples == 60000
    assert len(test) == splits["test"].num_examples == 10000
    assert train.label_coverage == 1 and len(np.unique(train.labels)) == 10


def test_real_human_labels_have_their_known_averages(real_images, real_data):
    train, test = vt.datasets.load("cifar10", real_images)
    folder = real_data / "human_labels"
    three = human.load_cifar10n(folder / "cifar10n.npz", train)  # checks every clean label
    assert three.average_candidates == pytest.approx(1.46, abs=0.005)
    assert three.label_coverage == pytest.approx(0.979, abs=0.0005)
    fifty = human.load_cifar10h(folder / "cifar10h-counts.npy", test)
    assert fifty.average_candidates == pytest.approx(1.94, abs=0.005)
    assert fifty.label_coverage == pytest.approx(0.9996, abs=0.00005)


# -- TFDS: builders of the real-world sets ------------------------------------------------------


def test_real_world_builders_serve_tfds(tfds, tmp_path):
    from valen_tf.data.sets import builders

    expected = made(SPECS["lost"])
    write_public(tmp_path / "lost.mat", expected)
    options = {
        "data_dir": tmp_path / "prepared",
        "download_and_prepare_kwargs": {
            "download_config": tfds.download.DownloadConfig(manual_dir=tmp_path)
        },
    }
    dataset, info = tfds.load("lost", split="train", with_info=True, **options)
    assert info.splits["train"].num_examples == 1122
    assert len(info.metadata["sha256"]) == 64 and info.metadata["file"] == "lost.mat"
    gathered = vt.PartialLabelDataset.from_tf_data(
        dataset.map(lambda x: (x["features"], {k: x[k] for k in ("candidates", "label")}))
    )
    order, given = (np.argsort(data.features[:, 0]) for data in (expected, gathered))
    np.testing.assert_array_equal(expected.features[order], gathered.features[given])
    np.testing.assert_array_equal(expected.candidates[order], gathered.candidates[given])
    np.testing.assert_array_equal(expected.labels[order], gathered.labels[given])
    parts = tfds.load("lost", split=["train[:80%]", "train[80%:]"], **options)
    assert [len(part) for part in parts] == [898, 224]
    assert {builder.name for builder in builders.RealWorldBuilder.__subclasses__()} == {
        name for name, spec in SPECS.items() if spec.kind == "real-world"
    }


def test_real_world_builders_leave_nothing_of_a_refused_file(tfds, tmp_path):
    from valen_tf.data.sets import builders

    write_public(tmp_path / "BirdSong.mat", made(SPECS["lost"]))
    builder = builders.BirdSong(data_dir=tmp_path / "prepared")
    manual = tfds.download.DownloadConfig(manual_dir=tmp_path)
    with pytest.raises(ValueError, match="BirdSong.mat is not the public BirdSong"):
        builder.download_and_prepare(download_config=manual)
    assert not builders.BirdSong(data_dir=tmp_path / "prepared").is_prepared()
    (tmp_path / "BirdSong.mat").unlink()
    (tmp_path / "readme.txt").write_text("a folder without the file")
    with pytest.raises(FileNotFoundError, match=f"BirdSong.mat is not in {tmp_path}"):
        builder.download_and_prepare(download_config=manual)


# -- people -------------------------------------------------------------------------------------


@pytest.fixture
def cifar():
    labels = np.arange(20) % 10
    images = np.zeros((20, 32, 32, 3), np.uint8)
    return vt.PartialLabelDataset(images, np.eye(10, dtype=np.uint8)[labels], labels)


def votes(labels):
    columns = {f"random_label{n}": ((labels + (n == 3)) % 10).astype(np.uint8) for n in (1, 2, 3)}
    return columns | {"clean_label": labels.astype(np.uint8)}


def test_the_union_of_three_annotators(cifar, tmp_path):
    np.savez(tmp_path / "n.npz", **votes(cifar.labels))
    dataset = human.load_cifar10n(tmp_path / "n.npz", cifar)
    eye = np.eye(10, dtype=np.uint8)
    expected = eye[cifar.labels] | eye[(cifar.labels + 1) % 10]
    np.testing.assert_array_equal(dataset.candidates, expected)
    assert dataset.features is cifar.features and dataset.answers is None
    kept = human.load_cifar10n(tmp_path / "n.npz", cifar, answers=True)
    np.testing.assert_array_equal(kept.candidates, expected)
    np.testing.assert_array_equal(kept.answers.majority(), cifar.labels)


def test_every_label_that_somebody_gave(cifar, tmp_path):
    counts = 40 * np.eye(10, dtype=np.int64)[cifar.labels]
    counts[:, 0] += 1
    np.save(tmp_path / "h.npy", counts)
    dataset = human.load_cifar10h(tmp_path / "h.npy", cifar)
    np.testing.assert_array_equal(dataset.candidates, counts > 0)
    kept = human.load_cifar10h(tmp_path / "h.npy", cifar, answers=True)
    np.testing.assert_array_equal(kept.answers.votes, counts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c | {"clean_label": c["clean_label"][::-1]}, "order of CIFAR-10.*0.0 %"),
        (lambda c: {k: v[:9] for k, v in c.items()}, r"a row for each of the images.*\(9, 20\)"),
        (lambda c: {"clean_label": c["clean_label"]}, "random_label1.*Received"),
        (lambda c: c | {"random_label1": c["clean_label"] + 90}, "does not hold labels of CIFAR"),
    ],
)
def test_wrong_annotations_are_refused_by_name(change, message, cifar, tmp_path):
    path = tmp_path / "n.npz"
    np.savez(path, **change(votes(cifar.labels)))
    with pytest.raises(ValueError, match=f"{path} .*{message}"):
        human.load_cifar10n(path, cifar)


def test_wrong_counts_are_refused_by_name(cifar, tmp_path):
    path = tmp_path / "h.npy"
    counts = np.eye(10, dtype=np.int64)[cifar.labels]
    for content, message in (
        (counts[::-1], "order of CIFAR-10.*0.0 %"),
        (counts[:9], "a row for each of the images"),
        (counts[:, :9], "ten counts per image"),
        (counts.astype(np.float32), "does not hold labels of CIFAR-10.*integers"),
        (-counts, "does not hold labels of CIFAR-10"),
    ):
        np.save(path, content)
        with pytest.raises(ValueError, match=f"{path} .*{message}"):
            human.load_cifar10h(path, cifar)
    np.savez(tmp_path / "n.npz", **votes(cifar.labels))
    with pytest.raises(ValueError, match="n.npz must be an .npy array"):
        human.load_cifar10h(tmp_path / "n.npz", cifar)
    np.save(path, counts)
    with pytest.raises(ValueError, match="h.npy must be an .npz archive"):
        human.load_cifar10n(path, cifar)


@pytest.mark.parametrize("loader", [human.load_cifar10n, human.load_cifar10h])
def test_missing_and_truncated_annotations_are_refused_by_name(loader, cifar, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.npz"):
        loader(tmp_path / "nowhere.npz", cifar)
    np.savez(tmp_path / "cut.npz", **votes(cifar.labels))
    shutil.copy(tmp_path / "cut.npz", tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    for content in (whole[:300], whole[:-30], b"", b"text"):
        (tmp_path / "cut.npz").write_bytes(content)
        with pytest.raises(ValueError, match="cut.npz is not a whole NumPy file"):
            loader(tmp_path / "cut.npz", cifar)


# -- the command line ---------------------------------------------------------------------------


def test_the_list_shows_every_set(capsys):
    assert cli.main(["data", "list"]) == 0
    shown = capsys.readouterr().out
    for spec in SPECS.values():
        (line,) = (line for line in shown.splitlines() if f" {spec.name} " in line)
        assert spec.file in line and f" {spec.classes} " in line


def test_info_checks_a_copy(tmp_path, capsys):
    write_public(tmp_path / "lost.mat", made(SPECS["lost"]))
    assert cli.main(["data", "info", "lost", "--data-dir", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "1122" in shown and "2.23" in shown and "largest class" in shown


def test_info_warns_of_a_file_that_is_not_the_one_that_was_used(tmp_path, real_data, capsys):
    write_public(tmp_path / "lost.mat", made(SPECS["lost"]))
    assert cli.main(["data", "info", "lost", "--data-dir", str(tmp_path)]) == 0
    error = capsys.readouterr().err
    digest = hashlib.sha256((tmp_path / "lost.mat").read_bytes()).hexdigest()
    assert error.startswith(f"valen-tf: warning: {tmp_path / 'lost.mat'} is not byte for byte")
    assert digest in error and SPECS["lost"].sha256 in error
    assert cli.main(["data", "info", "lost", "--data-dir", str(real_data / "realworld")]) == 0
    assert capsys.readouterr().err == ""


def test_the_files_at_hand_are_compared_with_those_that_were_used(tmp_path, capsys):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "yeast.data").write_text("another")
    (tmp_path / "Yahoo! News.mat").write_text("unknown")
    (tmp_path / "mnist_400.npz").write_text("trained elsewhere")
    assert cli.main(["data", "check", "--data-dir", str(tmp_path)]) == 0
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert len(said) == 12 + 4  # files of data sets and of people's answers, and networks
    assert said["lost.mat"] == f"not at hand ({SPECS['lost'].address})"
    assert said["Yahoo! News.mat"] == "at hand; no checksum is known"
    for name in ("deep/yeast.data", "mnist_400.npz"):
        assert f"{tmp_path / name} is not byte for byte" in said[pathlib.Path(name).name]


def test_the_files_at_hand_are_those_that_were_used(real_data):
    said = dict(vt.cards.check([real_data]))
    known = {spec.file for spec in (*SPECS.values(), *HUMAN.values()) if spec.sha256}
    assert len(known) == 10
    known |= {file for file, _ in CLEAN_NETWORKS.values()}
    assert {said[file] for file in known} == {"as used for the records"}


def test_every_set_has_an_address():
    for spec in (*SPECS.values(), *HUMAN.values()):
        assert re.fullmatch(r"https?://\S+", spec.address), spec.name
        assert spec.sha256 is None or re.fullmatch("[0-9a-f]{64}", spec.sha256), spec.name


def test_info_shows_both_parts(small, capsys):
    assert cli.main(["data", "info", "mnist", "--data-dir", str(small)]) == 0
    assert "train" in (shown := capsys.readouterr().out) and "test" in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.revealed(), "has 2.23 candidates on average. Received: 1.000"),
        (lambda data: data.take(slice(9)), "lost.mat is not the public Lost"),
        (None, "lost.mat is not in"),
    ],
)
def test_info_says_what_is_wrong(change, message, tmp_path, capsys):
    if change:
        write_public(tmp_path / "lost.mat", change(made(SPECS["lost"])))
    assert cli.main(["data", "info", "lost", "--data-dir", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_the_card_tells_what_is_measured_from_what_is_known(small, capsys, monkeypatch):
    write_public(small / "lost.mat", made(SPECS["lost"]))
    for spec in list(SPECS.values()):  # the drawn sets of a small one are enough
        if spec.name not in ("digits", "mnist", "lost", "yahoo_news", "yeast"):
            monkeypatch.delitem(SPECS, spec.name)
    monkeypatch.setattr(vt.cards, "MAX_TRAINED", 20)
    arguments = ["data", "card", "--data-dir", str(small), "--tfds-dir", str(small)]
    assert cli.main(arguments) == 0
    rows = {}
    card, _, files = capsys.readouterr().out.partition("## Files")
    assert f"| `yeast.data` | `{SPECS['yeast'].sha256}` | {SPECS['yeast'].address} |" in files
    assert f"| `Yahoo! News.mat` | - | {SPECS['yahoo_news'].address} |" in files
    for line in card.splitlines():
        if line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            rows[name.strip("`")] = cells
    assert rows["lost"][1:5] == ["1,122", "108", "16", "2.23"]
    assert rows["yahoo_news"][4] == "1.91 (not at hand)" and "not at hand" in rows["yeast"][4]
    assert float(rows["digits"][5]) == pytest.approx(5.5, abs=0.1) and rows["digits"][6] == "-"
    assert float(rows["mnist"][5]) > 3 and min(map(float, rows["mnist"][6:8])) > 1
    assert rows["cifar10n"][4] == "1.46 (not at hand)"
    assert rows["lost"][-1] == f"[{SPECS['lost'].source}]({SPECS['lost'].address})"
