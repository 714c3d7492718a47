"""Named data sets and their corruption."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import valen_tf as vt
from valen_tf import corruption
from valen_tf.datasets.realworld import read_mat


def test_digits_are_scikit_learns():
    digits = vt.datasets.load("digits")
    assert (len(digits), digits.num_classes, digits.feature_shape) == (1797, 10, (64,))
    assert digits.average_candidates == 1 and digits.label_coverage == 1


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


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    labels = np.array([0, 2, 1, 1])
    scipy.io.savemat(
        tmp_path / "lost.mat",
        {
            "data": np.arange(8.0).reshape(4, 2),
            "partial_target": scipy.sparse.csc_matrix(
                np.eye(3)[:, labels] + np.eye(3)[:, [1, 1, 0, 0]]
            ),
            "target": scipy.sparse.csc_matrix(np.eye(3)[:, labels]),
        },
    )
    monkeypatch.setenv("VALEN_TF_DATA_DIR", str(tmp_path))
    dataset = vt.datasets.load("lost")
    assert dataset.labels.tolist() == [0, 2, 1, 1]
    assert dataset.candidates.tolist() == [[1, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 0]]


def test_a_missing_file_is_named_with_its_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"MSRCv2.mat is not in {tmp_path}"):
        vt.datasets.load("msrcv2", tmp_path)


@pytest.mark.parametrize("content", [b"not a mat file", b""])
def test_a_foreign_file_is_refused_by_name(content, tmp_path):
    (tmp_path / "lost.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"lost.mat is not a partial-label file"):
        vt.datasets.load("lost", tmp_path)
    scipy.io.savemat(tmp_path / "other.mat", {"x": [1.0]})
    with pytest.raises(ValueError, match=r"other.mat is not a partial-label file.*'data'"):
        read_mat(tmp_path / "other.mat")


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="digits, lost.*name='imagenet'"):
        vt.datasets.load("imagenet")


@pytest.fixture(scope="module")
def digits():
    return vt.datasets.load("digits").take(slice(0, 600))


@pytest.mark.parametrize("procedure", corruption.PROCEDURES)
def test_corruption_keeps_the_label_and_follows_from_the_seed(digits, procedure):
    first, second, other = (corruption.corrupt(digits, procedure, seed=s) for s in (1, 1, 2))
    assert first.label_coverage == 1 and first.average_candidates > 1.5
    np.testing.assert_array_equal(first.candidates, second.candidates)
    assert (first.candidates != other.candidates).any()


def test_instance_dependent_candidates_are_those_a_network_confuses(digits):
    probabilities = corruption.clean_probabilities(digits, seed=0)
    assert (probabilities.argmax(axis=1) == digits.labels).mean() > 0.95
    corrupted = corruption.corrupt(digits, seed=0)
    wrong = 1 - np.eye(10)[digits.labels]
    strongest = (probabilities * wrong).argmax(axis=1)
    assert corrupted.candidates[np.arange(600), strongest].all()
    rate = (corrupted.candidates * wrong).sum() / wrong.sum()
    assert 0.1 < rate < 0.6


def test_the_rate_of_both_procedures_can_be_set(digits):
    few = corruption.corrupt(digits, "uniform", rate=0.1, seed=0).average_candidates
    assert few == pytest.approx(1 + 0.9, abs=4 * np.sqrt(9 * 0.09 / 600))
    low, high = (corruption.corrupt(digits, rate=rate, seed=0) for rate in (0.1, 0.6))
    assert low.average_candidates < high.average_candidates


def test_what_cannot_be_corrupted_is_refused(digits):
    with pytest.raises(ValueError, match="`procedure` must be one of uniform, instance_dependent"):
        corruption.corrupt(digits, "random")
    without = vt.PartialLabelDataset(digits.features, digits.candidates)
    with pytest.raises(ValueError, match="`dataset` must have labels"):
        corruption.corrupt(without)
