"""A table of Keras habits: each works, or is answered with one clear sentence; none is silent."""

import re
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import blobs, compiled
from keras import layers

import valen_tf as vt
from valen_tf.callbacks import WarmUp

DATA = blobs(40)
WORDS = np.array([f"{'abc'[label]} word{n % 3}" for n, label in enumerate(DATA.labels)])
CHOSEN = ("embedding", "hidden")


def valen(network, **settings):
    """VALEN in eager steps, which spares the tracing."""
    return compiled(vt.Valen, DATA, network=network, eager=True, **settings)


def two_inputs():
    inputs = {"a": keras.Input((3,), name="a"), "b": keras.Input((1,), name="b")}
    hidden = layers.Dense(4, "relu")(layers.Concatenate()([*inputs.values()]))
    return keras.Model(inputs, layers.Dense(3)(hidden))


def a_list_of_inputs():
    inputs = [keras.Input((3,)), keras.Input((1,))]
    return keras.Model(inputs, layers.Dense(3)(layers.Concatenate()(inputs)))


def reads_texts():
    vectorize = layers.TextVectorization(output_mode="multi_hot")
    vectorize.adapt(WORDS)
    inputs = keras.Input((), dtype="string")
    hidden = layers.Dense(4, "relu")(vectorize(inputs))
    return keras.Model(inputs, layers.Dense(3)(hidden))


def hidden_network(*ending, classes=3):
    return keras.Sequential(
        [keras.Input((3,)), layers.Dense(4, "relu"), layers.Dense(classes), *ending]
    )


class Own(keras.Model):
    def __init__(self, end=None, **kwargs):
        super().__init__(**kwargs)
        self.hidden, self.head = layers.Dense(5, "relu"), layers.Dense(3)
        self.end = end

    def call(self, features):
        logits = self.head(self.hidden(features))
        return logits if self.end is None else self.end(logits)


def own(end=None):
    model = Own(end)
    model(np.zeros((1, 3), np.float32))
    return model


def wrapped(inner):
    inputs = keras.Input((3,))
    return keras.Model(inputs, inner(inputs))


# kind of network -> (what makes it, its features, size of the embedding, its kernel's layer)
NETWORKS = {
    "functional with a dict of inputs": (
        two_inputs,
        {"a": DATA.features, "b": DATA.features[:, :1]},
        4,
    ),
    "functional with a list of inputs": (
        a_list_of_inputs,
        [DATA.features, DATA.features[:, :1]],
        4,
    ),
    "texts, TextVectorization inside": (reads_texts, WORDS, 4),
    "texts in a list of Python": (reads_texts, WORDS.tolist(), 4),
    "nested application with a top of its own": (
        lambda: wrapped(hidden_network()),
        DATA.features,
        4,
    ),
    "nested twice": (lambda: wrapped(wrapped(hidden_network())), DATA.features, 4),
    "subclassed, built": (own, DATA.features, 5),
    "subclassed, wrapped": (lambda: wrapped(Own()), DATA.features, 5),
    "trailing linear activation": (
        lambda: hidden_network(layers.Activation("linear")),
        DATA.features,
        4,
    ),
    "trailing Rescaling, a temperature": (
        lambda: hidden_network(layers.Rescaling(0.5)),
        DATA.features,
        4,
    ),
    "batch normalization of the logits": (
        lambda: hidden_network(layers.BatchNormalization()),
        DATA.features,
        4,
    ),
    "convolutional, averaged logits": (
        lambda: keras.Sequential(
            [
                keras.Input((3,)),
                layers.Reshape((3, 1, 1)),
                layers.Conv2D(6, 1, activation="relu"),
                layers.Conv2D(3, 1),
                layers.GlobalAveragePooling2D(),
            ]
        ),
        DATA.features,
        6,
    ),
    "linear": (lambda: vt.networks.linear((3,), 3), DATA.features, 3),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_this_network_trains_with_its_real_embedding(kind, tmp_path):
    make, features, size = NETWORKS[kind]
    model = valen(make())
    assert model.embedding_size == size
    model.fit(features, DATA.candidates, epochs=2, callbacks=WarmUp(1), verbose=0, batch_size=20)
    assert model.has_graph
    assert model.predict(features, verbose=0).shape == (40, 3)
    scores = model.evaluate(features, DATA.labels, verbose=0, return_dict=True)
    assert set(scores) == {"loss", "accuracy"}
    if kind.startswith("texts, "):
        model.save(tmp_path / "m.keras")
        loaded = vt.load_model(tmp_path / "m.keras")
        np.testing.assert_array_equal(
            loaded.predict(features, verbose=0), model.predict(features, verbose=0)
        )


REFUSED = {
    "softmax as an argument": lambda: hidden_network(layers.Activation("softmax")),
    "softmax layer": lambda: hidden_network(layers.Softmax()),
    "sigmoid activation": lambda: hidden_network(layers.Activation("sigmoid")),
    "sigmoid of the last Dense": lambda: keras.Sequential(
        [keras.Input((3,)), layers.Dense(3, "sigmoid")]
    ),
    "softmax inside of a nested model": lambda: wrapped(hidden_network(layers.Softmax())),
    "softmax in a subclassed model": lambda: own(keras.ops.softmax),
    "sigmoid in a subclassed model": lambda: own(keras.ops.sigmoid),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_network_of_probabilities_is_refused(kind):
    with pytest.raises(ValueError, match="must give logits, so it must not end in"):
        vt.methods.Proden(REFUSED[kind]())


def test_an_embedding_of_a_nested_layer_can_be_named():
    inner = keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(7, "relu", name="deep"),
            layers.Dense(4),
            layers.Dense(3),
        ]
    )
    assert vt.Valen(wrapped(inner), embedding="deep").embedding_size == 7


def test_an_embedding_that_tells_nothing_warns():
    network = hidden_network(layers.Activation("linear", name="last"))
    with pytest.warns(UserWarning, match="is the logits, behind every layer that learns: name the"):
        vt.Valen(network, embedding="last")
    inputs = keras.Input((3,))
    first = layers.Activation("linear", name="first")(inputs)
    network = keras.Model(inputs, layers.Dense(3)(layers.Dense(4)(first)))
    with pytest.warns(UserWarning, match="is the features as they come in"):
        vt.Valen(network, embedding="first")


def test_an_output_of_no_single_layer_asks_for_the_embedding():
    inputs = keras.Input((3,))
    network = keras.Model(inputs, layers.Add()([layers.Dense(3)(inputs), layers.Dense(3)(inputs)]))
    with pytest.raises(ValueError, match="which layer gives its logits: name the layer"):
        vt.Valen(network)


# -- forms of data ------------------------------------------------------------------------------


class Pieces(keras.utils.PyDataset):
    """Batches as people write them, with an index."""

    index = True

    def __len__(self):
        return 4

    def __getitem__(self, number):
        rows = np.arange(10 * number, 10 * number + 10)
        targets = {"candidates": DATA.candidates[rows], "index": rows}
        return DATA.features[rows], targets if self.index else DATA.candidates[rows]


def generated():
    for number in range(4):
        yield Pieces()[number]


def weights_after(**fitting):
    model = compiled(vt.methods.Proden, DATA, seed=1)
    model.fit(**fitting, epochs=2, verbose=0)
    return model.classifier.get_weights()


@pytest.mark.parametrize("form", ["PyDataset", "function of a generator"])
def test_batches_that_python_makes_train_as_arrays_do(form):
    made = {"PyDataset": Pieces(), "function of a generator": generated}[form]
    expected = weights_after(x=DATA.batches(10, shuffle=False))
    for ours, theirs in zip(weights_after(x=made), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


class NoIndex(Pieces):
    index = False


ANSWERED = {
    "a generator object": (lambda m: m.fit(generated(), verbose=0), "cannot: give the function"),
    "PyDataset without an index": (
        lambda m: m.fit(NoIndex(), verbose=0),
        "the index says which training example",
    ),
    "lists of labels": (
        lambda m: m.fit(DATA.features, [["a", "b"]] * 40, verbose=0),
        "from_label_lists",
    ),
    "sparse metric": (
        lambda m: m.compile(metrics=["sparse_categorical_accuracy"]),
        "not sparse ones.*integer labels as well",
    ),
    "sparse metric object": (
        lambda m: m.compile(metrics=[keras.metrics.SparseCategoricalAccuracy()]),
        "not sparse ones",
    ),
    "a loss": (lambda m: m.compile(loss="mse"), "brings its own loss"),
    "train_on_batch at first": (
        lambda m: m.train_on_batch(*Pieces()[0]),
        r"batches = model.meet\(train\)",
    ),
    "train_on_batch with labels": (
        lambda m: m.train_on_batch(DATA.features, DATA.labels),
        "the index says which training example",
    ),
    "train_step by hand with labels": (
        lambda m: m.train_step((DATA.features, DATA.labels)),
        "the index says which training example",
    ),
    "sample_weight of another length": (
        lambda m: m.fit(DATA, sample_weight=[1.0], verbose=0),
        r"`sample_weight` must have shape \(40,\)",
    ),
    "negative sample_weight": (
        lambda m: m.fit(DATA, sample_weight=-np.ones(40), verbose=0),
        "finite and not negative",
    ),
    "class_weight by name": (
        lambda m: m.fit(DATA, class_weight={"cat": 1.0}, verbose=0),
        "`class_weight` must be an integer",
    ),
    "class_weight of no class": (
        lambda m: m.fit(DATA, class_weight={3: 1.0}, verbose=0),
        "class numbers from 0 to 2",
    ),
    "validation_data of three parts": (
        lambda m: m.fit(DATA, validation_data=(1, 2, 3), verbose=0),
        "must be data, or a pair",
    ),
    "a dict of texts and numbers of two lengths": (
        lambda m: m.fit({"a": ["x"], "b": [1.0, 2.0]}, DATA.candidates, verbose=0),
        "same length",
    ),
    "no compile": (
        lambda m: vt.methods.Proden(vt.networks.linear((3,), 3)).fit(DATA, verbose=0),
        "compile",
    ),
}


@pytest.fixture(scope="module")
def untrained():
    return compiled(vt.methods.Proden, DATA)


@pytest.mark.parametrize("habit", ANSWERED)
def test_what_cannot_work_is_answered_in_one_sentence(habit, untrained):
    act, words = ANSWERED[habit]
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        act(untrained)
    assert len(str(caught.value)) < 500


# -- loss, names, progress ----------------------------------------------------------------------


def run(callbacks=(), **settings):
    model = compiled(vt.Valen, DATA, rate=0.03, **settings)
    return model.fit(DATA.batches(20), epochs=20, callbacks=[*callbacks, WarmUp(8)], verbose=0)


def test_the_loss_does_not_jump_where_label_enhancement_begins():
    reduce = keras.callbacks.ReduceLROnPlateau("loss", patience=3, factor=0.1)
    stop = keras.callbacks.EarlyStopping("loss", patience=3)
    history = run([reduce, stop]).history
    loss, objective = np.array(history["loss"]), np.array(history["objective"])
    assert len(loss) == 20 and history["learning_rate"][-1] == pytest.approx(0.03)
    assert objective[8] > 2 * objective[7]  # what is minimized does jump
    assert abs(loss[8] - loss[7]) < 0.2 * loss[7] and loss[-1] < loss[7]


def test_the_loss_is_that_of_evaluate():
    model = compiled(vt.Valen, DATA, rate=0.0)
    history = model.fit(DATA, epochs=2, callbacks=WarmUp(1), validation_data=DATA, verbose=0)
    assert history.history["loss"] == pytest.approx(history.history["val_loss"], rel=1e-5)


def test_the_covering_rate_is_not_called_accuracy(capsys):
    model = compiled(vt.methods.Proden, DATA)
    history = model.fit(DATA, validation_data=DATA.revealed(), epochs=1, verbose=2).history
    assert {"covering_rate", "val_accuracy"} <= set(history) and "accuracy" not in history
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert " - covering_rate: " in shown and " - accuracy: " not in shown
    assert "covering_rate" in model.evaluate(DATA, verbose=0, return_dict=True)
    assert "accuracy" in model.fit(DATA.revealed(), verbose=0).history
    batches = tf.data.Dataset.from_tensor_slices((DATA.features, DATA.candidates)).batch(20)
    assert "covering_rate" in model.evaluate(batches, verbose=0, return_dict=True)
    assert len(model.evaluate(DATA, verbose=0)) == 2


def test_the_progress_line_has_no_terms_that_are_not_in_use(capsys):
    model = compiled(vt.Valen, DATA)
    model.fit(DATA, epochs=2, callbacks=WarmUp(1), verbose=2)
    first, second = re.findall(r"step - (.*)", capsys.readouterr().out)
    assert "kl" not in first and "objective" not in first and "loss" in first
    assert "kl" in second and "objective" in second


# -- weights, loops, scales, small data ---------------------------------------------------------


def test_sample_weights_leave_examples_out():
    weights = np.ones(40)
    weights[30:] = 0
    changed = DATA.candidates.copy()
    changed[30:] = 1  # which nothing learns from
    other = vt.PartialLabelDataset(DATA.features, changed)
    batches = {"shuffle": False}
    ours = weights_after(x=DATA.batches(40, **batches), sample_weight=weights)
    theirs = weights_after(x=other.batches(40, **batches), sample_weight=weights)
    for first, second in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.allclose(ours[-1], weights_after(x=DATA.batches(40, **batches))[-1])


def test_class_weights_are_keras_own_on_true_labels():
    rate, weights = 0.1, {0: 5.0, 2: 0.5}
    network = vt.networks.linear((3,), 3, moments=False)
    plain = keras.models.clone_model(network)
    plain.set_weights(network.get_weights())
    plain.compile(keras.optimizers.SGD(rate), keras.losses.SparseCategoricalCrossentropy(True))
    plain.fit(DATA.features, DATA.labels, batch_size=40, class_weight=weights, verbose=0)
    model = vt.methods.Proden(network)
    model.compile(keras.optimizers.SGD(rate))
    model.fit(DATA.features, DATA.labels, batch_size=40, class_weight=weights, verbose=0)
    for ours, theirs in zip(network.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_training_loop_of_ones_own_does_what_fit_does():
    expected = compiled(vt.methods.Proden, DATA)
    expected.fit(DATA.batches(20), epochs=2, verbose=0)
    model = compiled(vt.methods.Proden, DATA)
    batches = model.meet(DATA.batches(20))
    for _ in range(2):
        model.set_batch_order()
        for features, targets in batches:
            logs = model.train_on_batch(features, targets, return_dict=True)
        model.memory["epochs_trained"].assign_add(1)
    assert "covering_rate" in logs
    for ours, theirs in zip(
        model.classifier.get_weights(), expected.classifier.get_weights(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert set(model.test_on_batch(DATA.features, DATA.labels, return_dict=True)) == {
        "loss",
        "accuracy",
    }


def test_a_network_learns_its_scale_in_the_first_fit(tmp_path):
    stretched = vt.PartialLabelDataset(DATA.features * [1, 100, 1e4] + 50, DATA.candidates)
    learned = compiled(
        vt.methods.Proden, stretched, network=vt.networks.mlp((3,), 3, hidden_units=(4,))
    )
    learned.predict(stretched, verbose=0)  # a trace that knows no scale yet
    given = vt.networks.mlp((3,), 3, hidden_units=(4,), moments=stretched.moments())
    given = compiled(vt.methods.Proden, stretched, network=given)
    own = tf.data.Dataset.from_tensor_slices(
        (stretched.features, {"candidates": stretched.candidates, "index": np.arange(40)})
    )
    streamed = compiled(
        vt.methods.Proden, stretched, network=vt.networks.mlp((3,), 3, hidden_units=(4,))
    )
    learned.fit(stretched.batches(20), epochs=2, verbose=0)
    given.fit(stretched.batches(20), epochs=2, verbose=0)
    streamed.fit(own.batch(20), epochs=2, verbose=0)
    np.testing.assert_array_equal(
        learned.predict(stretched, verbose=0), given.predict(stretched, verbose=0)
    )
    scale, other = (model.classifier.get_layer("learned_scale") for model in (learned, streamed))
    np.testing.assert_allclose(scale.mean, other.mean, rtol=1e-5)
    np.testing.assert_allclose(scale.variance, other.variance, rtol=1e-3)
    learned.save(tmp_path / "m.keras")
    loaded = vt.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(
        loaded.predict(stretched, verbose=0), learned.predict(stretched, verbose=0)
    )


def test_a_network_of_ones_own_on_unscaled_features_warns():
    stretched = vt.PartialLabelDataset(1000 * DATA.features, DATA.candidates)
    model = compiled(vt.methods.Proden, DATA, network=hidden_network())
    with pytest.warns(UserWarning, match="standard deviations from .* no layer of .* scales them"):
        model.fit(stretched, verbose=0)
    normalized = keras.Sequential([keras.Input((3,)), layers.BatchNormalization(), layers.Dense(3)])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        compiled(vt.methods.Proden, DATA, network=normalized).fit(stretched, verbose=0)
        compiled(vt.methods.Proden, DATA, network=hidden_network()).fit(DATA, verbose=0)


@pytest.mark.parametrize("method", [vt.Valen, vt.methods.ValenAuthors])
def test_ten_rows_have_nine_neighbors_each(method):
    few = blobs(10, spread=0.3)
    model = compiled(method, few, eager=True, num_neighbors=10)
    with pytest.warns(
        UserWarning, match="but there are 10 examples: each one's neighbors are the 9"
    ):
        model.fit(few, epochs=3, callbacks=WarmUp(1), verbose=0)
    assert model.has_graph and np.isfinite(model.label_distributions()).all()
