"""Features on disk: the same batches, moments and training as in memory, and nothing read ahead."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import blobs, compiled, schedule

import valen_tf as vt
from valen_tf.data.features import is_mapped


def on_disk(features, folder, **options):
    np.save(folder / "features.npy", features)
    return np.load(folder / "features.npy", **{"mmap_mode": "r", **options})


@pytest.mark.parametrize("kind", ["float32", "float64", "uint8", "int64"])
def test_batches_and_moments_are_those_of_memory_to_the_bit(kind, tmp_path):
    rng = np.random.default_rng(0)
    features = (100 * rng.random((9000, 3))).astype(kind)
    candidates = np.ones((9000, 2), np.uint8)
    disk = vt.PartialLabelDataset(on_disk(features, tmp_path), candidates)
    memory = vt.PartialLabelDataset(features, candidates)
    assert is_mapped(disk.features) and not is_mapped(memory.features)
    for ours, theirs in zip(disk.moments(), memory.moments(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    ours, theirs = disk.batches(500, seed=3), memory.batches(500, seed=3)
    assert ours.element_spec == theirs.element_spec
    assert int(ours.cardinality()) == int(theirs.cardinality())
    for _ in range(2):  # two epochs, whose orders differ
        for (x, y), (expected, targets) in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(x, expected)
            np.testing.assert_array_equal(y["index"], targets["index"])
    assert ours.epoch == 2
    np.testing.assert_array_equal(next(iter(ours.endless))[0], next(iter(theirs.endless))[0])


def test_training_on_disk_is_training_in_memory_to_the_bit(tmp_path):
    memory = blobs(90)
    disk = vt.PartialLabelDataset(on_disk(memory.features, tmp_path), memory.candidates)
    models = [compiled(vt.Valen, dataset) for dataset in (memory, disk)]
    histories = [
        model.fit(dataset, epochs=4, callbacks=schedule(), verbose=0).history
        for model, dataset in zip(models, (memory, disk), strict=True)
    ]
    assert histories[0] == histories[1]
    predictions = [model.predict(disk, verbose=0) for model in models]
    np.testing.assert_array_equal(*predictions)
    np.testing.assert_array_equal(predictions[0], models[0].predict(memory, verbose=0))


def test_a_slice_stays_on_disk_and_other_parts_do_not(tmp_path):
    disk = vt.PartialLabelDataset(on_disk(np.arange(10.0), tmp_path), np.ones((10, 2)))
    part = disk.take(slice(2, 6))
    assert is_mapped(part.features)
    assert [x.numpy().tolist() for x, _ in part.batches(4, shuffle=False)] == [[2, 3, 4, 5]]
    assert not is_mapped(disk.take([3, 1]).features)


def test_what_was_changed_in_a_copy_on_write_map_is_not_lost(tmp_path):
    features = on_disk(np.zeros((50, 2), np.float32), tmp_path, mmap_mode="c")
    features[:] = 7
    dataset = vt.PartialLabelDataset(features, np.ones((50, 2)))
    assert dataset.moments()[0].tolist() == [7, 7]
    assert (dataset.features == 7).all()


def test_a_broken_row_on_disk_is_refused(tmp_path):
    features = np.zeros((5000, 2), np.float32)
    features[4500, 1] = np.inf
    with pytest.raises(ValueError, match=r"`features` must be finite.*row 4500 \(1 such"):
        vt.PartialLabelDataset(on_disk(features, tmp_path), np.ones((5000, 2)))


_PEAK = """
import resource, sys
import numpy as np
import valen_tf as vt

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10  # megabytes

features = np.load(sys.argv[1], mmap_mode="r")
candidates = np.ones((len(features), 2), np.uint8)
small = vt.PartialLabelDataset(features[:1000].copy(), candidates[:1000])
for _ in small.batches(100):
    pass
before = peak()
dataset = vt.PartialLabelDataset(features, candidates)
dataset.moments()
for _ in dataset.batches(500):
    pass
print(peak() - before)
"""


def test_memory_does_not_grow_by_the_file(tmp_path):
    path = tmp_path / "features.npy"
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(60_000, 1000))
    rows[:] = 1  # 240 MB
    rows.flush()
    del rows
    root = pathlib.Path(vt.__file__).parents[1]
    grown = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)],
        check=True,
        capture_output=True,
        text=True,
        cwd=root,
    )
    path.unlink()
    assert float(grown.stdout) < 100
