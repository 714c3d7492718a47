"""Several devices and several machines give what one device gives on the same batches."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from conftest import blobs, compiled

import valen_tf as vt

SCRIPT = pathlib.Path(__file__).with_name("distributed_runs.py")
SECONDS = (
    1500  # for a group of processes, beyond which they are killed; a busy machine takes minutes
)
GRACE = 60  # for the others, when one of them was killed: a collective may wait for it for ever


def run(folder, *commands):
    """Runs `(arguments, environment)` side by side; returns their exit codes, None for one that hung."""
    end = time.monotonic() + SECONDS
    with contextlib.ExitStack() as stack:
        processes = []
        for number, (arguments, environment) in enumerate(commands):
            # A file and not a pipe, which could fill up while the other process is waited for.
            output = stack.enter_context(open(folder / f"output_{number}.txt", "w"))
            process = subprocess.Popen(
                [sys.executable, SCRIPT, *map(str, arguments)],
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        while time.monotonic() < end and any(process.poll() is None for process in processes):
            if any((process.poll() or 0) < 0 for process in processes):
                end = min(end, time.monotonic() + GRACE)
            time.sleep(0.1)
        codes = [process.poll() for process in processes]
    for number in range(len(commands)):
        print((folder / f"output_{number}.txt").read_text()[-3000:])  # pytest shows it on a failure
    return codes


def free_ports(number):
    """Ports that nobody has, and that nobody gets before the processes have come so far as to take them.

    The ports that the system gives out are also those of outgoing connections: on a busy machine another
    process has one by the time that TensorFlow is imported.
    """
    given = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = []
    with contextlib.ExitStack() as stack:
        while len(ports) < number:
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                port = random.randrange(given // 2, given)
                probe.bind(("127.0.0.1", port))
                ports.append(port)
    return ports


def run_workers(folder, *arguments):
    """Two workers on this machine."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    tasks = [
        {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        for index in range(2)
    ]
    return run(
        folder,
        *((("worker", folder, *arguments), {"TF_CONFIG": json.dumps(task)}) for task in tasks),
    )


def load(path):
    with np.load(path) as archive:
        return dict(archive)


def assert_close(one, two, tolerance=2e-5):
    """Weights, optimisers, tables and logs agree; the copies of a table are of one run alone."""
    names = {name for name in one if not name.startswith("copy_")}
    assert names == {name for name in two if not name.startswith("copy_")}
    for name in names:
        np.testing.assert_allclose(
            one[name], two[name], rtol=tolerance, atol=tolerance, err_msg=name
        )


def assert_copies_equal(state, replicas):
    for name in [name for name in state if name.startswith("copy_") and name.endswith("_0")]:
        for replica in range(1, replicas):
            np.testing.assert_array_equal(state[name], state[f"{name[:-1]}{replica}"], name)


def mirrored(folder, *names):
    assert run(folder, (("mirrored", folder, *names), {})) == [0]
    return {
        name: (load(folder / f"{name}_1.npz"), load(folder / f"{name}_2.npz")) for name in names
    }


def check_equal(runs):
    for one, two in runs.values():
        assert_close(one, two)
        assert_copies_equal(two, replicas=2)


def test_two_devices_train_as_one(tmp_path):
    """Warm-up, graph, enhancement, tables, penalty and metrics; shares are uneven, or without rows."""
    check_equal(mirrored(tmp_path, "valen"))


def test_a_strategy_of_one_device_changes_nothing():
    dataset = blobs(25)
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        model = compiled(vt.baselines.Proden, dataset)
    history = model.fit(dataset.batches(10), epochs=2, verbose=0).history
    assert model.is_chief
    plain = compiled(vt.baselines.Proden, dataset)
    assert plain.fit(dataset.batches(10), epochs=2, verbose=0).history == history
    np.testing.assert_array_equal(model.label_distributions(), plain.label_distributions())


def test_several_steps_per_execution_are_refused():
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        model = vt.baselines.Proden(vt.networks.linear((3,), 3))
        with pytest.raises(ValueError, match="`steps_per_execution` must be 1 .* Received: .*=2"):
            model.compile(steps_per_execution=2)


@pytest.mark.slow
def test_two_devices_train_as_one_with_every_other_method(tmp_path):
    check_equal(mirrored(tmp_path, "proden", "valen_authors", "rc", "cc", "clpl_softmax", "d2cnn"))


@pytest.mark.slow
def test_terms_that_join_the_examples_of_a_batch_learn_on_two_devices(tmp_path):
    runs = mirrored(tmp_path, "valen_with_graph", "ga", "batch_normalisation")
    for name, (_, two) in runs.items():
        assert all(np.isfinite(values).all() for values in two.values()), name
        assert_copies_equal(two, replicas=2)
        assert two["log_val_accuracy"].max() > 0.8, name
    one, two = runs["valen_with_graph"]
    assert np.abs(one["log_graph_reconstruction"] - two["log_graph_reconstruction"]).max() > 1e-4


@pytest.mark.slow
def test_two_workers_train_as_one_process(tmp_path):
    assert run_workers(tmp_path) == [0, 0]
    first, second = load(tmp_path / "worker_0.npz"), load(tmp_path / "worker_1.npz")
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], name)
    one, _ = mirrored(tmp_path, "valen")["valen"]
    assert_close(one, first)
    model = vt.load_model(tmp_path / "model.keras")  # which the first worker saved
    np.testing.assert_array_equal(
        model.memory["label_weights"].numpy(), first["table_label_weights"]
    )


@pytest.mark.slow
def test_a_killed_worker_and_its_peer_continue_from_the_backup(tmp_path):
    assert run_workers(tmp_path, "whole.npz") == [0, 0]
    whole = load(tmp_path / "worker_0.npz")
    survivor, killed = run_workers(tmp_path, "state.npz", 3)
    assert killed == -9
    assert survivor != 0
    assert len(json.loads(str(load(tmp_path / "state.npz")["epochs"]))) == 3
    assert run_workers(tmp_path, "state.npz") == [0, 0]
    resumed = load(tmp_path / "worker_0.npz"), load(tmp_path / "worker_1.npz")
    for state in resumed:
        assert_close(whole, state, tolerance=1e-6)  # a sum's last bit depends on where memory lies
