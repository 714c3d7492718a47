"""A stranger's table: files of many forms, columns of many kinds, and models that take them as they are."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import yaml

import valen_tf as vt
from valen_tf import cli, runs
from valen_tf.data import columns
from valen_tf.data.preparation import Preparation

NAMES = np.array(["ant", "bee", "cat"])
KINDS = {
    "age (years)": "number",
    "city": "category",
    "member": "category",
    "joined": "date dmy",
    "note": "text",
    "price": "number",
}


def people(size=300, seed=0):
    """A table as an office has it; the classes follow from city and note."""
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=size)
    wrong = (labels + random.integers(1, 3, size)) % 3
    frame = pd.DataFrame(
        {
            "customer": [f"C-{number:05d}" for number in range(size)],
            "age (years)": random.integers(18, 80, size).astype(float),
            "city": np.array(["Köln", "Łódź", "Rome"])[labels],
            "member": random.random(size) < 0.5,
            "joined": pd.date_range("2019-01-01", periods=size).strftime("%d.%m.%Y"),
            "note": [
                f"{random.choice(['Hello', 'Dear'])} {random.choice(['you', 'all'])}, eat {word} {number}"
                for number, word in enumerate(np.array(["sugar", "honey", "fish"])[labels])
            ],
            "price": random.normal(100, 20, size).round(2),
            "candidates": [f"{a}|{b}" for a, b in zip(NAMES[labels], NAMES[wrong], strict=True)],
            "truth": NAMES[labels],
        }
    )
    frame.loc[random.random(size) < 0.1, "age (years)"] = np.nan
    frame.loc[::17, "city"] = None
    return frame


# -- files ----------------------------------------------------------------------------------------------


def write_all_forms(frame, folder):
    """The same table in every form, and the encoding that it has there."""
    comma = frame.assign(price=frame["price"].map(lambda value: f"{value:.2f}".replace(".", ",")))
    frame.to_csv(folder / "plain.csv", index=False)
    frame.to_csv(folder / "tabs.tsv", index=False, sep="\t", encoding="utf-16")
    frame.to_csv(folder / "marked.csv", index=False, encoding="utf-8-sig")
    frame.to_csv(folder / "packed.csv.gz", index=False)
    comma.to_csv(folder / "excel.csv", index=False, sep=";", encoding="cp1250")
    return ["plain.csv", "tabs.tsv", "marked.csv", "packed.csv.gz", "excel.csv"]


def test_every_form_of_a_file_gives_the_same_data_set(tmp_path):
    frame = people()
    expected = vt.PartialLabelDataset.from_frame(frame, label="truth")
    assert expected.table.kinds == {**KINDS, "member": "category"}
    assert list(expected.table.ids) == ["customer"] and expected.class_names == tuple(NAMES)
    for name in write_all_forms(frame, tmp_path):
        data = vt.PartialLabelDataset.from_table(tmp_path / name, label="truth")
        assert data.table.kinds == expected.table.kinds, name
        np.testing.assert_array_equal(data.features, expected.features, err_msg=name)
        np.testing.assert_array_equal(data.candidates, expected.candidates)
        assert data.table.ids["customer"].tolist() == frame["customer"].tolist()


def test_parquet_and_frames_of_others_are_read(tmp_path):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow

    frame = people().assign(candidates=lambda frame: frame["candidates"].str.split("|"))
    expected = vt.PartialLabelDataset.from_frame(frame, label="truth")
    assert expected.average_candidates == 2  # lists in cells are taken as such
    frame.to_parquet(tmp_path / "table.parquet")
    for source in (tmp_path / "table.parquet", pyarrow.Table.from_pandas(frame)):
        data = vt.PartialLabelDataset.from_table(source, label="truth")
        np.testing.assert_array_equal(data.features, expected.features)
        np.testing.assert_array_equal(data.candidates, expected.candidates)


def test_a_frame_of_polars_is_read():
    polars = pytest.importorskip("polars", reason="needs polars")
    frame = people()
    data = vt.PartialLabelDataset.from_table(polars.from_pandas(frame), label="truth")
    expected = vt.PartialLabelDataset.from_frame(frame, label="truth")
    np.testing.assert_array_equal(data.features, expected.features)


def test_without_pyarrow_a_parquet_file_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setattr(pd, "read_parquet", lambda path: (_ for _ in ()).throw(ImportError()))
    with pytest.raises(ImportError, match="pip install pyarrow"):
        vt.PartialLabelDataset.from_table(path)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Café à l'été, garçon naïf, Über Größe, señor mañana"),
        ("cp1251", "Это простой русский текст, котики и собаки живут вместе"),
        ("shift_jis", "これは日本語のテキストです。猫と犬について書いています。"),
        ("utf-16", "Größe naïve 猫"),
    ],
)
def test_the_encoding_is_told_from_the_text(encoding, text, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(
        "".join(["note,size\n", *[f'"{text} {n}",{n}\n' for n in range(5)]]).encode(encoding)
    )
    assert columns.read(path)["note"][0] == f"{text} 0"


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,x;y\n2,z\n", ","),
        ("a;b\n1,5;2\n3,5;4\n", ";"),
        ("a\tb\n1,5\t2;3\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('a;b\n"x;\ny";2\n', ";"),
        ("a\n1\n", ","),
        ("a;b;c\n1;2\n", ";"),  # a mistake, that is told of this separator
    ],
)
def test_the_separator_is_the_one_that_gives_all_rows_as_many_fields(text, separator):
    assert columns._separator(text) == separator


# -- kinds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "number"),
        ([1.5, None, 3], "number"),
        (["1,5", "2,25", "1.234,5"], "number"),
        (["1,234,567", "12"], "number"),
        (["3", "?", "5"], "number"),  # as UCI writes a gap
        (["12", "n/a", "13"], "number"),
        ([True, False, True], "category"),
        (["x", "y", "x", "y", "x"] * 3, "category"),
        (["2024-01-31", "", "2023-12-01"], "date ymd"),
        (["2024-01-31T10:00:00Z", "2023-12-01 09:30"], "date ymd"),
        (["31.12.2024", "1.1.2024 12:30"], "date dmy"),
        (["12/31/2024", "1/2/2024"], "date mdy"),
        (["31/12/2024", "1/2/2024"], "date dmy"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "date ymd"),
        ([f"the cat sat on mat {n}" for n in range(9)], "text"),
        ([f"id{n}" for n in range(9)], None),
        ([None, None], None),
    ],
)
def test_the_kind_of_a_column_is_told_from_its_values(values, kind):
    assert columns._kind(pd.Series(values), "column")[0] == kind


def test_numbers_are_read_however_they_are_written():
    read = columns.canonical(pd.Series(["1.234,5", "-7,25", "?", "12"]), "number")
    np.testing.assert_array_equal(read, [1234.5, -7.25, np.nan, 12])
    read = columns.canonical(pd.Series(["1,234,567", "12"]), "number")
    np.testing.assert_array_equal(read, [1234567, 12])


def test_dates_are_seconds_as_pandas_has_them():
    times = pd.date_range("1890-02-27 13:05:09", periods=500, freq="97D17h")
    for order, form in (("ymd", "%Y-%m-%d %H:%M:%S"), ("dmy", "%d.%m.%Y %H:%M:%S")):
        read = columns.canonical(pd.Series(times.strftime(form)), f"date {order}")
        np.testing.assert_array_equal(read, (times - pd.Timestamp(0)).total_seconds())
    zoned = pd.Series(times.tz_localize("Asia/Tokyo"))
    np.testing.assert_array_equal(
        columns.canonical(zoned, "date ymd"), (zoned - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    )
    assert np.isnan(columns.canonical(pd.Series(["31.13.2020", "x"]), "date dmy")).all()


def test_kinds_can_be_said_and_columns_dropped_or_kept_aside(tmp_path):
    (tmp_path / "a.csv").write_text("zip,size,key,candidates\n007,1,5,a\n007,2,6,b\n120,3,7,a|b\n")
    data = vt.PartialLabelDataset.from_csv(
        tmp_path / "a.csv", features={"zip": "category", "size": None}, id="key"
    )
    assert data.table.kinds == {"zip": "category", "size": "number"}
    assert data.table.preparation.columns_[0].words == ("007",)
    assert data.table.ids["key"].tolist() == ["5", "6", "7"]
    plain = vt.PartialLabelDataset.from_csv(tmp_path / "a.csv", drop=["zip"], id="key")
    assert plain.features.tolist() == [[1], [2], [3]] and plain.table.plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"features": {"size": "colour"}},
            "`features` must give each column one of the kinds number",
        ),
        ({"features": {"word": "number"}}, "'word' must hold numbers. Received: 'x' in row 0"),
        ({"features": {"word": "date"}}, "'word' must hold dates"),
        ({"drop": 3}, "`drop` must be the name of a column"),
        ({"drop": "nothing"}, "must have a column 'nothing'"),
        ({"id": ["nothing"]}, "must have a column 'nothing'"),
        ({"candidates": None}, "`candidates` or `label` must name a column"),
        (
            {"features": ["list"]},
            "'list' must hold numbers, words, dates or texts.*a list in row 0",
        ),
        ({"like": 3}, "`like` must be a data set that was made of a table"),
    ],
)
def test_what_a_table_cannot_be_is_refused_by_column(options, message):
    frame = pd.DataFrame(
        {"size": [1, 2], "word": ["x", "y"], "list": [[1], [2]], "candidates": ["a", "b"]}
    )
    with pytest.raises((ValueError, TypeError), match=message):
        vt.PartialLabelDataset.from_frame(frame, **options)


def test_plain_numbers_are_the_features_as_they_are(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(50, 4)), columns=list("abcd")).round(7)
    frame["candidates"] = random.choice(["x", "x|y", "y"], 50)
    frame.to_csv(tmp_path / "plain.csv", index=False)
    data = vt.PartialLabelDataset.from_csv(tmp_path / "plain.csv")
    expected = pd.read_csv(tmp_path / "plain.csv")[list("abcd")].to_numpy(np.float32)
    np.testing.assert_array_equal(data.features, expected)
    rest, held_out = data.split(0.2, seed=3)  # the paper's parts, not stratified
    order = np.random.default_rng(3).permutation(50)
    assert (
        held_out.rows.tolist() == order[:10].tolist() and rest.rows.tolist() == order[10:].tolist()
    )


def test_sparse_matrices_are_refused_by_name():
    import scipy.sparse

    sparse = scipy.sparse.csr_matrix(np.eye(3))
    for arguments in ((sparse, np.eye(3)), (np.eye(3), sparse)):
        with pytest.raises(TypeError, match=r"must be a dense array.*toarray.*csr_matrix"):
            vt.PartialLabelDataset(*arguments)


# -- features -------------------------------------------------------------------------------------------


def test_what_is_fitted_is_fitted_on_the_training_part_alone():
    frame = people()
    data = vt.PartialLabelDataset.from_frame(frame, label="truth")
    train, test = data.split(0.3, seed=1)
    other = frame.copy()  # the same training rows, other held-out ones
    other.loc[test.rows, ["city", "note", "price"]] = ["Oslo", "other words of all kinds here", 1e6]
    again, _ = vt.PartialLabelDataset.from_frame(other, label="truth").split(0.3, seed=1)
    assert again.rows.tolist() == train.rows.tolist()
    assert again.table.preparation.same_as(train.table.preparation)
    np.testing.assert_array_equal(again.features, train.features)
    assert test.table.preparation is train.table.preparation
    for fold_train, fold_test in data.folds(3, seed=0):
        fitted = Preparation(data.table.kinds).fit(frame.iloc[fold_train.rows])
        assert fitted.same_as(fold_train.table.preparation)
        np.testing.assert_allclose(
            fitted.transform(frame.iloc[fold_test.rows]), fold_test.features, atol=1e-6
        )


def test_a_preparation_is_a_transformer_of_scikit_learn():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    frame = people(240)
    model = make_pipeline(Preparation(), vt.methods.PLKNN())
    grid = GridSearchCV(model, {"plknn__num_neighbors": [3, 9]}, cv=2)
    grid.fit(frame[list(KINDS)], frame["truth"])
    assert grid.best_score_ > 0.7
    names = grid.best_estimator_[0].get_feature_names_out()
    assert {"age (years): gap", "city: Köln", "note: honey", "joined: year sin"} <= set(names)


def test_unknown_words_and_new_gaps_are_no_error():
    frame = pd.DataFrame({"word": ["a", "a", "b", "b"], "size": [1.0, 2, 3, 4]})
    preparation = Preparation({"word": "category", "size": "number"}).fit(frame)
    made = preparation.transform(pd.DataFrame({"word": ["new", None], "size": [np.nan, 2.5]}))
    assert made.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0]]


def test_a_table_survives_a_file(tmp_path):
    train, _ = vt.PartialLabelDataset.from_frame(people(), label="truth").split(0.3)
    train.save(tmp_path / "train.npz")
    read = vt.PartialLabelDataset.load(tmp_path / "train.npz")
    np.testing.assert_array_equal(read.features, train.features)
    assert read.table.ids["customer"].tolist() == train.table.ids["customer"].tolist()
    ours, theirs = (data.split(0.3, seed=2)[1] for data in (train, read))
    np.testing.assert_array_equal(ours.features, theirs.features)


def test_another_file_is_read_like_the_training_part():
    frame = people()
    train, _ = vt.PartialLabelDataset.from_frame(frame, label="truth").split(0.3)
    new = people(40, seed=5).drop(columns=["candidates", "customer"])
    new["truth"] = new["truth"].replace("ant", "bee")  # a class that is missing there
    test = vt.PartialLabelDataset.from_frame(new, candidates=None, label="truth", like=train)
    assert test.class_names == train.class_names and test.average_candidates == 1
    np.testing.assert_array_equal(test.features, train.table.preparation.transform(new))


# -- parts ----------------------------------------------------------------------------------------------


def test_stratified_parts_have_each_class_alike():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [200, 40, 10])[random.permutation(250)]
    data = vt.PartialLabelDataset(np.arange(250.0), np.eye(3)[labels], labels)
    for known in (data, vt.PartialLabelDataset(data.features, data.candidates)):
        rest, held_out = known.split(0.2, seed=1, stratified=True)
        assert held_out.candidates.sum(axis=0).tolist() == [40, 8, 2]
        assert sorted([*rest.rows, *held_out.rows]) == list(range(250))
        for train, test in known.folds(5, seed=1, stratified=True):
            assert np.abs(test.candidates.sum(axis=0) - [40, 8, 2]).max() <= 1
            assert len(test) == 50 and not set(train.rows) & set(test.rows)
    order = np.random.default_rng(1).permutation(250)
    assert data.split(0.2, seed=1)[1].rows.tolist() == order[:50].tolist()


# -- models ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the command on a table of all kinds, its folder and its table."""
    folder = tmp_path_factory.mktemp("people")
    people().to_csv(folder / "people.csv", index=False, sep=";", encoding="cp1250")
    arguments = ["train", "--csv", folder / "people.csv", "data.label=truth", "network.name=linear"]
    arguments += ["training.epochs=12", "training.warm_up_epochs=3", "training.learning_rate=0.1"]
    assert cli.main([str(part) for part in [*arguments, "--out", folder / "run"]]) == 0
    return folder


def test_a_table_of_all_kinds_is_trained_by_one_command(run):
    summary = json.loads((run / "run" / "summary.json").read_text())
    assert summary["accuracy"] > 0.9 and summary["balanced_accuracy"] > 0.9
    assert set(summary["recall"]) == set(NAMES)
    assert summary["balanced_accuracy"] == pytest.approx(np.mean(list(summary["recall"].values())))
    told = pd.read_csv(run / "run" / "label_distributions.csv")
    source = people()
    assert told["customer"].tolist() == source["customer"].iloc[told["row"]].tolist()
    assert (told["label"].to_numpy() == source["truth"].iloc[told["row"]].to_numpy()).all()


def test_predictions_take_raw_columns_and_pass_ids_on(run, tmp_path):
    new = people(50, seed=9)
    new.drop(columns=["candidates", "truth"]).to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "predictions.csv"
    arguments = [
        "predict",
        str(run / "run"),
        "--csv",
        str(tmp_path / "new.csv"),
        "--output",
        str(output),
    ]
    assert cli.main(arguments) == 0
    predicted = pd.read_csv(output)
    assert predicted["customer"].tolist() == new["customer"].tolist()
    assert (predicted["prediction"] == new["truth"]).mean() > 0.8
    new.drop(columns=["customer", "city"]).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(ValueError, match="lacks the feature column 'city'"):
        runs.predict(run / "run", tmp_path / "new.csv")


def test_evaluate_takes_a_file_with_true_labels_alone(run, tmp_path, capsys):
    new = people(60, seed=9).drop(columns="candidates").rename(columns={"truth": "animal"})
    new.to_csv(tmp_path / "new.csv", index=False)
    assert (
        cli.main(
            ["evaluate", str(run / "run"), "--csv", str(tmp_path / "new.csv"), "--label", "animal"]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "mean recall of the classes" in printed and "lowest recall" in printed
    found = runs.evaluate(run / "run", tmp_path / "new.csv", "animal")
    predicted = runs.predict(run / "run", tmp_path / "new.csv")["prediction"]
    assert found["accuracy"] == pytest.approx((predicted == new["animal"]).mean())
    with pytest.raises(
        ValueError, match="must have a column of candidates, 'candidates', or of true"
    ):
        runs.evaluate(run / "run", tmp_path / "new.csv")


def test_the_saved_model_and_the_export_take_raw_columns(run, tmp_path):
    import tensorflow as tf

    new = people(40, seed=9)
    expected = runs.predict(run / "run", _written(new, tmp_path))
    model = vt.load_model(run / "run" / "model.keras")
    probabilities = expected[[f"p({name})" for name in NAMES]].to_numpy()
    np.testing.assert_allclose(model.predict(new, verbose=0), probabilities, atol=1e-6)
    version = runs.export(run / "run", tmp_path / "served")
    served = tf.saved_model.load(version).signatures["serving_default"]
    raw = {
        "age_years": new["age (years)"].to_numpy(),
        "city": new["city"].fillna("").tolist(),
        "member": new["member"].astype(str).tolist(),
        "joined": new["joined"].tolist(),
        "note": new["note"].tolist(),
        "price": new["price"].to_numpy(),
    }
    answer = served(**{name: tf.constant(values) for name, values in raw.items()})
    np.testing.assert_allclose(answer["probabilities"], probabilities, atol=1e-5)
    assert answer["class_name"].numpy().astype(str).tolist() == expected["prediction"].tolist()
    told = json.loads((version / "assets.extra" / "metadata.json").read_text())
    assert [column["input"] for column in told["columns"]] == list(raw)
    assert told["signatures"]["serving_default"]["inputs"] == list(raw)
    with pytest.raises(ValueError, match="TFLite has no tables of words"):
        runs.export(run / "run", tmp_path / "served", tflite=tmp_path / "lite")


def _written(frame, folder):
    frame.to_csv(folder / "new.csv", index=False)
    return folder / "new.csv"


def test_keras_layers_make_the_features_of_training():
    from valen_tf.model.front import Front

    random = np.random.default_rng(0)
    odd = [
        "Ünï Größe",
        "İstanbul STRASSE ß",
        "日本 語",
        "don't_do it!",
        "",
        "x² ½",
        "हिन्दी",
        "[UNK] a\tb",
    ]
    frame = pd.DataFrame(
        {
            "stamp": random.normal(1.6e9, 3, 200),  # in float32 little of it would be left
            "gap": np.where(random.random(200) < 0.3, np.nan, random.normal(size=200)),
            "word": random.choice(["a", " b ", "", "ü", "[UNK]"], 200),
            "alone": [f"w{number}" for number in range(200)],
            "day": pd.date_range("1960-01-01", periods=200, freq="97D").strftime("%Y-%m-%d"),
            "time": pd.date_range("2020-01-01", periods=200, freq="37h"),
            "mixed": random.choice(
                ["31.12.1999 13:05", "1.2.2003", "29.02.2000 00:00:07", "", "?"], 200
            ),
            "text": [" ".join(random.choice(odd, 4)) for _ in range(200)],
        }
    )
    kinds = ["number", "number", "category", "category", "date", "date", "date", "text"]
    preparation = Preparation(dict(zip(frame, kinds, strict=True))).fit(frame)
    preparation = Preparation.from_dict(json.loads(json.dumps(preparation.to_dict())))
    front = Front(preparation)
    made = front(front.arrays(preparation.table(frame))).numpy()
    np.testing.assert_allclose(made, preparation.transform(frame), atol=1e-6)
    raw = {
        name: frame[name].astype(str).tolist() for name in ("word", "alone", "day", "mixed", "text")
    }
    raw["time"] = frame["time"].dt.strftime("%Y-%m-%dT%H:%M:%SZ").tolist()
    raw |= {name: frame[name].to_numpy() for name in ("stamp", "gap")}
    np.testing.assert_allclose(front(raw).numpy(), preparation.transform(frame), atol=1e-6)


def test_a_classical_method_takes_the_same_table(run, tmp_path):
    config = yaml.safe_load((run / "run" / "config.yaml").read_text())["data"]
    values = [f"data.csv={json.dumps(config['csv'])}", "data.label=truth", "method=plknn"]
    summary = runs.train(
        runs.read_config(overrides=values), tmp_path / "plknn", report=lambda line: None
    )
    assert summary["accuracy"] > 0.8
    new = people(30, seed=4)
    predicted = runs.predict(tmp_path / "plknn", _written(new, tmp_path))
    assert (predicted["prediction"] == new["truth"]).mean() > 0.8
    assert predicted["customer"].tolist() == new["customer"].tolist()


def test_a_model_takes_columns_only_as_it_learned_them(run):
    model = vt.load_model(run / "run" / "model.keras")
    other = vt.PartialLabelDataset.from_frame(people(50, seed=7), label="truth")
    # Prepared by itself it has other features; the model sees them as its own training part's.
    assert not other.table.preparation.same_as(model.preparation)
    assert model.predict(other, verbose=0).shape == (50, 3)
    assert model.evaluate(other.batches(20, shuffle=False), verbose=0)
    numbers = pd.DataFrame({"size": [1.0, 2.0], "candidates": ["ant", "bee|cat"]})
    with pytest.raises(ValueError, match="must be a data set of columns"):
        model.predict(vt.PartialLabelDataset.from_frame(numbers))


def test_texts_are_trained_and_served_as_strings(tmp_path):
    import tensorflow as tf

    frame = people(150)
    sets = frame["candidates"].str.split("|").tolist()
    data = vt.PartialLabelDataset.from_texts(
        frame["note"].tolist(), sets, labels=frame["truth"].tolist()
    )
    train, test = data.split(0.3)
    model = vt.methods.Proden(vt.networks.linear(train.feature_shape, train.num_classes))
    model.compile("adam", metrics=["accuracy"])
    model.optimizer.learning_rate = 0.1
    model.fit(train, epochs=12, verbose=0)
    assert model.evaluate(test, verbose=0, return_dict=True)["accuracy"] > 0.9
    model.export(tmp_path / "1", class_names=train.class_names)
    served = tf.saved_model.load(tmp_path / "1").signatures["serving_default"]
    answer = served(text=tf.constant(["I eat honey", "fish, fish and fish"]))
    assert answer["class_name"].numpy().tolist() == [b"bee", b"cat"]
    for texts in ("one text", [], ["a", 3]):
        with pytest.raises((TypeError, ValueError), match="`texts` must"):
            vt.PartialLabelDataset.from_texts(texts, [["a"]] * 2)


def test_a_column_of_texts_is_named_in_the_config(tmp_path):
    path = _written(people(100), tmp_path)
    values = [f"data.csv={path}", "data.label=truth", "data.text=note"]
    data = runs.prepare(runs.read_config(overrides=values))
    assert data.train.table.kinds == {"note": "text"}
    data = runs.prepare(runs.read_config(overrides=[*values, "data.features=[price]"]))
    assert data.train.table.kinds == {"price": "number", "note": "text"}


def test_a_packed_file_that_is_cut_short_is_an_error(tmp_path):
    packed = gzip.compress(people(200).to_csv(index=False).encode())
    (tmp_path / "table.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises((ValueError, OSError, EOFError)):
        vt.PartialLabelDataset.from_csv(tmp_path / "table.csv.gz")


def test_lists_in_a_column_are_told_by_its_name():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "sets": [["a"], ["a", "b"], ["b"]]})
    several = frame.assign(truth=[["a"], ["a", "b"], ["b"]])
    with pytest.raises(ValueError, match="'truth' must hold one label in every row.*in row 1"):
        vt.PartialLabelDataset.from_table(several, candidates="sets", label="truth")
    single = frame.assign(truth=[["a"], "b", ["b"]])
    data = vt.PartialLabelDataset.from_table(single, candidates="sets", label="truth")
    assert data.labels.tolist() == [0, 1, 1]
    with pytest.raises(TypeError, match="Column 'key' must hold a number or a text in every row"):
        vt.PartialLabelDataset.from_table(
            frame.assign(key=[[1], [2], [3]]), candidates="sets", id="key"
        )
