"""CONTRIBUTING's recipes, followed to the letter."""

import dataclasses
import importlib
import json
import pathlib
import re
import sys

import bad_inputs
import numpy as np
import pandas
import pytest
import tensorflow as tf
import test_architecture
import test_hints
from conftest import blobs, cell, compiled

import valen_tf as vt
from valen_tf import cli
from valen_tf.data import corruption
from valen_tf.papers.valen2021 import typeset

TEXT = (pathlib.Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text()


def recipe(name):
    return re.search(rf"<!-- {name} -->\n```python\n(.*?)```\n<!-- end -->", TEXT, re.S)[1]


@pytest.fixture
def sharpened(tmp_path, monkeypatch):
    """The method of the recipe, in a module outside of the package."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    pathlib.Path("my_methods.py").write_text(recipe("method"))
    yield "my_methods:Sharpened"
    if "sharpened" in vt.methods.names():
        vt.methods.forget("sharpened")
    sys.modules.pop("my_methods", None)


def test_a_method_from_outside_is_trained_tuned_saved_loaded_exported_and_tabulated(sharpened):
    assert len(recipe("method").splitlines()) < 50
    short = ["data.examples=200", "data.corruption=uniform", "training.epochs=2"]
    assert cli.main(["train", *short, "--method", sharpened, "--out", "run"]) == 0
    assert "accuracy" in json.loads(pathlib.Path("run/summary.json").read_text())
    assert pathlib.Path("run/label_distributions.csv").exists()
    # The folder does not name the module, so that nobody's folder makes it be imported.
    assert "method: sharpened" in pathlib.Path("run/config.yaml").read_text()
    assert cli.main(["predict", "run", "--output", "predictions.csv"]) == 0
    assert len(pandas.read_csv("predictions.csv")) > 300
    assert cli.main(["export", "run", "served"]) == 0
    assert pathlib.Path("served/1/saved_model.pb").exists()
    tune = ["tune", *short, "--method", "sharpened", "--trials", "1", "--out", "search"]
    assert cli.main(tune) == 0
    assert list(pandas.read_csv("search/trials.csv")["status"]) == ["COMPLETED"]

    dataset = blobs(60)
    model = compiled(vt.methods.find("sharpened"), dataset, power=3.0)
    model.fit(dataset, epochs=2, verbose=0)
    model.save("model.keras")
    loaded = vt.load_model("model.keras")
    assert type(loaded).__name__ == "Sharpened" and loaded.power == 3.0
    np.testing.assert_array_equal(
        loaded.predict(dataset.features, verbose=0), model.predict(dataset.features, verbose=0)
    )
    page = typeset.markdown(cell("table5", "lost", "sharpened", [0.5, 0.6]), "table5")
    assert "| Sharpened |" in page


def test_the_method_of_the_recipe_keeps_the_rules_of_the_house(sharpened, tmp_path, monkeypatch):
    path = tmp_path / "my_methods.py"
    floor = test_architecture.floor_of("methods.sharpened")
    assert all(
        test_architecture.floor_of(other) < floor for other in test_architecture.imports(path)
    )
    monkeypatch.setitem(test_hints.MODULES, "methods.sharpened", path)
    assert list(test_hints.without_hints("methods.sharpened")) == []
    vt.methods.import_method(sharpened)
    method = vt.methods.find("sharpened")
    assert set(bad_inputs.arguments_of(method)) <= {*method.rules, "embedding"}
    # The command of the recipe brings the README up to date.
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- methods -->\nold\n<!-- end -->\nafter\n")
    assert cli.main(["methods", "--page", str(page)]) == 0
    table = vt.methods.markdown()
    assert page.read_text() == f"before\n<!-- methods -->\n{table}\n<!-- end -->\nafter\n"
    page.write_text("without marks")
    assert cli.main(["methods", "--page", str(page)]) == 2
    assert page.read_text() == "without marks"


def test_no_config_makes_a_module_be_imported(sharpened, capsys):
    for method in (sharpened, "sharpened"):
        assert cli.main(["train", f"method={method}", "--out", "run"]) == 2
        assert "VALEN_TF_METHODS=module" in capsys.readouterr().err
    assert "my_methods" not in sys.modules
    assert cli.main(["train", "--method", "no_such_module:Class"]) == 2
    assert "package.module:Class" in capsys.readouterr().err


def test_a_module_that_the_user_names_is_imported(sharpened, monkeypatch):
    monkeypatch.setenv("VALEN_TF_METHODS", "my_methods")
    assert cli.main(["methods"]) == 0
    assert "sharpened" in vt.methods.names()


def test_a_generator_from_outside_draws_candidate_sets(monkeypatch):
    monkeypatch.setattr(corruption, "GENERATORS", dict(corruption.GENERATORS))
    exec(recipe("generator"), {})
    digits = vt.datasets.load("digits").take(slice(400))
    drawn = corruption.corrupt(digits, "next_class", rate=1.0)
    rows = np.arange(400)
    assert (drawn.candidates.sum(axis=1) == 2).all()
    assert drawn.candidates[rows, (digits.labels + 1) % 10].all()
    assert vt.datasets.load("digits").average_candidates == 1
    with pytest.raises(ValueError, match="`at_least_one_wrong` is for procedure='uniform'"):
        corruption.corrupt(digits, "next_class", at_least_one_wrong=True)


def test_the_readme_has_the_methods_of_the_cards(capsys):
    readme = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text()
    assert cli.main(["methods"]) == 0
    table = capsys.readouterr().out
    assert f"<!-- methods -->\n{table}<!-- end -->" in readme
    for cls in vt.methods.every():
        assert f"| `{cls.__name__}` | `{cls.card.name}`" in table
        # What was read off the source is what the class says.
        assert cls.card == dataclasses.replace(
            vt.methods._in_file(cls.card.name)[1], tuning=cls.card.tuning
        )


@pytest.mark.parametrize("name", sorted(vt._ELSEWHERE))
def test_former_modules_are_found(name):
    module = importlib.import_module(f"valen_tf.{name}")
    assert module is getattr(vt, name)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (lambda x: x, "must return a dict of terms"),
        (lambda x: {"other": x}, "which are classification. Received: 'other'"),
        (lambda x: {"classification": x[0]}, "one value per example.*'classification' of shape"),
        (
            lambda x: {"classification": tf.reduce_mean(x, keepdims=True)},
            r"one value per example.*'classification' of shape \(1,\)",
        ),
    ],
)
def test_terms_that_no_step_can_use_are_refused(terms, message):
    class Broken(vt.PartialLabelModel):
        def objective(self, features, logits, candidates, index):
            return terms(vt.losses.candidate_likelihood(logits, candidates))

    with pytest.raises((TypeError, ValueError), match=message):
        compiled(Broken, blobs(30)).fit(blobs(30), verbose=0)
