"""Both procedures, and what a clean network has to do with them."""

import dataclasses
import gzip
import hashlib
import inspect
import json
import time

import keras
import numpy as np
import pytest

import valen_tf as vt
from valen_tf import cli
from valen_tf.data import corruption
from valen_tf.data.clean_networks import load_clean_network, train_clean_network
from valen_tf.runs.sources import network_origin, read_network


@pytest.fixture(scope="module")
def digits():
    return vt.datasets.load("digits").take(slice(0, 600))


@pytest.fixture(scope="module")
def network(digits):
    return train_clean_network(digits, seed=1)


def fixed(logits):
    """A network that gives the same logits to every example."""
    inputs = keras.Input((64,))
    constant = keras.initializers.Constant(np.asarray(logits, dtype=np.float32))
    outputs = keras.layers.Dense(
        len(logits), kernel_initializer="zeros", bias_initializer=constant
    )(inputs)
    return keras.Model(inputs, outputs)


@pytest.mark.parametrize("procedure", corruption.PROCEDURES)
def test_corruption_keeps_the_label_and_follows_from_the_seed(digits, network, procedure):
    options = {} if procedure == "uniform" else {"network": network}
    first, second, other = (
        corruption.corrupt(digits, procedure, seed=seed, **options) for seed in (1, 1, 2)
    )
    assert first.label_coverage == 1 and first.average_candidates > 1.5
    np.testing.assert_array_equal(first.candidates, second.candidates)
    assert (first.candidates != other.candidates).any()


def test_the_default_network_follows_from_the_data_and_the_seed_alone(digits, network):
    given = corruption.corrupt(digits, network=network, seed=1)
    keras.utils.set_random_seed(5)
    trained = corruption.corrupt(digits, seed=1)
    np.testing.assert_array_equal(trained.candidates, given.candidates)


def test_instance_dependent_candidates_are_those_a_network_confuses(digits, network):
    logits = network.predict(digits.features, verbose=0)
    assert (logits.argmax(axis=1) == digits.labels).mean() > 0.95
    corrupted = corruption.corrupt(digits, network=network, seed=0)
    wrong = 1 - np.eye(10)[digits.labels]
    strongest = np.where(wrong, logits, -np.inf).argmax(axis=1)
    assert corrupted.candidates[np.arange(600), strongest].all()
    rate = (corrupted.candidates * wrong).sum() / wrong.sum()
    assert 0.1 < rate < 0.6


def test_the_rate_of_both_procedures_can_be_set(digits, network):
    few = corruption.corrupt(digits, "uniform", rate=0.1, seed=0).average_candidates
    assert few == pytest.approx(1 + 0.9, abs=4 * np.sqrt(9 * 0.09 / 600))
    low, high = (
        corruption.corrupt(digits, rate=rate, network=network, seed=0) for rate in (0.1, 0.6)
    )
    assert low.average_candidates < high.average_candidates


def test_every_uniform_set_can_be_given_a_wrong_label(digits):
    plain, rule = (
        corruption.corrupt(digits, "uniform", rate=0.1, at_least_one_wrong=chosen, seed=3)
        for chosen in (False, True)
    )
    lonely = plain.candidates.sum(axis=1) == 1
    assert lonely.sum() > 100  # 0.9^9 of 600
    np.testing.assert_array_equal(rule.candidates[~lonely], plain.candidates[~lonely])
    assert (rule.candidates[lonely].sum(axis=1) == 2).all() and rule.label_coverage == 1


def test_a_corrupted_set_can_be_saved_and_loaded(digits, tmp_path):
    corrupted = corruption.corrupt(digits, "uniform", seed=3)
    corrupted.save(tmp_path / "digits.npz")
    loaded = vt.PartialLabelDataset.load(tmp_path / "digits.npz")
    for field in ("features", "candidates", "labels"):
        np.testing.assert_array_equal(getattr(loaded, field), getattr(corrupted, field))


@pytest.mark.parametrize("gap", [10, 100, 2000])
def test_a_saturated_network_keeps_the_ratios_of_the_wrong_labels(digits, gap):
    zeros = digits.take(digits.labels == 0)
    wrong = np.log([0.5, 0.25, 0.125, 0.125])
    logits = [0.0, *(wrong - gap), *np.full(5, -gap - 1000.0)]
    confusion = corruption.confusion(zeros, fixed(logits))
    assert confusion.dtype == np.float64
    expected = [0, 0.5, 0.25, 0.125, 0.125, *np.zeros(5)]
    np.testing.assert_allclose(confusion[0], expected, rtol=2e-4)  # float32 near 2000
    # 40 examples at least: no class of flip probability 1/4 is drawn always.
    drawn = corruption.corrupt(zeros, network=fixed(logits), seed=0).candidates.mean(axis=0)
    assert drawn[1] == 1 and 0 < drawn[3] < 1 and not drawn[5:].any()


def test_rates_drawn_are_those_the_network_says(digits):
    flips = np.array([1, 0.8, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005])
    many = digits.take(np.arange(6000) % 600)
    many = dataclasses.replace(many, labels=np.zeros(6000, dtype=np.int64))
    drawn = corruption.corrupt(many, network=fixed([9.0, *np.log(flips)]), seed=4).candidates
    error = np.sqrt(flips * (1 - flips) / 6000)
    assert (np.abs(drawn[:, 1:].mean(axis=0) - flips) <= 4 * error + 1e-6).all()


def test_what_cannot_be_corrupted_is_refused(digits):
    with pytest.raises(ValueError, match="`procedure` must be one of uniform, instance_dependent"):
        corruption.corrupt(digits, "random")
    without = vt.PartialLabelDataset(digits.features, digits.candidates)
    for act in (corruption.corrupt, train_clean_network):
        with pytest.raises(ValueError, match="`dataset` must have labels"):
            act(without)


def test_a_network_that_does_not_fit_is_refused(digits, network):
    with pytest.raises(
        ValueError, match=r"`network` must take features of shape \(64,\).*\(8, 8\)"
    ):
        corruption.corrupt(digits, network=vt.networks.linear((8, 8), 10))
    with pytest.raises(ValueError, match=r"logits of shape \(600, 10\). Received: \(600, 3\)"):
        corruption.corrupt(digits, network=fixed([1.0, 2.0, 3.0]))
    probabilities = keras.Sequential([network, keras.layers.Softmax()])
    with pytest.raises(ValueError, match="must give logits, not probabilities"):
        corruption.corrupt(digits, network=probabilities)
    with pytest.raises(ValueError, match="`network` is for procedure='instance_dependent'"):
        corruption.corrupt(digits, "uniform", network=network)
    with pytest.raises(ValueError, match="`at_least_one_wrong` is for procedure='uniform'"):
        corruption.corrupt(digits, at_least_one_wrong=True, network=network)


def test_the_authors_network_gives_mnist_its_known_number_of_candidates(real_data):
    with gzip.open(real_data / "mnist" / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(real_data / "mnist" / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    mnist = vt.PartialLabelDataset(images, np.eye(10, dtype=np.uint8)[labels], labels)
    network = load_clean_network(
        real_data / "clean_networks" / "mnist_400.npz",
        normalization="mnist",
        feature_shape=mnist.feature_shape,
    )
    started = time.process_time()  # not the clock: the machine may be busy with others
    rescaled = corruption.corrupt(mnist, rate=0.4, network=network)
    assert time.process_time() - started < 5
    assert rescaled.average_candidates == pytest.approx(4.93, abs=0.02)
    paper = corruption.corrupt(mnist, network=network)
    assert paper.average_candidates == pytest.approx(7.18, abs=0.02)


@pytest.fixture(scope="module")
def clean_network_file(tmp_path_factory):
    out = tmp_path_factory.mktemp("clean") / "new" / "digits.keras"
    assert cli.main(["data", "clean-network", "digits", "--epochs", "2", "--out", str(out)]) == 0
    return out


def corrupt_command(out, *options):
    return cli.main(["data", "corrupt", "digits", "--out", str(out), *map(str, options)])


def test_the_command_line_trains_a_clean_network(clean_network_file):
    network = vt.load_model(clean_network_file)
    assert network.input_shape == (None, 64)
    assert [path.name for path in clean_network_file.parent.iterdir()] == ["digits.keras"]


def test_the_command_line_writes_the_file_that_a_config_names(tmp_path, monkeypatch, capsys):
    labels = np.arange(60) % 10
    pixels = np.random.default_rng(0).integers(0, 256, (60, 28, 28, 1), dtype=np.uint8)
    mnist = vt.PartialLabelDataset(pixels, np.eye(10, dtype=np.uint8)[labels], labels)
    monkeypatch.setattr(vt.datasets, "load", lambda name, data_dir: (mnist, mnist))
    path = tmp_path / "networks" / "mnist_400.npz"
    arguments = ["data", "clean-network", "mnist", "--epochs", "2", "--out", str(path)]
    assert cli.main(arguments) == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    network = read_network(path, "mnist", (28, 28, 1))
    assert network.layers[-1].input.shape == (None, 303)  # the authors', however few the examples
    predicted = network.predict(pixels, verbose=0).argmax(axis=1)
    assert (
        f"training accuracy {100 * (predicted == labels).mean():.2f} %" in capsys.readouterr().out
    )
    assert network_origin(path) == "trained here, 2 epochs"


def test_whose_network_it_is_goes_into_words(clean_network_file, real_data, tmp_path):
    for file in ("mnist_400.npz", "cifar10_400.npz"):
        assert network_origin(real_data / "clean_networks" / file) == "authors' form, 400 epochs"
    digest = hashlib.sha256(clean_network_file.read_bytes()).hexdigest()
    assert network_origin(clean_network_file) == f"digits.keras, SHA-256 {digest[:12]}"
    np.savez(tmp_path / "mnist_400.npz", other=np.zeros(3))  # the name alone is not enough
    assert network_origin(tmp_path / "mnist_400.npz").startswith("mnist_400.npz, SHA-256 ")
    (tmp_path / "broken.npz").write_bytes(b"broken")
    assert network_origin(tmp_path / "broken.npz").startswith("broken.npz, SHA-256 ")
    epochs = inspect.signature(train_clean_network).parameters["epochs"].default
    assert network_origin(None) == f"trained here, {epochs} epochs"


def test_the_command_line_corrupts_and_describes(clean_network_file, tmp_path, capsys):
    options = "--network", clean_network_file, "--rate", 0.3, "--seed", 4
    for name in ("first", "second"):
        assert corrupt_command(tmp_path / f"{name}.npz", *options) == 0
    assert "1438 examples" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 4
    loaded = vt.PartialLabelDataset.load(tmp_path / "first.npz")
    train, _ = vt.datasets.load("digits").split(0.2, seed=4)
    expected = corruption.corrupt(
        train, rate=0.3, network=vt.load_model(clean_network_file), seed=4
    )
    np.testing.assert_array_equal(loaded.candidates, expected.candidates)
    np.testing.assert_array_equal(loaded.features, train.features)
    descriptions = [(tmp_path / f"{name}.json").read_text() for name in ("first", "second")]
    assert descriptions[0] == descriptions[1]
    digest = hashlib.sha256(clean_network_file.read_bytes()).hexdigest()
    file_digest = hashlib.sha256((tmp_path / "first.npz").read_bytes()).hexdigest()
    assert json.loads(descriptions[0]) == {
        "data_set": "digits",
        "examples": 1438,
        "procedure": "instance_dependent",
        "rate": 0.3,
        "at_least_one_wrong": False,
        "seed": 4,
        "network_sha256": digest,
        "average_candidates": expected.average_candidates,
        "file_sha256": file_digest,
        "version": vt.__version__,
    }


def test_the_command_line_corrupts_uniformly(tmp_path):
    assert corrupt_command(tmp_path / "uniform.npz", "--procedure", "uniform") == 0
    description = json.loads((tmp_path / "uniform.json").read_text())
    assert description["rate"] == 0.5 and description["network_sha256"] is None
    assert 5 < description["average_candidates"] < 6 and not description["at_least_one_wrong"]
    options = "--procedure", "uniform", "--rate", 0.0, "--at-least-one-wrong"
    assert corrupt_command(tmp_path / "two.npz", *options) == 0
    description = json.loads((tmp_path / "two.json").read_text())
    assert description["average_candidates"] == 2 and description["at_least_one_wrong"]


def test_the_command_line_refuses_in_one_line(clean_network_file, tmp_path, capsys):
    (tmp_path / "broken.keras").write_bytes(clean_network_file.read_bytes()[:2000])
    out = tmp_path / "out" / "digits.npz"
    for message, *options in (
        ("no network file absent.keras", "--network", "absent.keras"),
        ("broken.keras is not a model", "--network", tmp_path / "broken.keras"),
        ("is known for mnist", "--network", __file__),
        ("`network` is for", "--procedure", "uniform", "--network", clean_network_file),
        ("must be in [0, 1]", "--procedure", "uniform", "--rate", 1.3),
        ("is for procedure='uniform'", "--network", clean_network_file, "--at-least-one-wrong"),
        ("must end in .npz", "--out", tmp_path / "digits.csv"),
    ):
        assert corrupt_command(out, *options) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    assert list(out.parent.iterdir()) == []
    for message, *options in (
        ("must end in .keras or .npz", "--out", tmp_path / "digits.csv"),
        ("may end in .npz for mnist", "--out", tmp_path / "digits.npz"),
    ):
        assert cli.main(["data", "clean-network", "digits", *map(str, options)]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    linear = ["mnist", "--network", "linear", "--out", str(tmp_path / "mnist.npz")]
    assert cli.main(["data", "clean-network", *linear]) == 2
    assert "must be mlp or resnet32 for an .npz file" in capsys.readouterr().err
