"""Input that means nothing is refused at every door, in one line that names it and what was received."""

import collections
import inspect
import pathlib
import subprocess
import sys

import bad_inputs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import valen_tf as vt
from valen_tf import checks, cli, runs


@pytest.mark.parametrize("family", bad_inputs.FAMILIES, ids=lambda family: family.__name__)
def test_bad_values_are_refused_by_name_in_one_line(family):
    verdicts = {(case.kind, case.name): bad_inputs.verdict(case) for case in family()}
    assert not {name: wrong for name, wrong in verdicts.items() if wrong is not None}


def test_there_are_hundreds_of_cases_and_no_case_twice():
    twice = collections.Counter((case.kind, case.name) for case in bad_inputs.cases())
    assert len(twice) > 1000
    assert not [name for name, count in twice.items() if count > 1]


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (lambda: 3, "was accepted"),
        (lambda: {}["rate"], "KeyError"),
        (lambda: "a" < 3, "in Python's words"),
        (lambda: float("fast"), "does not name `rate`"),
        (lambda: checks.SHARE("rate", 1.5), "does not repeat"),
        (lambda: bad_inputs.Ended(0, ""), "ended well"),
        (lambda: bad_inputs.Ended(2, "usage:\n`rate` is bad\n"), "not one short line"),
        (lambda: bad_inputs.Ended(1, "`rate` 2.5\n"), "ended with 1"),
    ],
)
def test_the_verdict_finds_what_is_wrong(call, wrong):
    assert wrong in bad_inputs.verdict(bad_inputs.Case("", "", call, "`rate`", "2.5"))


def test_values_at_the_edge_are_accepted():
    for name, call in bad_inputs.good_cases():
        try:
            call()
        except Exception as error:
            pytest.fail(f"{name}: {error}")


def test_every_argument_of_every_method_has_a_rule():
    for method in bad_inputs.own_methods():
        without = set(bad_inputs.arguments_of(method)) - set(method.rules) - {"embedding"}
        assert not without, method


def test_every_value_of_a_config_has_a_rule():
    known = {
        f"{section}.{key}"
        for section in ("data", "network", "training")
        for key in inspect.signature(type(getattr(runs.Config(), section))).parameters
    }
    texts = {"data_dir", "csv", "candidates", "label", "corruption", "clean_network", "corrections"}
    assert known - {f"data.{name}" for name in texts} <= set(bad_inputs.OF_CONFIGS)


def test_values_of_numpy_become_pythons():
    training = type(runs.Config().training)(epochs=np.int64(3), learning_rate=np.float32(0.5))
    assert (type(training.epochs), type(training.learning_rate)) == (int, float)
    model = vt.Valen(vt.networks.linear((3,), 3), num_neighbors=np.int32(4), seed=np.int64(2))
    assert (type(model.num_neighbors), type(model.seed)) == (int, int)


# -- the command line -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--csv", "x.csv", "training.epochs=3", "seed=5"],
        ["training.epochs=3", "--csv", "x.csv", "seed=5"],
        ["training.epochs=3", "seed=5", "--csv", "x.csv"],
        ["base.yaml", "--csv", "x.csv", "training.epochs=3", "seed=5"],
        ["--csv", "x.csv", "base.yaml", "training.epochs=3", "--out", "run", "seed=5"],
        ["training.epochs=3", "--out=run", "base.yaml", "--csv=x.csv", "seed=5"],
    ],
)
def test_overrides_stand_before_and_after_options(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("base.yaml").write_text("seed: 4\n")
    options = cli.main.__globals__["_parsed"](["train", *words])
    config, name = cli.main.__globals__["_config"](options)
    assert (config.training.epochs, config.seed, config.data.csv, name) == (3, 5, "x.csv", "x")


@pytest.mark.parametrize("name", ["no", "007", "a: b.csv", "[1", "{x}.csv", "*a", "é.csv", "null"])
def test_a_file_may_be_called_anything(name):
    options = cli.main.__globals__["_parsed"](["train", "--csv", name])
    assert cli.main.__globals__["_config"](options)[0].data.csv == name


def test_what_is_not_expected_is_one_line_and_can_be_traced(monkeypatch, capsys):
    monkeypatch.setattr(runs, "evaluate", lambda *_, **__: {}["a key\nof two lines"])
    assert cli.main(["evaluate", "nowhere"]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "VALEN_TF_DEBUG=1" in message and "KeyError" in message
    monkeypatch.setenv("VALEN_TF_DEBUG", "1")
    with pytest.raises(KeyError):
        cli.main(["evaluate", "nowhere"])


# -- CSV files ------------------------------------------------------------------------------------------


def csv(tmp_path, content):
    path = tmp_path / "file.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("1,2,cat,9\n3,4,dog,9\n", 2),
        ("1,2,cat\n3,4,dog,9\n", 3),
        ("1,2,cat\n\n3,4\n", 4),
        ('1,2,"cat\ndog"\n3,4\n', 4),
    ],
)
def test_a_row_of_another_number_of_fields_is_named_by_its_line(rows, line, tmp_path):
    path = csv(tmp_path, "size,weight,candidates\n" + rows)
    with pytest.raises(ValueError, match=f"3 fields.*Received: . fields in line {line}$"):
        vt.PartialLabelDataset.from_csv(path)


def test_predict_reads_columns_by_name_and_refuses_shifted_ones(tmp_path):
    from valen_tf.runs.sources import read_rows

    schema = {"feature_columns": ["b", "a"], "feature_shape": [2]}
    features, _ = read_rows(csv(tmp_path, "a,b,c\n1,2,x\n"), schema)
    assert features.tolist() == [[2.0, 1.0]]
    with pytest.raises(ValueError, match="3 fields in line 2"):
        read_rows(csv(tmp_path, "a,b\n1,2,3\n"), schema)
    with pytest.raises(ValueError, match="1 fields in line 3"):
        read_rows(csv(tmp_path, "a,b\n1,2\n1\n"), schema)
    with pytest.raises(ValueError, match="Column .b. must hold numbers"):
        read_rows(csv(tmp_path, "a,b\n1,x\n"), schema)


@pytest.mark.parametrize(
    "content",
    [
        "a,candidates\n1,x|y\n2,y\n",
        "\ufeffa,candidates\n1,x|y\n2,y\n",
        "a,candidates\r\n1,x|y\r\n2,y\r\n",
        "a,candidates\n\n1,x|y\n   \n2,y\n\n",
        'a,candidates\n1,"x|y"\n2,y',
    ],
)
def test_files_of_all_kinds_of_lines_are_read_as_before(content, tmp_path):
    data = vt.PartialLabelDataset.from_csv(csv(tmp_path, content))
    assert data.features.tolist() == [[1.0], [2.0]] and data.candidates.tolist() == [[1, 1], [0, 1]]


def test_a_compressed_file_is_read_as_before(tmp_path):
    import gzip

    path = tmp_path / "file.csv.gz"
    path.write_bytes(gzip.compress(b"a,candidates\n1,x|y\n2,y\n"))
    assert len(vt.PartialLabelDataset.from_csv(path)) == 2


pieces = st.sampled_from(
    [
        "a",
        "candidates",
        ",",
        "\n",
        "\r\n",
        "\r",
        '"',
        "|",
        "1",
        "-2.5e3",
        "nan",
        "inf",
        "1e999",
        " ",
        "",
        "9" * 30,
        "true",
        "é",
        "\0",
        ";",
        "\t",
        "x|y",
        "0x1",
        "1_0",
        "1+2j",
        "2020-01-01",
        "'",
    ]
)
texts = st.one_of(
    st.text(max_size=60),
    st.lists(pieces, max_size=40).map("".join),
    st.lists(pieces, max_size=40).map(lambda parts: "a,candidates\n" + "".join(parts)),
    st.lists(st.tuples(pieces, pieces), max_size=6).map(
        lambda rows: "a,candidates\n" + "".join(f"{x},{y}\n" for x, y in rows)
    ),
).map(lambda text: text.encode("utf-8", "surrogatepass"))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.one_of(texts, st.binary(max_size=200)))
def test_any_bytes_give_a_data_set_or_a_value_error(content, tmp_path):
    try:
        data = vt.PartialLabelDataset.from_csv(csv(tmp_path, content))
    except ValueError as error:
        assert len(str(error)) < 1000
    else:
        assert len(data) and np.isfinite(data.features).all() and data.candidates.any(axis=1).all()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.one_of(
        st.binary(max_size=100), st.text(alphabet="a:[]{}&*!|>-\n ,'\"#%@?0.e", max_size=60)
    )
)
def test_any_bytes_give_a_config_or_an_error_of_ours(content, tmp_path):
    path = tmp_path / "any.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        assert isinstance(runs.read_config(path), runs.Config)
    except (ValueError, TypeError) as error:
        assert "any.yaml" in str(error)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_as_an_override_gives_a_config_or_an_error_of_ours(text):
    for override in (text, f"training.epochs={text}", f"settings={text}", f"{text}=1"):
        try:
            assert isinstance(runs.read_config(overrides=[override]), runs.Config)
        except (ValueError, TypeError) as error:
            assert len(str(error)) < 600


@pytest.mark.slow
def test_a_bomb_of_aliases_ends_at_once_in_a_process_of_its_own(tmp_path):
    path = tmp_path / "bomb.yaml"
    path.write_text(bad_inputs.BOMB)
    command = [sys.executable, "-m", "valen_tf.cli", "train", str(path)]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2 and len(ended.stderr) < 1000
