"""People's answers: who said what, what the answers say together, and what methods make of them."""

import dataclasses
import json
import zipfile

import keras
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import valen_tf as vt
from valen_tf import cli, losses
from valen_tf.data import annotation_tools, answers
from valen_tf.data.answers import Answers
from valen_tf.runs import read_config, sources

# -- the answers themselves ---------------------------------------------------------------------


def crowd(labels, num_classes, accuracies, *, votes=5, seed=0):
    """Answers of made-up annotators of given accuracies, who err at random."""
    rng = np.random.default_rng(seed)
    example, annotator, label = [], [], []
    for place, truth in enumerate(labels):
        for who in rng.permutation(len(accuracies))[:votes]:
            wrong = (truth + rng.integers(1, num_classes)) % num_classes
            example.append(place)
            annotator.append(who)
            label.append(truth if rng.random() < accuracies[who] else wrong)
    return Answers(example, annotator, label, num_examples=len(labels), num_classes=num_classes)


@pytest.fixture
def simulated():
    labels = np.random.default_rng(1).integers(3, size=200)
    return labels, crowd(labels, 3, [0.9, 0.9, 0.5, 0.4, 0.35, 0.1])


def test_dawid_skene_is_the_textbooks(simulated):
    _, said = simulated
    posterior = said.shares()
    for _ in range(3):  # written out, a sum for each answer
        prior = posterior.sum(axis=0) + 1 / 3
        counts = np.zeros((6, 3, 3))
        for example, who, label in zip(said.example, said.annotator, said.label, strict=True):
            counts[who, :, label] += posterior[example]
        crowds = (sum(map(np.trace, counts)) + 8) / (counts.sum() + 10)
        for (
            own
        ) in counts:  # twenty answers of somebody as good as the crowd, then as this annotator
            accuracy = (np.trace(own) + 20 * crowds) / (own.sum() + 20)
            own += 5 * np.where(np.eye(3) == 1, accuracy, (1 - accuracy) / 2)
        confusion = counts / counts.sum(axis=2, keepdims=True)
        logs = np.tile(np.log(prior), (200, 1))
        for example, who, label in zip(said.example, said.annotator, said.label, strict=True):
            logs[example] += np.log(confusion[who, :, label])
        posterior = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    habits = answers.Habits(accuracy=20, classes=5)
    found, _ = said.dawid_skene(iterations=3, habits=habits)
    np.testing.assert_allclose(found, posterior, atol=1e-10)


def test_dawid_skene_finds_who_is_good_and_is_better_than_the_majority(simulated):
    labels, said = simulated
    posterior, confusion = said.dawid_skene()
    right = np.diagonal(confusion, axis1=1, axis2=2).mean(axis=1)
    assert right[:2].min() > 0.75 and right[5] < 0.3
    recovered = (posterior.argmax(axis=1) == labels).mean()
    assert recovered > (said.majority() == labels).mean() + 0.02
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    np.testing.assert_allclose(confusion.sum(axis=2), 1)


def test_where_all_agree_all_rules_say_the_same():
    labels = np.arange(30) % 3
    said = crowd(labels, 3, [1.0] * 5)
    for found in (said.majority(), said.shares().argmax(1), said.dawid_skene()[0].argmax(1)):
        np.testing.assert_array_equal(found, labels)
    np.testing.assert_array_equal(said.sets(), np.eye(3)[labels])


def test_the_order_of_rows_and_annotators_does_not_matter(simulated):
    _, said = simulated
    order = np.random.default_rng(0).permutation(len(said))
    renamed = np.array([3, 0, 5, 1, 4, 2])
    other = Answers(said.example[order], renamed[said.annotator[order]], said.label[order], 200, 3)
    np.testing.assert_allclose(said.dawid_skene()[0], other.dawid_skene()[0], atol=1e-9)


def test_parts_keep_their_answers(simulated):
    labels, said = simulated
    part = said.take([5, 3])
    assert part.num_examples == 2 and part.annotators == said.annotators
    for place, example in enumerate([5, 3]):
        rows = said.example == example
        mine = part.example == place
        assert sorted(part.label[mine]) == sorted(said.label[rows])
    data = vt.PartialLabelDataset.from_answers(np.zeros((200, 1)), said, labels=labels)
    for part in (data.take(slice(10, 20)), data.take(np.arange(200) < 7), data.split(0.2)[0]):
        np.testing.assert_array_equal(part.answers.votes, said.votes[part.rows])
    assert data.split(0.2)[1].answers is None  # a revealed part has true labels


def test_a_data_set_with_answers_is_saved_whole(simulated, tmp_path):
    labels, said = simulated
    data = vt.PartialLabelDataset.from_answers(np.zeros((200, 1)), said, labels=labels)
    data.save(tmp_path / "data.npz")
    again = vt.PartialLabelDataset.load(tmp_path / "data.npz")
    assert again.answers.checksum == said.checksum
    assert again.answers.annotators == said.annotators
    np.testing.assert_array_equal(again.candidates, said.sets())


def test_labels_that_are_ruled_out():
    #  of example 0 one gave 1; of 1 only 0 was ruled out; of 2 nobody said anything
    said = Answers([0, 0, 1], [0, 1, 1], [1, 0, 0], 3, 3, excludes=np.array([False, True, True]))
    assert said.sets().tolist() == [[0, 1, 0], [0, 1, 1], [1, 1, 1]]
    posterior, _ = said.dawid_skene()
    assert posterior[1, 0] < posterior[1, 1] and np.isfinite(posterior).all()
    everything = Answers([0, 0], [0, 1], [0, 1], 1, 2, excludes=np.array([True, True]))
    assert everything.sets().tolist() == [[1, 1]]


def test_where_there_is_one_class_nobody_errs():
    posterior, confusion = Answers([0, 1, 1], [0, 0, 1], [0, 0, 0], 2, 1).dawid_skene()
    assert posterior.tolist() == [[1], [1]] and confusion.tolist() == [[[1]], [[1]]]


def test_several_labels_of_one_annotator_share_a_vote():
    said = Answers([0, 0, 0], [0, 0, 1], [0, 1, 1], 1, 3)
    assert said.votes.tolist() == [[0.5, 1.5, 0.0]]
    assert said.sets(min_votes=2).tolist() == [[0, 1, 0]]


def undecided(labels, num_classes, accuracies, *, votes, also, seed=0):
    """Like `crowd`, of people who name a second label beside every so many-th."""
    single = crowd(labels, num_classes, accuracies, votes=votes, seed=seed)
    rng = np.random.default_rng(seed)
    more = np.flatnonzero(rng.random(len(single)) < also)
    second = (single.label[more] + rng.integers(1, num_classes, len(more))) % num_classes
    return Answers(
        np.append(single.example, single.example[more]),
        np.append(single.annotator, single.annotator[more]),
        np.append(single.label, second),
        num_examples=len(labels),
        num_classes=num_classes,
    )


def test_an_answer_of_several_labels_says_that_the_label_is_one_of_them():
    said = Answers([0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 1, 1, 1, 2], 2, 3)
    sure = np.array([np.eye(3), np.eye(3)]) * 0.98 + 0.01
    likelihood = np.exp(said.log_likelihood(sure))
    np.testing.assert_allclose(likelihood[0], [1.0, 1.0, 0.02])
    np.testing.assert_allclose(likelihood[1], [0.01 * 0.02, 0.99 * 1.0, 0.01 * 1.0])
    # Counts of many people's answers are many answers, and no doubt of one person.
    assert not len(answers.from_counts([[3, 1], [0, 2]])._undecided)


def test_the_habits_of_the_undecided_are_the_textbooks():
    labels = np.random.default_rng(1).integers(3, size=60)
    said = undecided(labels, 3, [0.9, 0.7, 0.5, 0.4], votes=3, also=0.4)
    habits = answers.Habits(accuracy=20, classes=5)
    found, _ = said.dawid_skene(iterations=3, habits=habits)
    people = sorted(set(zip(said.example, said.annotator, strict=True)))
    sets = [said.label[(said.example == e) & (said.annotator == w)] for e, w in people]
    posterior, before = said.shares(), np.ones((4, 3, 3))
    for _ in range(3):  # written out, a sum for each answer
        counts = np.zeros((4, 3, 3))
        for (example, who), names in zip(people, sets, strict=True):
            for truth in range(3):
                shares = before[who, truth, names] / before[who, truth, names].sum()
                counts[who, truth, names] += posterior[example, truth] * shares
        crowds = (sum(map(np.trace, counts)) + 8) / (counts.sum() + 10)
        for own in counts:
            accuracy = (np.trace(own) + 20 * crowds) / (own.sum() + 20)
            own += 5 * np.where(np.eye(3) == 1, accuracy, (1 - accuracy) / 2)
        before = counts / counts.sum(axis=2, keepdims=True)
        logs = np.tile(np.log(posterior.sum(axis=0) + 1 / 3), (60, 1))
        for (example, who), names in zip(people, sets, strict=True):
            logs[example] += np.log(before[who][:, names].sum(axis=1))
        posterior = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, posterior, atol=1e-10)


def test_the_undecided_are_believed_better_than_by_counting():
    labels = np.random.default_rng(1).integers(6, size=600)
    said = undecided(labels, 6, np.linspace(0.4, 0.9, 15), votes=3, also=0.5)
    recovered = (said.dawid_skene()[0].argmax(axis=1) == labels).mean()
    assert recovered > (said.majority() == labels).mean() + 0.02
    # A part of the examples has the answers of these examples whole.
    assert len(said.take(np.arange(300))._undecided) == sum(said.example[said._undecided] < 300)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_whatever_was_said_the_numbers_are_sound(rows):
    example, annotator, label = (
        (np.array(part, int) for part in zip(*rows, strict=True)) if rows else ([],) * 3
    )
    example, annotator, label = (np.asarray(part, int) for part in (example, annotator, label))
    said = Answers(example, annotator, label, 5, 3, annotators=range(4))
    posterior, confusion = said.dawid_skene(iterations=5)
    evidence = said.evidence(posterior)
    assert np.isfinite(posterior).all() and np.isfinite(confusion).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    assert said.sets().any(axis=1).all()
    assert (evidence > 0).all() and (evidence.max(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": [3]}, "`label`"),
        ({"example": [1]}, "`example`"),
        ({"annotator": [-1]}, "`annotator`"),
        ({"weight": [0.0]}, "`weight` must be 1 positive numbers"),
        ({"excludes": np.array([0])}, "`excludes` must be 1 booleans"),
    ],
)
def test_answers_that_mean_nothing_are_refused(change, message):
    fields = {"example": [0], "annotator": [0], "label": [0], "num_examples": 1, "num_classes": 3}
    with pytest.raises(ValueError, match=message):
        Answers(**{**fields, **change})


# -- tables of answers --------------------------------------------------------------------------

LONG = pd.DataFrame(
    [["b", "ann", "cat"], ["a", "ann", "dog|cat"], ["b", "bob", "dog"], ["c", "bob", None]],
    columns=["photo", "who", "said"],
)
COLUMNS = {"item": "photo", "annotator": "who", "label": "said"}
PHOTOS = pd.DataFrame({"width": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])


def test_a_long_table_is_joined_to_the_features_by_item():
    data = vt.PartialLabelDataset.from_answers(
        PHOTOS, LONG, labels=["cat", "dog", "cat"], **COLUMNS
    )
    assert data.class_names == ("cat", "dog") and data.labels.tolist() == [0, 1, 0]
    assert data.candidates.tolist() == [[1, 1], [1, 1], [1, 1]]  # of c nobody knows anything
    assert data.answers.votes.tolist() == [[0.5, 0.5], [1, 1], [0, 0]]
    column = PHOTOS.rename_axis("photo").reset_index()
    same = vt.PartialLabelDataset.from_answers(column, LONG, **COLUMNS)
    np.testing.assert_array_equal(same.features, data.features)
    assert same.answers.checksum == data.answers.checksum


def test_items_may_have_columns_of_any_kind():
    frame = pd.DataFrame(
        {
            "photo": list("abcdef"),
            "width": [1.0, np.nan, 3.0, 4.0, 5.0, 6.0],
            "seen": ["a cat sat", "a dog ran", "the cat sat", "the dog ran", "a cat ran", "no"],
            "note": ["on a mat", "in a wood", "on a mat", "in a wood", "on a mat", "in a wood"],
            "truth": ["cat", "dog", "cat", "dog", "cat", "dog"],
        }
    )
    said = pd.DataFrame({"photo": list("abcdef"), "who": "ann", "said": frame["truth"]})
    data = vt.PartialLabelDataset.from_answers(
        frame, said, labels="truth", kinds={"seen": "text", "note": "text"}, **COLUMNS
    )
    assert data.table.kinds == {"width": "number", "seen": "text", "note": "text"}
    assert data.labels.tolist() == [0, 1, 0, 1, 0, 1] and list(data.table.ids) == ["photo"]
    train, test = data.split(0.3, seed=0)
    assert test.answers is None and len(train.answers) == len(train) == 4
    assert train.feature_shape == test.feature_shape == (train.table.preparation.width,)
    indexed = vt.PartialLabelDataset.from_answers(
        frame.set_index("photo"),
        said,
        labels="truth",
        kinds={"seen": "text", "note": "text"},
        **COLUMNS,
    )
    np.testing.assert_array_equal(indexed.features, data.features)
    for wrong, message in (
        ({"labels": "right"}, "`features` must have a column 'right'"),
        ({"kinds": {"heard": "text"}}, "`features` must have a column 'heard'"),
        ({"kinds": {"seen": "sound"}}, "`features`"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            vt.PartialLabelDataset.from_answers(frame, said, **wrong, **COLUMNS)
    with pytest.raises(ValueError, match="There must be a column to learn from"):
        vt.PartialLabelDataset.from_answers(frame[["photo"]], said, **COLUMNS)


def test_files_of_answers_are_joined_to_a_file_of_items(tmp_path):
    frame = pd.DataFrame({"photo": ["01", "1", "x"], "width": [1.0, 2.0, 3.0], "truth": [7, 12, 7]})
    said = pd.DataFrame({"photo": ["01", "1", "x"], "annotator": 5, "label": [7, 12, 12]})
    frame.to_csv(tmp_path / "items.csv", index=False)
    said.to_csv(tmp_path / "answers.csv", index=False)
    tasks = [
        {
            "id": place,
            "data": {"photo": photo},
            "annotations": [{"completed_by": 5, "result": [choices(str(label))]}],
        }
        for place, (photo, label) in enumerate(zip(said["photo"], said["label"], strict=True))
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    for name in ("answers.csv", "export.json"):
        data = vt.PartialLabelDataset.from_answers(
            tmp_path / "items.csv", str(tmp_path / name), item="photo", labels="truth"
        )
        assert data.class_names == ("7", "12") and data.answers.annotators == ("5",)
        assert data.candidates.tolist() == [[1, 0], [0, 1], [0, 1]]
        assert data.labels.tolist() == [0, 1, 0]  # names, however they are written
        assert data.table.ids["photo"].tolist() == ["01", "1", "x"]
    with pytest.raises(ValueError, match=r"items.csv must have a column 'item', or `item` name"):
        vt.PartialLabelDataset.from_answers(tmp_path / "items.csv", said)


def test_numbers_as_labels_are_in_the_order_of_numbers():
    frame = pd.DataFrame({"i": [0, 1, 2], "w": list("aaa"), "l": [2, 10, 1]})
    _, names, _ = answers.from_long(frame, item="i", annotator="w", label="l")
    assert names == ("1", "2", "10")


def test_columns_of_categories_are_columns_of_answers_too():
    """As Parquet and pandas give them where words come again."""
    frame = pd.DataFrame({"task": ["p", "p", "q"], "who": list("xyx"), "said": ["b", "a|b", "a"]})
    names = {"item": "task", "annotator": "who", "label": "said"}
    expected, *_ = answers.from_long(frame, **names)
    found, classes, items = answers.from_long(frame.astype("category"), **names)
    np.testing.assert_array_equal(found.votes, expected.votes)
    assert classes == ("a", "b") and list(items) == ["p", "q"] and found.annotators == ("x", "y")
    wide = pd.DataFrame({"ann": ["cat", "dog"], "bob": ["dog", None]}, dtype="category")
    assert answers.from_wide(wide)[0].sets().tolist() == [[1, 1], [0, 1]]


def test_a_wide_table_has_gaps():
    wide = pd.DataFrame(
        {"ann": ["cat", None, "dog"], "bob": ["dog", None, None]}, index=list("abc")
    )
    said, names, items = answers.from_wide(wide)
    assert names == ("cat", "dog") and items.tolist() == ["a", "b", "c"]
    assert said.votes.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert said.annotators == ("ann", "bob")


def test_items_without_features_are_told():
    other = PHOTOS.set_axis([1, 2, 3])
    with pytest.raises(ValueError, match="Every item of the answers must be known.*3 that are not"):
        vt.PartialLabelDataset.from_answers(other, LONG.fillna("cat"), **COLUMNS)
    with pytest.raises(ValueError, match="`answers` must have a column 'worker'"):
        vt.PartialLabelDataset.from_answers(
            PHOTOS, LONG, item="photo", annotator="worker", label="said"
        )
    with pytest.raises(ValueError, match="`items` must differ"):
        vt.PartialLabelDataset.from_answers(PHOTOS.set_axis(list("aab")), LONG, **COLUMNS)


# -- exports of annotation tools ----------------------------------------------------------------


def long(frame):
    """The table as tuples."""
    return [tuple(row) for row in frame[["item", "annotator", "label", "excludes"]].to_numpy()]


def choices(*names, tag="genre"):
    return {"from_name": tag, "to_name": "text", "type": "choices", "value": {"choices": [*names]}}


def test_label_studio(tmp_path):
    tasks = [
        {
            "id": 7,
            "data": {"text": "hello"},
            "annotations": [
                {"id": 1, "completed_by": 10, "result": [choices("A", "B")]},
                {"id": 2, "completed_by": {"id": 11, "email": "x@y"}, "result": [choices("B")]},
                {"id": 3, "completed_by": 12, "was_cancelled": True, "result": [choices("A")]},
                {"id": 4, "completed_by": 13, "result": []},
            ],
            "predictions": [{"result": [choices("C")]}],
        },
        {"id": 8, "data": {}, "completions": [{"completed_by": 10, "skipped": True, "result": []}]},
    ]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    found = annotation_tools.label_studio(tmp_path / "a.json")
    assert long(found) == [(7, "10", ["A", "B"], []), (7, "x@y", ["B"], [])]
    assert found["data.text"].tolist() == ["hello", "hello"]
    flat = [
        {"text": "hello", "id": 7, "genre": {"choices": ["A", "B"]}, "annotator": 10},
        {"text": "hello", "id": 7, "genre": "B", "annotator": 11},
    ]
    (tmp_path / "min.json").write_text(json.dumps(flat))
    expected = [(7, "10", ["A", "B"], []), (7, "11", ["B"], [])]
    assert long(annotation_tools.label_studio(tmp_path / "min.json", name="genre")) == expected
    rows = 'text,id,genre,annotator\nhello,7,"{""choices"": [""A"", ""B""]}",10\nhello,7,B,11\n'
    (tmp_path / "a.csv").write_text(rows)
    expected = [("7", "10", ["A", "B"], []), ("7", "11", ["B"], [])]
    assert long(annotation_tools.label_studio(tmp_path / "a.csv")) == expected
    tasks[0]["annotations"][0]["result"].append(choices("loud", tag="volume"))
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    with pytest.raises(ValueError, match="`name` must say which.*genre, volume"):
        annotation_tools.label_studio(tmp_path / "a.json")
    assert len(annotation_tools.label_studio(tmp_path / "a.json", name="volume")) == 1


def test_argilla(tmp_path):
    nested = [
        {
            "id": "r1",
            "fields": {"text": "hello"},
            "responses": {
                "label": [{"value": "A", "user_id": "u1"}, {"value": "B", "user_id": "u2"}]
            },
            "suggestions": {"label": {"value": "C"}},
        },
        {"id": "r2", "fields": {"text": "bye"}, "responses": {}},
    ]
    (tmp_path / "nested.json").write_text(json.dumps(nested))
    found = annotation_tools.argilla(tmp_path / "nested.json")
    assert long(found) == [("r1", "u1", ["A"], []), ("r1", "u2", ["B"], [])]
    flat = {
        "id": "r1",
        "text": "hello",
        "label.responses": ["A", "B", "C"],
        "label.responses.users": ["u1", "u2", "u3"],
        "label.responses.status": ["submitted", "draft", "submitted"],
    }
    (tmp_path / "flat.jsonl").write_text(json.dumps(flat) + "\n")
    found = annotation_tools.argilla(tmp_path / "flat.jsonl")
    assert long(found) == [("r1", "u1", ["A"], []), ("r1", "u3", ["C"], [])]


def test_doccano(tmp_path):
    lines = {
        "ann.jsonl": [
            {"id": 1, "text": "hi", "label": ["A", "B"]},
            {"id": 2, "text": "ho", "label": []},
        ],
        "bob.jsonl": [{"id": 1, "text": "hi", "label": ["B"]}],
    }
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for name, records in lines.items():
            archive.writestr(name, "\n".join(map(json.dumps, records)))
    expected = [(1, "ann", ["A", "B"], []), (1, "bob", ["B"], [])]
    assert long(annotation_tools.doccano(tmp_path / "export.zip")) == expected
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "ann.csv").write_text("id,text,label\n1,hi,A#B\n2,ho,\n")
    assert long(annotation_tools.doccano(tmp_path / "folder")) == [("1", "ann", ["A", "B"], [])]


def test_prodigy(tmp_path):
    tasks = [
        {"text": "hi", "options": [{"id": "A"}, {"id": "B"}], "accept": ["A"], "answer": "accept"},
        {"text": "hi", "options": [{"id": "A"}], "accept": [], "answer": "ignore"},
        {"text": "hi", "label": "B", "answer": "reject"},
        {"text": "hi", "label": "C", "answer": "accept"},
    ]
    lines = [
        json.dumps({**task, "_input_hash": 5, "_annotator_id": f"w{n}"})
        for n, task in enumerate(tasks)
    ]
    (tmp_path / "out.jsonl").write_text("\n".join(lines))
    found = annotation_tools.prodigy(tmp_path / "out.jsonl")
    assert long(found) == [(5, "w0", ["A"], []), (5, "w2", [], ["B"]), (5, "w3", ["C"], [])]
    said, names, _ = answers.from_long(found, **annotation_tools.COLUMNS)
    assert names == ("A", "B", "C") and said.sets().tolist() == [[1, 0, 1]]


def test_a_file_that_is_no_export_is_named(tmp_path):
    (tmp_path / "x.json").write_text('[{"nothing": 1}]')
    with pytest.raises(
        ValueError, match="x.json must be an export in the tool's form.*_input_hash"
    ):
        annotation_tools.prodigy(tmp_path / "x.json")
    (tmp_path / "y.json").write_text("[{")
    with pytest.raises(ValueError, match="y.json must be .*Expecting property name"):
        annotation_tools.argilla(tmp_path / "y.json")


# -- methods ------------------------------------------------------------------------------------


def test_a_set_is_the_case_of_weights_0_and_1():
    rng = np.random.default_rng(0)
    logits, weights = rng.normal(size=(5, 4)), rng.random((5, 4))
    exponentials = np.exp(logits) * weights
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(losses.confidence(logits, weights), expected, rtol=1e-6)
    np.testing.assert_allclose(
        losses.candidate_likelihood(logits, weights),
        -np.log(exponentials.sum(axis=1) / np.exp(logits).sum(axis=1)),
        rtol=1e-6,
    )


@pytest.fixture
def songs():
    """Features that tell the class, and a crowd of which a few are good."""
    rng = np.random.default_rng(3)
    labels = rng.integers(4, size=300)
    features = np.eye(4)[labels] * 2 + rng.normal(size=(300, 4))
    said = crowd(labels, 4, [0.9, 0.85, 0.3, 0.3, 0.25, 0.25, 0.2], votes=4)
    return vt.PartialLabelDataset.from_answers(features.astype(np.float32), said, labels=labels)


def trained(method, data, epochs=25, callbacks=None, **settings):
    model = method(vt.networks.linear(data.feature_shape, data.num_classes), **settings)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9))
    model.fit(data, epochs=epochs, verbose=0, callbacks=callbacks)
    return model


def recovered(model, data):
    return (model.label_distributions().argmax(axis=1) == data.labels).mean()


@pytest.mark.parametrize("method", [vt.Valen, vt.methods.Proden, vt.methods.RC, vt.methods.CC])
def test_answers_recover_more_than_their_union_and_than_themselves(songs, method):
    weighed = trained(method, songs)
    union = trained(method, dataclasses.replace(songs, answers=None))
    alone = (songs.answers.dawid_skene()[0].argmax(axis=1) == songs.labels).mean()
    assert recovered(weighed, songs) > recovered(union, songs) + 0.02
    assert recovered(weighed, songs) > alone
    quality = weighed.annotators()
    assert list(quality.index) == [str(n) for n in range(7)]
    assert quality["accuracy"][:2].min() > 0.7 > 0.5 > quality["accuracy"][2:].max()
    assert quality["answers"].sum() == len(songs.answers)


@pytest.mark.parametrize("method", [vt.Valen, vt.methods.Proden])
def test_a_classifier_that_knows_less_than_the_annotators_does_not_judge_them(songs, method):
    judging = trained(method, songs, epochs=12)
    assert judging.memory["judges"] == 1
    noise = np.random.default_rng(0).normal(size=songs.features.shape).astype("float32")
    dull = dataclasses.replace(songs, features=noise)
    model = trained(method, dull, epochs=12)
    posterior, _ = songs.answers.dawid_skene()
    expected = songs.answers.evidence(posterior)
    np.testing.assert_allclose(model.memory["evidence"], expected, rtol=1e-5)
    assert model.memory["judges"] == -1


@pytest.mark.parametrize("method", [vt.methods.GA, vt.methods.D2CNN])
def test_methods_of_sets_see_the_sets(songs, method):
    weighed = trained(method, songs, epochs=2)
    union = trained(method, dataclasses.replace(songs, answers=None), epochs=2)
    np.testing.assert_array_equal(
        weighed.predict(songs, verbose=0), union.predict(songs, verbose=0)
    )
    with pytest.raises(ValueError, match="`annotators` needs a model that was trained on people's"):
        weighed.annotators()


def test_a_killed_training_on_answers_resumes_to_the_same_numbers(songs, tmp_path):
    # Those by default go by the epochs of each `fit`.
    fixed = [vt.callbacks.WarmUp(4), vt.callbacks.Cooldown(0.0)]
    whole = trained(vt.Valen, songs, epochs=14, callbacks=fixed)
    state = tmp_path / "state.npz"
    trained(vt.Valen, songs, epochs=11, callbacks=[vt.callbacks.Resume(state), *fixed])
    resumed = trained(vt.Valen, songs, epochs=14, callbacks=[vt.callbacks.Resume(state), *fixed])
    np.testing.assert_array_equal(whole.label_distributions(), resumed.label_distributions())
    np.testing.assert_array_equal(whole.memory["evidence"], resumed.memory["evidence"])


def test_a_saved_model_knows_what_the_answers_said(songs, tmp_path):
    model = trained(vt.Valen, songs, epochs=12)
    model.save(tmp_path / "model.keras")
    again = vt.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.memory["evidence"], model.memory["evidence"])
    for each in (model, again):
        each.fit(songs, epochs=2, verbose=0)
    np.testing.assert_array_equal(again.label_distributions(), model.label_distributions())
    assert again.epochs_trained == 14


def test_other_answers_on_the_same_sets_are_other_data(songs):
    model = trained(vt.methods.Proden, songs, epochs=2)
    doubled = dataclasses.replace(songs.answers, weight=2 * songs.answers.weight)
    model.fit(dataclasses.replace(songs, answers=doubled), epochs=1, verbose=0)
    assert model.epochs_trained == 1
    model.fit(dataclasses.replace(songs, answers=None), epochs=1, verbose=0)
    assert model.epochs_trained == 1
    assert (model.label_distributions()[songs.candidates == 0] == 0).all()


# -- habits ---------------------------------------------------------------------------------------


def test_held_out_answers_choose_how_far_annotators_are_judged_on_their_own():
    labels = np.arange(300) % 4
    plain = crowd(labels, 4, np.linspace(0.3, 0.9, 12), votes=3)
    chosen = plain.habits
    assert chosen.classes >= 50  # all errors are alike: nobody has habits of their own
    scores = [plain.held_out_likelihood(answers.Habits(classes=classes)) for classes in (0.5, 150)]
    assert scores[0] < scores[1] <= plain.held_out_likelihood(chosen)


def test_a_habit_of_the_whole_crowd_is_found():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=600)
    example, who = np.repeat(np.arange(600), 3), rng.integers(150, size=1800)
    truth = labels[example]
    said = np.where((truth == 0) & (rng.random(1800) < 0.4), 1, truth)  # many take 0 for 1
    said = np.where(rng.random(1800) < 0.15, rng.integers(4, size=1800), said)
    common = Answers(example, who, said, 600, 4, annotators=range(150))
    assert common.habits.shared


@pytest.mark.parametrize("votes", [1, 2])
def test_one_annotator_and_few_answers_are_no_harm(votes):
    labels = np.arange(60) % 3
    one = Answers(np.arange(60), np.zeros(60, int), labels, 61, 3)  # the last was never answered
    np.testing.assert_array_equal(one.dawid_skene()[0][:60].argmax(axis=1), labels)
    assert (one.evidence(one.dawid_skene()[0])[60] == 1).all()
    few = crowd(labels, 3, [0.8] * 60, votes=votes)
    recovered = (few.dawid_skene()[0].argmax(axis=1) == labels).mean()
    assert recovered >= (few.majority() == labels).mean() - 0.05


# -- the command line -----------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """A file of features with the truth, and one of answers, in columns of their own names."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    names = np.array(["ant", "bee", "cat"])
    photos = [f"00{place}" for place in range(60)]  # which are no numbers
    features = pd.DataFrame(3 * np.eye(3)[labels] + rng.normal(size=(60, 3)), columns=list("xyz"))
    features.assign(photo=photos, truth=names[labels]).to_csv(
        tmp_path / "features.csv", index=False
    )
    said = crowd(labels, 3, [0.9, 0.8, 0.5, 0.4], votes=3)
    rows = {
        "photo": np.array(photos)[said.example],
        "who": np.array(["ann", "=bob", "cid", "dee"])[said.annotator],
        "said": names[said.label],
    }
    pd.DataFrame(rows).to_csv(tmp_path / "answers.csv", index=False)
    tasks = [
        {
            "id": place,
            "data": {"photo": photos[place]},
            "annotations": [
                {"completed_by": int(who), "result": [choices(names[label])]}
                for who, label in zip(
                    said.annotator[said.example == place],
                    said.label[said.example == place],
                    strict=True,
                )
            ],
        }
        for place in range(60)
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    return tmp_path


TABLE = ["data.item=photo", "data.annotator=who", "data.answer=said", "data.label=truth"]


def test_a_run_on_answers_from_end_to_end(files, capsys):
    start = ["train", "--answers", str(files / "answers.csv"), "--csv", str(files / "features.csv")]
    start += [
        *TABLE,
        "method=proden",
        "training.epochs=11",
        "network.name=linear",
        "ablation=false",
    ]
    start += ["training.learning_rate=0.1", "--out", str(files / "run")]
    assert cli.main(start) == 0
    quality = pd.read_csv(files / "run" / "annotators.csv")
    assert list(quality) == ["annotator", "answers", "accuracy"] and len(quality) == 4
    assert "'=bob" in set(quality["annotator"])  # no spreadsheet takes a name for a formula
    summary = json.loads((files / "run" / "summary.json").read_text())
    assert summary["recovered_labels"] >= summary["majority_recovered_labels"] > 0.4
    assert "dawid_skene_recovered_labels" in summary
    printed = " ".join(capsys.readouterr().out.split())
    assert "recovered by" in printed and "Dawid-Skene" in printed
    assert cli.main(start) == 0 and "nothing to do" in capsys.readouterr().out
    assert cli.main(["evaluate", str(files / "run")]) == 0
    assert cli.main(["predict", str(files / "run"), "--csv", str(files / "features.csv")]) == 0


def test_an_export_is_joined_by_what_the_task_calls_its_item(files):
    table, export = (
        sources.prepare(
            read_config(
                overrides=[
                    f"data.answers={files / name}",
                    f"data.csv={files / 'features.csv'}",
                    *TABLE,
                ]
            )
        )
        for name in ("answers.csv", "export.json")
    )
    np.testing.assert_array_equal(table.train.answers.votes, export.train.answers.votes)
    np.testing.assert_array_equal(table.train.labels, export.train.labels)
    assert table.schema["feature_columns"] == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["data.item=picture"], "must have one column 'picture', or `data.item` name another"),
        (["data.answer=label"], "must have one column 'label', or `data.answer` name another"),
        (["data.label=right"], "must have one column 'right', or `data.label` name another"),
        (["data.coverage=0.8"], "people's answers are given"),
    ],
)
def test_answers_that_do_not_fit_are_refused_in_a_line(files, changes, message):
    names = [f"data.answers={files / 'answers.csv'}", f"data.csv={files / 'features.csv'}"]
    with pytest.raises(ValueError, match=message):
        sources.prepare(read_config(overrides=[*names, *TABLE, *changes]))


def test_items_that_are_not_in_the_features_are_told(files):
    table = pd.read_csv(files / "answers.csv", dtype=str)
    table.replace({"photo": {"003": "3"}}).to_csv(files / "answers.csv", index=False)
    names = [f"data.answers={files / 'answers.csv'}", f"data.csv={files / 'features.csv'}"]
    with pytest.raises(ValueError, match="1 items that are not there, such as '3'; the first one"):
        sources.prepare(read_config(overrides=[*names, *TABLE]))
    with pytest.raises(ValueError, match="`csv` must be the file with the features"):
        read_config(overrides=["data.answers=answers.csv"])
