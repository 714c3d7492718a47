import dataclasses
import os
import subprocess
import sys

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from valen_tf.data.dataset import PartialLabelDataset
from valen_tf.data.features import check_candidates, check_features

relaxed = settings(deadline=None, database=None, max_examples=40)


def make(examples=11, classes=4, *, labels=True, dtype=np.float32, shape=(3,), seed=0):
    """Features whose first entry tells the row, so that every rearrangement can be followed."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 200, (examples, *shape)).astype(dtype)
    features.reshape(examples, -1)[:, 0] = np.arange(examples)
    truth = rng.integers(0, classes, examples)
    candidates = rng.random((examples, classes)) < 0.5
    candidates[np.arange(examples), truth] = True
    return PartialLabelDataset(features, candidates, truth if labels else None)


def rows_of(data):
    return data.features.reshape(len(data), -1)[:, 0].astype(int)


def orders(batches, epochs=1):
    """The index order of each of the next epochs."""
    return [
        np.concatenate([targets["index"].numpy() for _, targets in batches]) for _ in range(epochs)
    ]


def same(left, right):
    for field in dataclasses.fields(left):
        if field.name == "table":  # what a data set was read from
            continue
        ours, theirs = getattr(left, field.name), getattr(right, field.name)
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        else:
            assert ours == theirs
    return True


# Validation


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_candidates_of_every_number_type_become_uint8(dtype):
    checked = check_candidates(np.array([[1, 0], [1, 1]], dtype=dtype), num_classes=2)
    assert checked.dtype == np.uint8 and checked.tolist() == [[1, 0], [1, 1]]


def test_right_arrays_are_not_copied():
    features, candidates = np.ones((2, 3), np.float32), np.ones((2, 2), np.uint8)
    data = PartialLabelDataset(features, candidates)
    assert data.features is features and data.candidates is candidates


@pytest.mark.parametrize(
    "given_type, kept",
    [("f8", "f4"), ("f4", "f4"), ("f2", "f4"), ("u1", "u1"), ("i8", "i8"), ("?", "?")],
)
def test_feature_types(given_type, kept):
    assert check_features(np.ones((2, 3), given_type)).dtype == np.dtype(kept)


ONES = np.ones((3, 2))


@pytest.mark.parametrize(
    "build, error, message",
    [
        (lambda: check_candidates([1, 0]), ValueError, r"`candidates`.*shape=\(2,\)"),
        (lambda: check_candidates(np.ones((2, 0))), ValueError, r"`candidates`.*\(2, 0\)"),
        (lambda: check_candidates(ONES, 3), ValueError, r"`candidates`.*examples, 3.*\(3, 2\)"),
        (lambda: check_candidates([["a"]]), TypeError, r"`candidates`.*dtype=<U1"),
        (
            lambda: check_candidates([[1, 0], [1]]),
            ValueError,
            r"`candidates` must have rows of one",
        ),
        (
            lambda: check_candidates([[1, 0], [0, 3], [2, 1]]),
            ValueError,
            r"^`candidates` must hold only 0 and 1\. Received: 3 in row 1 \(2 such rows\)$",
        ),
        (lambda: check_candidates([[1, np.nan]]), ValueError, r"`candidates`.*nan in row 0"),
        (lambda: check_candidates([[1], [0], [0]]), ValueError, r"`cand.*none in row 1 \(2 such"),
        (lambda: check_features(3.0), ValueError, r"`features`.*shape=\(\)"),
        (lambda: check_features(np.ones((0, 2))), ValueError, r"`features`.*shape=\(0, 2\)"),
        (lambda: check_features([["a"]]), TypeError, r"`features`.*dtype=<U1"),
        (lambda: check_features([[1.0], [np.nan]]), ValueError, r"`features`.*in row 1 \(1 such"),
        (lambda: check_features([[1e300], [1.0]]), ValueError, r"`features`.*in row 0"),
        (lambda: PartialLabelDataset(ONES[:2], ONES), ValueError, r"`features` and `cand.*2 and 3"),
        (lambda: PartialLabelDataset(ONES, ONES, [0, 1]), ValueError, r"`labels`.*shape=\(2,\)"),
        (lambda: PartialLabelDataset(ONES, ONES, [0, 1, 2]), ValueError, r"`labels`.*2 in row 2"),
        (lambda: PartialLabelDataset(ONES, ONES, [0, -1, 0]), ValueError, r"`labels`.*-1 in row 1"),
        (lambda: PartialLabelDataset(ONES, ONES, [0, 1.0, 1]), TypeError, r"`labels`.*float64"),
        (
            lambda: PartialLabelDataset(ONES, ONES, None, ["a"]),
            ValueError,
            r"`class_names`.*2 diff",
        ),
        (
            lambda: PartialLabelDataset(ONES, ONES, None, "aa"),
            ValueError,
            r"`class_names`.*'a', 'a'",
        ),
        (lambda: make().split(1.0), ValueError, r"`fraction`.*fraction=1\.0"),
        (lambda: make(1).split(), ValueError, r"at least 2 examples.*1"),
        (lambda: make(4).folds(5), ValueError, r"`num_folds`.*\[2, 4\].*num_folds=5"),
        (lambda: make().folds(1), ValueError, r"`num_folds`.*num_folds=1"),
        (lambda: make(labels=False).revealed(), ValueError, r"`labels`.*None"),
        (lambda: make().batches(0), ValueError, r"`batch_size`.*batch_size=0"),
        (lambda: make().standardized(make(shape=(2,))), ValueError, r"`others`.*\(3,\).*\(2,\)"),
        (lambda: make().take([]), ValueError, r"`features`.*\(0, 3\)"),
    ],
)
def test_errors_name_the_argument_and_the_row(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_properties():
    data = PartialLabelDataset(
        np.zeros((4, 2, 5)), [[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1]], [0, 1, 1, 2], "abc"
    )
    assert (len(data), data.num_examples, data.num_classes) == (4, 4, 3)
    assert data.feature_shape == (2, 5) and data.class_names == ("a", "b", "c")
    assert data.average_candidates == 7 / 4
    assert data.label_coverage == 3 / 4  # the second example's label is not a candidate
    assert dataclasses.replace(data, labels=None).label_coverage is None
    assert repr(data) == (
        "PartialLabelDataset(4 examples of shape (2, 5), 3 classes, "
        "1.75 candidates, coverage 0.750)"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.labels = None


def test_import_is_cheap():
    program = "import sys, valen_tf.data; assert not {'tensorflow', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


# Readers


def test_from_label_lists_with_names():
    data = PartialLabelDataset.from_label_lists(
        ONES, [["dog", "cat"], ("cow",), {"cat"}], labels=["dog", "cow", "eel"]
    )
    assert data.class_names == ("cat", "cow", "dog", "eel")  # eel is nobody's candidate
    assert data.candidates.tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]
    assert data.labels.tolist() == [2, 1, 3]


def test_from_label_lists_with_numbers():
    data = PartialLabelDataset.from_label_lists(
        ONES, [[0, 2], [1], np.array([3])], labels=[2, 1, 0]
    )
    assert data.class_names is None and data.labels.tolist() == [2, 1, 0]
    assert data.candidates.tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    named = PartialLabelDataset.from_label_lists(ONES, [[0, 2], [1], [2]], class_names="zyx")
    assert named.class_names == ("z", "y", "x") and named.candidates[0].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "lists, options, message",
    [
        ([["a"], [], []], {}, r"`label_lists`.*none in row 1 \(2 such"),
        ([["a"], "ab", ["b"]], {}, r"`label_lists`.*a string in row 1"),
        ([["a"], ["b", "x"], ["b"]], {"class_names": "ab"}, r"`class_names`.*'x' in row 1"),
        ([[0], [1], [-1]], {}, r"candidates.*-1 in row 2"),
        ([["a"], ["b"], ["b", 1]], {}, r"candidates.*1 in row 2"),
        (
            [["a"], ["b"], ["b"]],
            {"class_names": "ab", "labels": ["a", "q", "b"]},
            r"labels.*'q' in row 1",
        ),
    ],
)
def test_label_list_errors(lists, options, message):
    with pytest.raises(ValueError, match=message):
        PartialLabelDataset.from_label_lists(ONES, lists, **options)


FRAME = pd.DataFrame(
    {"width": [1.5, 2.5, 3.5], "candidates": ["cat| dog ", "dog", "007|cat|"], "count": [1, 2, 3]}
)


def test_from_frame():
    frame = FRAME.assign(truth=["dog ", "cat", "007"])
    data = PartialLabelDataset.from_frame(frame, label="truth")
    assert data.class_names == ("007", "cat", "dog")
    assert data.features.tolist() == [[1.5, 1], [2.5, 2], [3.5, 3]]
    assert data.candidates.tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 0]]
    assert data.labels.tolist() == [2, 1, 0] and data.label_coverage == pytest.approx(2 / 3)
    one = PartialLabelDataset.from_frame(frame, features=["count"])
    assert one.features.tolist() == [[1], [2], [3]] and one.labels is None
    other = frame.assign(candidates=["dog or cat", "orca", "orca or cat"])
    other = PartialLabelDataset.from_frame(other, features=["count"], separator=" or ")
    assert other.class_names == ("cat", "dog", "orca")


@pytest.mark.parametrize(
    "frame, options, message",
    [
        (FRAME.drop(columns="candidates"), {}, r"`frame`.*'candidates'.*\['width', 'count'\]"),
        (FRAME, {"label": "truth"}, r"`frame`.*'truth'"),
        (FRAME, {"features": ["height"]}, r"`frame`.*'height'"),
        (
            FRAME.assign(width=["a", "b", "c"]),
            {"features": ["width"]},
            r"another value in nearly every",
        ),
        (
            FRAME.assign(width=["a", "b", "c"]),
            {"features": {"width": "number"}},
            r"'width' must.*'a'",
        ),
        (FRAME.assign(width=[1.0, np.inf, 2.0]), {}, r"'width' must hold finite numbers.*row 1"),
        (FRAME.assign(width=[1.0, 1e39, 2.0]), {}, r"`features`.*row 1"),
        (FRAME.assign(candidates=["a", None, "b"]), {}, r"'candidates'.*row 1"),
        (FRAME.assign(candidates=["a", "b", " "]), {}, r"'candidates'.*row 2"),
        (FRAME.assign(candidates=["a", "||", "b"]), {}, r"none in row 1"),
        (FRAME, {"class_names": ["cat", "dog"]}, r"`class_names`.*'007' in row 2"),
    ],
)
def test_frame_errors(frame, options, message):
    with pytest.raises(ValueError, match=message):
        PartialLabelDataset.from_frame(frame, **options)


def test_csv_round_trip(tmp_path):
    names = ["NA", "007", "nan", "x y"]  # names that a careless reader turns into something else
    data = dataclasses.replace(make(30, 4), class_names=names)
    frame = pd.DataFrame(data.features, columns=["a", "b", "c"])
    sets = ["|".join(np.array(names)[row.astype(bool)]) for row in data.candidates]
    frame = frame.assign(sets=sets, truth=[names[label] for label in data.labels])
    frame.to_csv(tmp_path / "pets.csv", index=False)
    read = PartialLabelDataset.from_csv(
        tmp_path / "pets.csv", candidates="sets", label="truth", class_names=names
    )
    assert same(read, data)


def test_csv_errors_name_the_file_and_the_row(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        PartialLabelDataset.from_csv(tmp_path / "nowhere.csv")
    path = tmp_path / "gap.csv"
    path.write_text("size,candidates\n1,cat|dog\n2,\n")
    with pytest.raises(ValueError, match=r"'candidates'.*row 1"):
        PartialLabelDataset.from_csv(path)
    with pytest.raises(ValueError, match=r"'pets'.*\['size', 'candidates'\]"):
        PartialLabelDataset.from_csv(path, candidates="pets")


# tf.data


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("with_label", [True, False])
def test_from_tf_data_round_trip(batched, with_label):
    data = make(23, labels=with_label)
    order = np.random.default_rng(3).permutation(23)
    targets = {"candidates": data.candidates[order].astype(np.float32), "index": order}
    if with_label:
        targets["label"] = data.labels[order]
    pipeline = tf.data.Dataset.from_tensor_slices((data.features[order], targets))
    read = PartialLabelDataset.from_tf_data(pipeline.batch(5) if batched else pipeline)
    assert same(read, data)


def test_from_tf_data_of_pairs_and_of_batches():
    data = make(23, labels=False)
    pairs = tf.data.Dataset.from_tensor_slices((data.features, data.candidates))
    assert same(PartialLabelDataset.from_tf_data(pairs), data)
    assert same(PartialLabelDataset.from_tf_data(pairs.batch(4)), data)
    assert same(PartialLabelDataset.from_tf_data(data.batches(4, seed=9)), data)


@pytest.mark.parametrize(
    "elements, change, message",
    [
        ((ONES, ONES), lambda d: d.repeat(), r"`dataset` must be finite"),
        ((ONES, ONES), lambda d: d.skip(3), r"`dataset`.*at least one"),
        ((ONES, ONES, ONES), lambda d: d, r"`dataset` must give \(features, cand.*element_spec"),
        (ONES, lambda d: d, r"`dataset` must give"),
        ((ONES, {"label": [0, 0, 0]}), lambda d: d, r"`dataset` must give"),
        ((ONES, (ONES, ONES)), lambda d: d, r"`dataset` must give"),
        ((ONES, np.ones((3, 2, 2, 2))), lambda d: d, r"`dataset`.*rank=3"),
        ((ONES, {"candidates": ONES, "index": [0, 1, 1]}), lambda d: d, r"`index`.*in row 1"),
        ((ONES, {"candidates": ONES, "index": [0, 1, 3]}), lambda d: d, r"`index`.*3 in row 2"),
    ],
)
def test_tf_data_errors(elements, change, message):
    with pytest.raises(ValueError, match=message):
        PartialLabelDataset.from_tf_data(change(tf.data.Dataset.from_tensor_slices(elements)))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_size", [1, 4, 11, 50])
def test_batches_carry_each_example_once_with_its_own_rows(shuffle, batch_size):
    data = make(11, dtype=np.uint8, shape=(2, 2, 1))
    batches = data.batches(batch_size, shuffle=shuffle)
    seen = []
    for features, targets in batches:
        index = targets["index"].numpy()
        assert features.dtype == targets["candidates"].dtype == tf.float32
        assert targets["index"].dtype == tf.int64
        np.testing.assert_array_equal(features, data.features[index])
        np.testing.assert_array_equal(targets["candidates"], data.candidates[index])
        seen.append(index)
    sizes = [len(index) for index in seen]
    assert len(sizes) == len(batches) == -(-11 // batch_size)
    assert sizes[:-1] == [batch_size] * (len(sizes) - 1)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(11))
    if not shuffle:
        np.testing.assert_array_equal(np.concatenate(seen), np.arange(11))


def test_order_is_a_function_of_seed_and_epoch():
    data = make(50)
    batches = data.batches(8, seed=2**40 + 1)
    first, second, third = orders(batches, 3)
    assert (first != second).any() and (second != third).any() and (first != third).any()
    assert batches.epoch == 3
    batches.epoch = 1
    np.testing.assert_array_equal(orders(batches, 2), [second, third])
    np.testing.assert_array_equal(orders(data.batches(8, seed=2**40 + 1), 2), [first, second])
    np.testing.assert_array_equal(orders(data.batches(50, seed=2**40 + 1)), [first])
    assert (orders(data.batches(8, seed=4))[0] != first).any()


def test_endless_batches_are_those_of_one_epoch_after_another():
    data = PartialLabelDataset(np.arange(10), np.ones((10, 2)))
    batches, again = data.batches(4, seed=3), data.batches(4, seed=3)
    batches.epoch = 5
    endless = iter(batches.endless)
    again.epoch = 5
    for _ in range(3):
        for features, targets in again:
            endless_features, endless_targets = next(endless)
            np.testing.assert_array_equal(endless_features, features)
            np.testing.assert_array_equal(endless_targets["index"], targets["index"])
    assert batches.epoch == 5  # which only an iteration of its own moves


def test_mapped_batches_keep_their_order_and_draw_by_epoch_and_batch():
    def noisy(features, targets, seed):
        return features + tf.random.stateless_uniform(tf.shape(features), seed), targets

    data = make(50)
    plain, mapped = data.batches(8, seed=3), data.batches(8, seed=3).map(noisy)
    np.testing.assert_array_equal(orders(mapped, 2), orders(plain, 2))
    mapped.epoch = 1
    again = data.batches(8, seed=3).map(lambda features, targets: (features, targets)).map(noisy)
    again.epoch = 1
    first, second = ([features.numpy() for features, _ in each] for each in (mapped, again))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    drawn = [features.numpy() for features, _ in mapped]  # the next epoch
    plain.epoch = 1
    noise = [one - features.numpy() for one, (features, _) in zip(first, plain, strict=True)]
    later = [one - features.numpy() for one, (features, _) in zip(drawn, plain, strict=True)]
    assert np.abs(noise[0] - noise[1]).max() > 1e-3  # another draw for every batch
    assert np.abs(noise[0] - later[0]).max() > 1e-3  # and every epoch


def test_shuffles_are_uncorrelated():
    epochs = orders(make(500).batches(500, seed=1), 20)
    correlations = np.corrcoef([np.arange(500), *epochs])[np.triu_indices(21, 1)]
    # 210 correlations of standard error 1 / sqrt(500): the largest, and their mean.
    assert abs(correlations).max() < 5 / np.sqrt(500)
    assert abs(correlations.mean()) < 4 / np.sqrt(500 * correlations.size)


def test_an_epoch_left_early_counts_as_one():
    batches = make(50).batches(8)
    next(iter(batches))
    assert batches.epoch == 1


def test_features_are_held_once_and_outside_the_graph():
    data = PartialLabelDataset(np.zeros((50_000, 20), np.float32), np.ones((50_000, 2)))

    def graphs(pipeline):
        yield from (function.function.graph for function in pipeline._functions())
        for part in pipeline._inputs():
            yield from graphs(part)

    captured = []
    for pipeline in (data.batches(8), data.batches(9)):
        found = list(graphs(pipeline.dataset))
        assert 0 < sum(graph.as_graph_def().ByteSize() for graph in found) < 100_000
        tensors = [outer for graph in found for outer, _ in graph.captures]
        captured.append([tensor for tensor in tensors if tensor.shape == (50_000, 20)])
    assert len(captured[0]) == 1 and captured[0][0] is captured[1][0]


@pytest.mark.parametrize("steps", [None, 3])
def test_fit_counts_epochs(steps):
    data = make(50)
    train, validation = data.batches(8), data.batches(16, shuffle=False)
    order = []

    class Recorder(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Dense(4, activation="softmax")

        def call(self, inputs):
            return self.layer(inputs)

        def train_step(self, batch):
            features, targets = batch
            tf.py_function(lambda index: order.append(index.numpy()), [targets["index"]], [])
            return super().train_step((features, targets["candidates"]))

        def test_step(self, batch):
            return super().test_step((batch[0], batch[1]["candidates"]))

    model = Recorder()
    model.compile(optimizer="sgd", loss="categorical_crossentropy")
    options = {"verbose": 0, "shuffle": False, "steps_per_epoch": steps}
    model.fit(train.dataset, epochs=2, validation_data=validation.dataset, **options)
    if steps is None:
        model.fit(train.dataset, epochs=1, **options)
        expected = np.concatenate(orders(data.batches(8), 3))
        assert train.epoch == 3
    else:  # a pass over the data is an epoch of the order, whatever Keras calls an epoch
        expected = orders(data.batches(8))[0][: 2 * 3 * 8]
    np.testing.assert_array_equal(np.concatenate(order), expected)


# Parts


@relaxed
@given(st.integers(2, 30), st.data(), st.integers(0, 99))
def test_folds_partition_the_examples(examples, choose, seed):
    num_folds = choose.draw(st.integers(2, examples))
    data = make(examples)
    folds = data.folds(num_folds, seed=seed)
    assert len(folds) == num_folds
    np.testing.assert_array_equal(
        np.sort(np.concatenate([rows_of(test) for _, test in folds])), np.arange(examples)
    )
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1
    for train, test in folds:
        np.testing.assert_array_equal(
            np.sort(np.concatenate([rows_of(train), rows_of(test)])), np.arange(examples)
        )
        np.testing.assert_array_equal(train.candidates, data.candidates[rows_of(train)])
        np.testing.assert_array_equal(test.labels, data.labels[rows_of(test)])


@relaxed
@given(st.integers(2, 40), st.floats(0.01, 0.99))
def test_split_sizes(examples, fraction):
    rest, held_out = make(examples).split(fraction)
    assert len(rest) >= 1 and len(held_out) >= 1
    assert len(rest) + len(held_out) == examples
    assert abs(len(held_out) - examples * fraction) <= 1
    assert not set(rows_of(rest)) & set(rows_of(held_out))


def test_split_and_folds_depend_on_the_seed():
    data = make(40)
    assert same(data.split(seed=1)[1], data.split(seed=1)[1])
    assert set(rows_of(data.split(seed=1)[1])) != set(rows_of(data.split(seed=2)[1]))
    assert same(data.folds(seed=1)[0][0], data.folds(seed=1)[0][0])
    assert set(rows_of(data.folds(seed=1)[0][1])) != set(rows_of(data.folds(seed=2)[0][1]))


def test_reveal_shows_the_labels_of_the_held_out_part_only():
    data = make(40)
    for train, test in [data.split(), data.folds()[0]]:
        np.testing.assert_array_equal(test.candidates, np.eye(4)[test.labels])
        np.testing.assert_array_equal(train.candidates, data.candidates[rows_of(train)])
    for _, test in [data.split(reveal=False), data.folds(reveal=False)[0]]:
        np.testing.assert_array_equal(test.candidates, data.candidates[rows_of(test)])
    unknown = make(40, labels=False)
    _, test = unknown.split()
    np.testing.assert_array_equal(test.candidates, unknown.candidates[rows_of(test)])


def test_take_accepts_positions_slices_and_masks():
    data = dataclasses.replace(make(6), class_names="abcd")
    assert rows_of(data.take([4, 0, 4])).tolist() == [4, 0, 4]
    assert rows_of(data.take(slice(2, 4))).tolist() == [2, 3]
    assert rows_of(data.take(data.labels == data.labels[0]))[0] == 0
    assert rows_of(data.take(-1)).tolist() == [5]
    assert data.take([1]).class_names == tuple("abcd")
    with pytest.raises(IndexError, match="6"):
        data.take([6])


# Standardisation and files


@pytest.mark.parametrize(("shape", "axes"), [((6,), 0), ((2, 3), None), ((2, 3, 4), (0, 1, 2))])
def test_moments_are_numpy_moments_across_blocks(shape, axes):
    features = np.random.default_rng(0).normal(1000, 3, (10_000, *shape)).astype(np.float32)
    mean, std = PartialLabelDataset(features, np.ones((10_000, 2))).moments()
    assert mean.dtype == std.dtype == np.float32
    np.testing.assert_allclose(mean, features.astype(np.float64).mean(axis=axes), rtol=1e-6)
    np.testing.assert_allclose(std, features.astype(np.float64).std(axis=axes), rtol=1e-6)


def test_images_are_standardized_by_channel():
    images = np.random.default_rng(0).integers(0, 256, size=(50, 4, 4, 3), dtype=np.uint8)
    images[..., 2] = 7
    mean, std = PartialLabelDataset(images, np.ones((50, 2))).moments()
    np.testing.assert_allclose(mean, images.mean(axis=(0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(std[:2], images[..., :2].std(axis=(0, 1, 2)), rtol=1e-6)
    assert std[2] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, bool, np.int64])
def test_constant_features_are_left_at_zero(dtype):
    features = np.stack([np.arange(999) % 2, np.ones(999)], axis=1)
    # 0.1 has no exact binary form: a sum in float32 would give its constant column a variance.
    features = (features * 0.1 if dtype == np.float32 else features).astype(dtype)
    data = PartialLabelDataset(features, np.ones((999, 2)))
    mean, std = data.moments()
    assert std[1] == 1 and std[0] != 1
    scaled = data.standardized().features
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled[:, 1], 0, atol=1e-7)
    np.testing.assert_allclose(scaled[:, 0].std(), 1, rtol=1e-5)


@relaxed
@given(arrays(np.float32, (6, 2), elements=st.floats(-100, 100, width=32)))
def test_standardization_is_fitted_on_the_first_alone(extra):
    train, test = make(20, shape=(2,)), PartialLabelDataset(extra, np.ones((6, 4)))
    scaled, other = train.standardized(test)
    assert same(scaled, train.standardized())
    mean, std = train.moments()
    np.testing.assert_allclose(other.features * std + mean, extra, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scaled.features.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.features.std(axis=0), 1, rtol=1e-5)
    np.testing.assert_array_equal(other.candidates, test.candidates)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("names", [None, ("à", "b c", "", "日本")])
def test_save_and_load(tmp_path, labels, names):
    data = dataclasses.replace(make(labels=labels, dtype=np.uint8), class_names=names)
    data.batches()  # what a pipeline keeps must not reach the file
    data.save(tmp_path / "data.npz")
    assert same(PartialLabelDataset.load(tmp_path / "data.npz"), data)
    assert os.listdir(tmp_path) == ["data.npz"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "data.npz"
    make(5).save(path)

    def run_out_of_space(file, **fields):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", run_out_of_space)
    with pytest.raises(OSError, match="no space"):
        make(7).save(path)
    assert len(PartialLabelDataset.load(path)) == 5 and os.listdir(tmp_path) == ["data.npz"]


def test_save_replaces_the_file_at_once(tmp_path):
    path = tmp_path / "data.npz"
    make(5).save(path)
    before = path.read_bytes()
    with open(path, "rb") as reader:  # one who reads while another saves sees the old file whole
        make(7).save(path)
        assert reader.read() == before
    assert len(PartialLabelDataset.load(path)) == 7


def test_load_names_a_foreign_file(tmp_path):
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    with pytest.raises(ValueError, match=r"`path`.*other\.npz"):
        PartialLabelDataset.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        PartialLabelDataset.load(tmp_path / "none.npz")
