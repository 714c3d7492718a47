"""Which callbacks run, and that a user's own take the place of the default ones."""

import numpy as np
import pytest
from conftest import blobs, compiled

import valen_tf as vt
from valen_tf.callbacks import GraphRebuild, Progress, Resume, WarmUp


def names(model, callbacks):
    return [type(callback).__name__ for callback in model._all_callbacks(callbacks)]


def test_the_methods_callbacks_are_there_by_default():
    model = compiled(vt.Valen, blobs(30))
    assert names(model, None) == ["WarmUp", "GraphRebuild", "_Epochs"]
    assert names(compiled(vt.baselines.ValenNon, blobs(30)), None) == ["_Epochs"]


def test_a_users_own_replaces_the_default_one():
    model = compiled(vt.Valen, blobs(30))
    mine = GraphRebuild(3)
    resume = Resume("unused.npz")
    callbacks = model._all_callbacks([resume, mine])
    assert [type(callback).__name__ for callback in callbacks] == [
        "WarmUp",
        "GraphRebuild",
        "_Epochs",
        "Resume",
    ]
    assert callbacks[1] is mine
    assert names(model, mine) == ["WarmUp", "GraphRebuild", "_Epochs"]


def test_the_default_warm_up_is_ten_epochs():
    dataset = blobs(30)
    model = compiled(vt.Valen, dataset)
    model.fit(dataset, epochs=10, verbose=0)
    assert not model.has_graph
    model.fit(dataset, epochs=1, verbose=0)
    assert model.has_graph


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
    model = compiled(vt.Valen, dataset)
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
    # On candidate sets "accuracy" is the share of predictions inside them.
    np.testing.assert_allclose(history["val_covering_rate"], history["val_accuracy"], rtol=1e-6)
    predicted = model.predict(held_out, verbose=0).argmax(axis=1)
    assert history["test_accuracy"][-1] == np.mean(predicted == held_out.labels)
    assert 0 < history["val_approximated_accuracy"][-1] <= history["val_covering_rate"][-1]
