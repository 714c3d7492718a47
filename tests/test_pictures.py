"""Pictures in files: streamed, trained, predicted and served from the bytes of files."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import valen_tf as vt
from valen_tf import cli, runs

NAMES = np.array(["blue", "green", "red"])


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of pictures of several sizes and forms, and a table that names them."""
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    labels = random.integers(3, size=90)
    rows = []
    (folder / "photos" / "more").mkdir(parents=True)
    for number, label in enumerate(labels):
        height, width = random.integers(10, 24, 2)
        picture = random.integers(0, 120, (height, width, 3))
        picture[..., 2 - label] += 130
        name = f"more/{number}.png" if number % 2 else f"{number}.jpg"
        encode = tf.io.encode_png if number % 2 else tf.io.encode_jpeg
        tf.io.write_file(str(folder / "photos" / name), encode(picture.astype(np.uint8)))
        other = NAMES[(label + random.integers(1, 3)) % 3]
        rows.append((f"n{number}", name, f"{NAMES[label]}|{other}", NAMES[label]))
    frame = pd.DataFrame(rows, columns=["key", "file", "candidates", "truth"])
    frame.to_csv(folder / "labels.csv", index=False)
    return folder, frame


def test_pictures_stay_unread_until_a_batch_needs_them(photos, monkeypatch):
    from valen_tf.data.pictures import Pictures

    folder, frame = photos
    paths = [folder / "photos" / name for name in frame["file"]]
    read = []
    original = Pictures._read
    monkeypatch.setattr(
        Pictures, "_read", lambda self, path: read.append(path) or original(self, path)
    )
    sets = frame["candidates"].str.split("|").tolist()
    data = vt.PartialLabelDataset.from_images(
        paths, sets, size=(8, 12), labels=frame["truth"].tolist()
    )
    train, test = data.split(0.2, seed=1)
    assert data.feature_shape == (8, 12, 3) and isinstance(train.features, Pictures) and not read
    features, targets = next(iter(test.batches(5, shuffle=False)))
    assert features.shape == (5, 8, 12, 3) and not read  # the pipeline reads by itself
    np.testing.assert_array_equal(features, test.features[:5])
    assert sorted(read) == sorted([str(paths[row]) for row in test.rows[:5]])
    in_memory = vt.PartialLabelDataset(np.asarray(data.features), data.candidates)
    for ours, theirs in zip(data.moments(), in_memory.moments(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def answered(photos):
    """The pictures, and what three people take them for: two answers an example."""
    folder, frame = photos
    said = pd.DataFrame(
        [
            (file, who, name)
            for file, names in zip(frame["file"], frame["candidates"], strict=True)
            for who, name in zip(("ann", "bob"), names.split("|"), strict=True)
        ],
        columns=["file", "annotator", "label"],
    )
    said.to_csv(folder / "answers.csv", index=False)
    frame[["file", "truth"]].to_csv(folder / "items.csv", index=False)
    return folder, frame, said


def test_people_answer_pictures(answered):
    from valen_tf.data.pictures import Pictures

    folder, frame, said = answered
    data = vt.PartialLabelDataset.from_answers(
        frame[["file", "truth"]],
        said,
        item="file",
        annotator="annotator",
        label="label",
        labels="truth",
        images=folder / "photos",
        size=(8, 12),
    )
    assert isinstance(data.features, Pictures) and data.feature_shape == (8, 12, 3)
    assert data.table.ids["file"].tolist() == frame["file"].tolist()
    assert (NAMES[data.labels] == frame["truth"]).all() and data.average_candidates == 2
    config = runs.read_config(overrides=_on_answers(folder))
    found = runs.prepare(config)
    assert config.network.name == "convnet" and isinstance(found.train.features, Pictures)
    assert found.train.answers.checksum == data.take(found.train.rows).answers.checksum


def test_tensorflow_is_asked_for_before_a_picture_is_read(answered, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    config = runs.read_config(overrides=_on_answers(answered[0]))
    monkeypatch.setattr("valen_tf.data.pictures.Pictures._read", lambda *_: pytest.fail("read"))
    with pytest.raises(KeyboardInterrupt):
        runs.train(config, tmp_path / "run", prepare=stop)


@pytest.mark.slow
def test_people_answer_pictures_by_one_command(answered, tmp_path):
    folder, frame, _ = answered
    words = [word for word in _on_answers(folder) if "answers" not in word and "csv" not in word]
    start = ["train", "--csv", folder / "items.csv", "--answers", folder / "answers.csv", *words]
    start += ["training.epochs=2", "ablation=false", "--out", tmp_path / "run"]
    assert cli.main([str(part) for part in start]) == 0
    assert runs.predict(tmp_path / "run", folder / "items.csv")["file"].equals(frame["file"])
    assert "accuracy" in runs.evaluate(tmp_path / "run", folder / "items.csv")
    runs.export(tmp_path / "run", tmp_path / "served")


def _on_answers(folder):
    """What says that people answered the pictures."""
    files = [f"data.answers={folder / 'answers.csv'}", f"data.csv={folder / 'items.csv'}"]
    names = ["data.item=file", "data.label=truth", "data.image_size=8"]
    return [*files, *names, f"data.images={folder / 'photos'}"]


def test_pictures_are_trained_predicted_and_served_by_one_command_each(photos, tmp_path):
    folder, frame = photos
    arguments = [
        "train",
        "--csv",
        folder / "labels.csv",
        f"data.images={folder / 'photos'}",
        "data.id=key",
    ]
    arguments += ["data.label=truth", "data.image_size=16", "method=proden", "training.epochs=6"]
    arguments += [
        "training.optimizer=adam",
        "training.learning_rate=0.01",
        "training.batch_size=24",
    ]
    assert cli.main([str(part) for part in [*arguments, "--out", tmp_path / "run"]]) == 0
    config = runs.read_config(tmp_path / "run" / "config.yaml")
    assert config.network.name == "convnet"
    told = pd.read_csv(tmp_path / "run" / "label_distributions.csv")
    assert told["file"].tolist() == frame["file"].iloc[told["row"]].tolist()
    predicted = runs.predict(tmp_path / "run", folder / "labels.csv")
    assert predicted[["key", "file"]].equals(frame[["key", "file"]].astype(predicted["key"].dtype))
    probabilities = predicted[[f"p({name})" for name in NAMES]].to_numpy()
    model = vt.load_model(tmp_path / "run" / "model.keras")
    paths = [str(folder / "photos" / name) for name in frame["file"]]
    np.testing.assert_allclose(model.predict(paths, verbose=0), probabilities, atol=1e-6)
    version = runs.export(tmp_path / "run", tmp_path / "served")
    served = tf.saved_model.load(version).signatures["serving_default"]
    answer = served(image=tf.constant([tf.io.read_file(path).numpy() for path in paths]))
    np.testing.assert_allclose(answer["probabilities"], probabilities, atol=1e-4)
    assert runs.evaluate(tmp_path / "run", folder / "labels.csv")["accuracy"] > 0.6


def test_a_backbone_takes_its_weights_from_a_file(tmp_path):
    import keras

    body = keras.applications.MobileNetV2(
        include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg"
    )
    body.save_weights(tmp_path / "body.weights.h5")
    network = vt.networks.backbone((32, 32, 3), 4, weights=str(tmp_path / "body.weights.h5"))
    pictures = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.float32)
    inside = keras.Model(network.inputs[0], network.layers[-1].input)
    expected = body(
        keras.applications.mobilenet_v2.preprocess_input(pictures.copy()), training=False
    )
    np.testing.assert_allclose(inside(pictures, training=True), expected, atol=1e-4)
    assert len(network.trainable_weights) == 2
    model = vt.methods.Proden(network)  # is a classifier for every method
    model.save(tmp_path / "model.keras")
    read = vt.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(read(pictures), model(pictures), atol=1e-6)
    with pytest.raises(FileNotFoundError, match="no file of weights nowhere"):
        vt.networks.backbone((32, 32, 3), 4, weights="nowhere.h5")
    with pytest.raises(ValueError, match="`kind` must be one of MobileNet"):
        vt.networks.backbone((32, 32, 3), 4, kind="VGG")


def test_what_is_no_picture_is_named(photos, tmp_path):
    folder, frame = photos
    (tmp_path / "a.png").write_bytes(b"no picture")
    data = vt.PartialLabelDataset.from_images([tmp_path / "a.png"], [["x"]])
    with pytest.raises(ValueError, match=r"a\.png must be a picture \(JPEG, PNG, GIF or BMP\)"):
        data.features[:]
    with pytest.raises(ValueError, match=r"`paths` must be files.*nowhere\.png in row 0"):
        vt.PartialLabelDataset.from_images([tmp_path / "nowhere.png"], [["x"]])
    for name in ("../labels.csv", "nowhere.jpg"):
        frame.assign(file=[*frame["file"][:-1], name]).to_csv(tmp_path / "bad.csv", index=False)
        values = [f"data.csv={tmp_path / 'bad.csv'}", f"data.images={folder / 'photos'}"]
        with pytest.raises(ValueError, match=r"Every picture must be a file in .* in row 89"):
            runs.prepare(runs.read_config(overrides=values))
    with pytest.raises(ValueError, match="in memory"):
        data.save(tmp_path / "data.npz")
