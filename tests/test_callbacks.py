"""Which callbacks run, and that a user's own take the place of the default ones."""

import warnings

import keras
import numpy as np
import pytest
from conftest import blobs, compiled

import valen_tf as vt
from valen_tf.callbacks import Cooldown, GraphRebuild, Progress, Resume, WarmUp, with_defaults


def names(model, callbacks):
    return [
        type(callback).__name__ for callback in with_defaults(callbacks, model.training_callbacks())
    ]


def test_the_methods_callbacks_are_there_by_default():
    model = compiled(vt.Valen, blobs(30))
    assert names(model, None) == ["WarmUp", "GraphRebuild", "Cooldown", "Epochs"]
    assert names(compiled(vt.baselines.ValenNon, blobs(30)), None) == ["Epochs"]


def test_a_users_own_replaces_the_default_one():
    model = compiled(vt.Valen, blobs(30))
    mine = GraphRebuild(3)
    resume = Resume("unused.npz")
    callbacks = with_defaults([resume, mine], model.training_callbacks())
    assert [type(callback).__name__ for callback in callbacks] == [
        "WarmUp",
        "GraphRebuild",
        "Cooldown",
        "Epochs",
        "Resume",
    ]
    assert callbacks[1] is mine
    assert names(model, mine) == ["WarmUp", "GraphRebuild", "Cooldown", "Epochs"]


@pytest.mark.parametrize(("epochs", "warm_up"), [(2, 1), (9, 3), (10, 3), (33, 10), (500, 10)])
def test_the_default_warm_up_is_a_third_of_the_epochs_and_ten_at_most(epochs, warm_up):
    dataset = blobs(30)
    model = compiled(vt.Valen, dataset, eager=True)
    stop = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: setattr(model, "stop_training", epoch >= warm_up)
    )
    history = model.fit(dataset, epochs=epochs, callbacks=[stop], verbose=0).history
    assert [kl > 0 for kl in history["kl"]] == [False] * warm_up + [True]


class Rates(keras.callbacks.Callback):
    """Notes the learning rates of every epoch, while it lasts."""

    def on_train_begin(self, logs=None):
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        if batch == 0:
            self.seen.append([float(each.optimizer.learning_rate) for each in self.model.updates])


def rates(model, epochs=10, callbacks=(), dataset=None):
    """The classifier's and the encoder's learning rates, epoch by epoch."""
    watch = Rates()
    model.fit(dataset or blobs(30), epochs=epochs, callbacks=[*callbacks, watch], verbose=0)
    return np.transpose(watch.seen)


def test_learning_rates_of_valen_fall_to_zero_over_the_last_fifth_of_the_epochs():
    model = vt.Valen(vt.networks.linear((3,), 3))
    model.compile(run_eagerly=True)
    expected = [1e-2] * 9 + [0.5e-2]
    np.testing.assert_allclose(rates(model), [expected, expected])
    # Another fit begins with the whole rates.
    np.testing.assert_allclose(rates(model, 5), [[1e-2] * 5] * 2)


def test_a_users_own_rates_are_left_alone_unless_a_cooldown_is_asked_for():
    model = vt.Valen(vt.networks.linear((3,), 3))
    eager = {"run_eagerly": True}
    model.compile(keras.optimizers.SGD(0.1), **eager)
    np.testing.assert_allclose(rates(model)[0], [0.1] * 10)
    np.testing.assert_allclose(rates(model, 4, [Cooldown(0.5)])[0], [0.1, 0.1, 0.1, 0.05])
    model.compile(keras.optimizers.SGD(0.1), cooldown=0.5, **eager)
    np.testing.assert_allclose(rates(model, 4)[0], [0.1, 0.1, 0.1, 0.05])
    halved = keras.optimizers.schedules.PiecewiseConstantDecay([4], [0.1, 0.05])
    model.compile(keras.optimizers.SGD(halved), cooldown=0.5, **eager)
    np.testing.assert_allclose(rates(model, 6)[0], [0.1] * 4 + [0.05] * 2)


def test_an_interrupted_epoch_leaves_the_whole_rates():
    model = vt.Valen(vt.networks.linear((3,), 3))
    model.compile(run_eagerly=True)

    class Stop(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if self.model.epochs_trained == 9:
                assert float(self.model.optimizer.learning_rate) < 1e-2
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rates(model, callbacks=[Stop()])
    np.testing.assert_allclose([float(u.optimizer.learning_rate) for u in model.updates], 1e-2)


def test_the_methods_of_constant_rates_keep_them():
    for method in (vt.ValenPaper, vt.methods.ValenAuthors, vt.methods.Proden):
        model = method(vt.networks.linear((3,), 3))
        model.compile(run_eagerly=True)
        assert len(np.unique(rates(model)[0])) == 1


def test_a_loaded_model_cools_down_as_it_was_compiled(tmp_path):
    model = vt.Valen(vt.networks.linear((3,), 3))
    model.compile(cooldown=0.5, run_eagerly=True)
    model.fit(blobs(30), epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    assert vt.load_model(tmp_path / "model.keras").cooldown == 0.5


def test_training_that_ends_in_the_warm_up_warns():
    dataset = blobs(30)
    model = compiled(vt.Valen, dataset, eager=True)
    with pytest.warns(UserWarning, match="Valen never left its warm-up, so that no label was enh"):
        model.fit(dataset, epochs=3, callbacks=WarmUp(3), verbose=0)
    assert not model.has_graph
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(dataset, epochs=2, verbose=0)
        assert model.has_graph
        # A short fit that follows goes on with label enhancement.
        history = model.fit(dataset, epochs=1, callbacks=WarmUp(100), verbose=0).history
    assert history["kl"][0] > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WarmUp(-1), "`epochs` must be an integer of at least 0. Received: epochs=-1"),
        (lambda: GraphRebuild(0), "`every` must be an integer of at least 1. Received: every=0"),
        (
            lambda: Resume("x", every=0),
            "`every` must be an integer of at least 1. Received: every=0",
        ),
    ],
)
def test_impossible_schedules_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("callback", [WarmUp(), GraphRebuild()])
def test_a_method_without_label_enhancement_has_no_use_for_its_callbacks(callback):
    dataset = blobs(30)
    model = compiled(vt.baselines.Proden, dataset)
    with pytest.raises(ValueError, match="leave it out of `callbacks`. Received: a Proden"):
        model.fit(dataset.batches(30), callbacks=[callback], verbose=0)


def test_no_warm_up_enhances_from_the_first_epoch():
    dataset = blobs(30)
    model = compiled(vt.Valen, dataset, eager=True)
    history = model.fit(dataset, epochs=1, callbacks=WarmUp(0), verbose=0).history
    assert history["kl"][0] > 0


def test_progress_prints_a_line_per_tenth_without_a_terminal(capsys):
    dataset = blobs(30)
    model = compiled(vt.baselines.ValenNon, dataset)
    model.fit(
        dataset,
        validation_data=dataset.revealed(),
        epochs=20,
        callbacks=Progress("training"),
        verbose=0,
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("training: epoch 20 of 20  loss ")
    assert "held-out accuracy" in lines[-1]


def test_resume_can_save_less_often(tmp_path):
    dataset = blobs(30)
    model = compiled(vt.baselines.ValenNon, dataset)
    resume = Resume(tmp_path / "state.npz", every=3)
    saves = []
    save = resume._save
    resume._save = lambda: (saves.append(len(resume.epochs)), save())
    model.fit(dataset, epochs=7, callbacks=resume, verbose=0)
    assert saves == [3, 6, 7]


def test_held_out_scores_are_keras_own():
    dataset, held_out = blobs(60), blobs(30, seed=1)
    model = compiled(vt.baselines.ValenNon, dataset, metrics=("accuracy",))
    watch = vt.callbacks.HeldOutScores(held_out, held_out)
    history = model.fit(
        dataset, validation_data=held_out, epochs=2, callbacks=watch, verbose=0
    ).history
    predicted = model.predict(held_out, verbose=0).argmax(axis=1)
    assert history["test_accuracy"][-1] == np.mean(predicted == held_out.labels)
    assert 0 < history["val_approximated_accuracy"][-1] <= history["val_covering_rate"][-1]
