"""The command line in terminals of every kind, driven through a pseudo-terminal."""

import operator
import os
import pathlib
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import termios
import time

import numpy as np
import pandas
import pytest

import valen_tf as vt
from valen_tf.cli import main
from valen_tf.cli.terminal import without_log_lines
from valen_tf.runs import keys

COMMAND = [sys.executable, "-m", "valen_tf.cli"]
QUICK = ["data.examples=60", "ablation=false", "network.name=linear"]
QUICK += ["data.corruption=uniform", "data.rate=0.2"]
CURSOR_HIDDEN, CURSOR_SHOWN = b"\x1b[?25l", b"\x1b[?25h"


class Terminal:
    """A command in a pseudo-terminal of its own, and what it shows with the time of each piece."""

    def __init__(self, *arguments, cwd, columns=100, term="xterm-256color", **environment):
        self.started = time.monotonic()
        self.shown, self.times = b"", []
        root = str(pathlib.Path(vt.__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        # Workers of pytest-xdist say how wide their own terminal is.
        aside = ("TF_CPP_MIN_LOG_LEVEL", "COLUMNS", "LINES")
        kept = {k: v for k, v in os.environ.items() if k not in aside}
        env = {**kept, "TERM": term, "PYTHONPATH": path, **environment}
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a shell's background job ignores
            os.execve(sys.executable, [*COMMAND, *map(str, arguments)], env)
        termios.tcsetwinsize(self.screen, (40, columns))

    def until(self, words, seconds=240):
        """Reads until some words are shown, or to the end."""
        end = time.monotonic() + seconds
        while words is None or words not in self.shown:
            assert time.monotonic() < end, self.shown.decode()[-2000:]
            if not select.select([self.screen], [], [], 1)[0]:
                continue
            try:
                piece = os.read(self.screen, 65536)
            except OSError:  # the other side is closed
                piece = b""
            if not piece:
                break
            self.times.append(time.monotonic() - self.started)
            self.shown += piece
        assert words is None or words in self.shown, self.shown.decode()[-2000:]
        return self

    def press_ctrl_c(self):
        """Presses Ctrl-C; returns the exit code and how many seconds it took to end."""
        pressed = time.monotonic()
        os.write(self.screen, b"\x03")
        return self.end(), time.monotonic() - pressed

    def end(self):
        """Reads to the end; returns the exit code."""
        self.until(None)
        os.close(self.screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    @property
    def lines(self):
        """What was shown, without control sequences."""
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.shown.decode())
        return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


def is_log(line):
    return re.match(r"[IWE]\d{4}|\d{4}-\d\d-\d\d \d\d|WARNING: All log", line)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that a terminal saw from begin to end, its folder and the terminal."""
    base = tmp_path_factory.mktemp("terminal")
    terminal = Terminal("train", "--epochs", 30, *QUICK, cwd=base)
    code = terminal.end()
    assert code == 0, terminal.lines
    return base / "runs" / "digits", terminal


# -- a whole run --------------------------------------------------------------------------------


def test_the_terminal_of_a_run_shows_words_at_once_and_no_log_of_tensorflow(run):
    _, terminal = run
    words = ["loading TensorFlow", "60 training examples", "accuracy on held-out true labels"]
    shown = "\n".join(terminal.lines)
    assert all(each in shown for each in words), shown
    assert not any(map(is_log, terminal.lines)), shown
    assert terminal.shown.count(CURSOR_HIDDEN) == 1
    assert terminal.shown.rfind(CURSOR_SHOWN) > terminal.shown.rfind(CURSOR_HIDDEN)


def test_a_run_says_which_rows_were_held_out_and_is_found_from_any_folder(
    run, tmp_path, monkeypatch, capsys
):
    folder, _ = run
    rows = pandas.read_csv(folder / "held_out_rows.csv")["row"]
    trained = pandas.read_csv(folder / "label_distributions.csv")["row"]
    assert len(rows) == 359 and not set(rows) & set(trained)
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(folder)]) == 0
    assert "accuracy on held-out true labels" in capsys.readouterr().out
    assert main(["predict", str(folder), "--top-k", "2", "--output", "all.csv"]) == 0
    frame = pandas.read_csv("all.csv")
    assert set(frame.row) == set(rows)
    columns = ["row", "prediction", "confidence", "uncertainty", "prediction_2", "confidence_2"]
    assert list(frame.columns[:6]) == columns
    assert (frame.confidence >= frame.confidence_2).all()
    assert frame.uncertainty.between(0, 1).all()


def test_rows_with_a_missing_value_have_no_answer(run, tmp_path, capsys):
    folder, _ = run
    features = vt.datasets.load("digits").features[:4].reshape(4, -1)
    frame = pandas.DataFrame(features)
    frame.iloc[2, 5] = np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "answers.csv"
    assert (
        main(["predict", str(folder), "--csv", str(tmp_path / "new.csv"), "--output", str(output)])
        == 0
    )
    assert "no answer for 1 of 4 rows, where a value is missing or infinite: row 2" in (
        capsys.readouterr().err
    )
    answers = pandas.read_csv(output)
    assert answers.prediction.isna().tolist() == [False, False, True, False]
    assert np.isnan(answers.confidence[2]) and answers.row.tolist() == [0, 1, 2, 3]


def test_the_default_folder_is_not_in_the_way_of_another_config(run, monkeypatch):
    folder, _ = run
    monkeypatch.chdir(folder.parents[1])
    from valen_tf.cli.main import _free_folder

    same = vt.runs.read_config(None, [*QUICK, "training.epochs=30"])
    assert _free_folder(os.path.join("runs", "digits"), same) == os.path.join("runs", "digits")
    other = vt.runs.read_config(None, ["training.epochs=31"])
    assert _free_folder(os.path.join("runs", "digits"), other) == os.path.join("runs", "digits-2")


def test_force_deletes_a_run_and_nothing_else(tmp_path):
    folder = tmp_path / "run"
    (folder / "state").mkdir(parents=True)
    for name in ("config.yaml", "model.keras", "annotators.csv"):
        (folder / name).write_text("")
    (folder / "letter.txt").write_text("mine")
    with pytest.raises(
        ValueError, match="a run and nothing else to be deleted. Received: letter.txt"
    ):
        vt.runs.delete(folder)
    assert (folder / "model.keras").exists()
    (folder / "letter.txt").unlink()
    vt.runs.delete(folder)
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == []


# -- before TensorFlow --------------------------------------------------------------------------


def seconds_of(*command):
    """Seconds of computing that a process takes, whatever others do with the cores; and what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def test_help_comes_at_once():
    bare = min(seconds_of(sys.executable, "-c", "")[0] for _ in range(3))
    seconds = []
    for _ in range(3):
        took, done = seconds_of(*COMMAND, "--help")
        assert done.returncode == 0 and "train" in done.stdout
        seconds.append(took)
    assert min(seconds) - bare < 0.1


def test_the_first_line_comes_at_once(tmp_path):
    terminal = Terminal("train", "settings.x=1", cwd=tmp_path)
    assert terminal.end() == 2
    assert terminal.lines[0] == "valen-tf: reading config and data ..."
    assert "Unknown key 'x'" in terminal.lines[1] and len(terminal.lines) == 2
    script = (
        "import sys; from valen_tf.cli import terminal; terminal.say = lambda line: sys.exit(line); "
        "sys.stderr.isatty = lambda: True; import valen_tf.cli; valen_tf.cli.main()"
    )
    seconds = []
    for _ in range(3):  # to the first line, and no further
        took, done = seconds_of(sys.executable, "-c", script, "train")
        assert done.stderr.strip() == "valen-tf: reading config and data ..."
        seconds.append(took)
    assert min(seconds) < 0.5


MISTAKES = {
    "a method that is none": (
        ["--method", "valem"],
        "`method` must be one of .*valen.*Did you mean",
    ),
    "a data set that is none": (
        ["data.name=digit"],
        "`data.name` must be one of .*Did you mean 'dig",
    ),
    "a setting that is none": (["settings.epsilon=1"], "Unknown key 'epsilon' in `settings`"),
    "a key that is none": (["training.epoch=3"], "Unknown key 'epoch'.*Did you mean 'epochs'"),
    "a number that is none": (["training.epochs=many"], "`epochs` must be an integer"),
    "epochs that are none": (["--epochs", "0"], "`epochs` must be an integer of at least 1"),
    "a file that is not there": (["--csv", "none.csv"], "none.csv"),
    "a network file that is not there": (
        ["data.clean_network=none.keras"],
        "There is no network file",
    ),
    "a config that is not there": (["none.yaml"], "There is no config file"),
    "quiet and verbose": (["--quiet", "--verbose"], "not allowed with"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered_before_tensorflow(mistake, tmp_path, monkeypatch, capsys):
    words, answer = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("valen_tf.cli.terminal.load_tensorflow", lambda **_: pytest.fail("loaded"))
    try:
        code = main(["train", *words])
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err
    assert code == 2 and re.search(answer, said), said
    assert said.count("\n") == 1
    assert not (tmp_path / "runs").exists() or not list(tmp_path.glob("runs/*/config.yaml"))


def test_a_command_that_is_none_is_told_the_one_that_was_meant(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["trian"])
    assert "did you mean 'train'?" in capsys.readouterr().err


def test_tensorflow_waits_for_names_numbers_and_files_and_a_word(run, tmp_path):
    folder, _ = run
    (tmp_path / "a.csv").write_text("x,candidates\n1,a\n2,b\n3,a|b\n4,a\n5,b\n6,a|b\n")
    good = ["train", "tune --csv a.csv", "compare --csv a.csv", "reproduce digits"]
    good += [
        f"evaluate {folder}",
        f"predict {folder}",
        f"export {folder} served",
        f"report {folder}",
    ]
    good += ["data corrupt digits --out a.npz", "data clean-network digits --out a.keras"]
    mistakes = {
        "train settings.x=1": "Unknown key 'x'",
        "tune --csv a.csv --trials 0": "`trials` must be",
        "tune --csv a.csv --space settings.x=1:2": "Unknown key 'x'",
        "compare --csv a.csv --methods valem": "Did you mean 'valen'",
        "compare --csv a.csv --repeats 0": "`repeats` must be",
        "reproduce table6": "`targets` must be",
        f"evaluate {folder} --csv b.csv": "no file b.csv",
        f"predict {folder} --csv b.csv": "no file b.csv",
        "data clean-network digit --out a.keras": "`name` must be",
    }
    script = """
def load(**_):
    raise ValueError("loading")

terminal.load_tensorflow = load
for words in sys.argv[1:]:
    assert main(words.split()) == 2 and "tensorflow" not in sys.modules, words"""
    done = python(script, tmp_path, *good, *mistakes)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert said[: len(good)] == ["valen-tf: loading"] * len(good) and len(said) == 19
    assert all(map(operator.contains, said[len(good) :], mistakes.values())), said


def python(script, cwd, *arguments):
    """What a process says in which `main` is the command line."""
    script = f"import os, signal, sys\nfrom valen_tf.cli import main, terminal\n{script}"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


# -- Ctrl-C and narrow terminals ----------------------------------------------------------------


@pytest.mark.parametrize("moment", ["loading TensorFlow", "epoch "])
def test_ctrl_c_ends_within_two_seconds_with_the_cursor_back(moment, tmp_path):
    terminal = Terminal("train", "--epochs", 5000, *QUICK, cwd=tmp_path)
    terminal.until(moment.encode())
    assert terminal.times[0] < 30
    code, seconds = terminal.press_ctrl_c()
    assert (
        code == 130 and terminal.lines[-1] == "valen-tf: interrupted; the same command continues."
    )
    assert seconds < 6  # two on a free core
    hidden, back = terminal.shown.rfind(CURSOR_HIDDEN), terminal.shown.rfind(CURSOR_SHOWN)
    assert back > hidden or hidden == -1
    assert "Traceback" not in terminal.shown.decode()


def test_ctrl_c_is_heard_where_a_library_makes_another_error_of_it(tmp_path):
    script = """
def swallowing(config):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt as error:
        raise ImportError("initialization failed") from error

signal.signal(signal.SIGINT, signal.default_int_handler)
from valen_tf.runs import beforehand
beforehand.check = swallowing
sys.argv[1:] = ["train"]
main()"""
    done = python(script, tmp_path)
    assert done.returncode == 130
    assert done.stderr == "\nvalen-tf: interrupted; the same command continues.\n"


@pytest.mark.parametrize("moment", ["valen_tf.cli.main", "argparse"])
def test_ctrl_c_at_the_very_first_shows_no_traceback(moment, tmp_path):
    script = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
import valen_tf.cli"""
    done = subprocess.run([sys.executable, "-c", script, moment], capture_output=True, text=True)
    assert done.returncode == 130 and done.stderr == ""


@pytest.mark.parametrize(("columns", "term"), [(40, "xterm"), (100, "dumb")])
def test_a_narrow_or_dumb_terminal_gets_plain_lines(columns, term, tmp_path):
    terminal = Terminal(
        "train",
        "--epochs",
        3,
        "--method",
        "plknn",
        *QUICK[:1],
        *QUICK[3:],
        cwd=tmp_path,
        columns=columns,
        term=term,
    )
    assert terminal.end() == 0
    assert CURSOR_HIDDEN not in terminal.shown
    shown = [line for line in terminal.lines if "accuracy on held-out" in line]
    assert shown and re.match(r"\d+\.\d\d %  accuracy on held-out", shown[0]), terminal.lines


# -- smaller habits -----------------------------------------------------------------------------


def test_log_lines_are_kept_away_and_errors_are_not(capfd):
    with without_log_lines():
        os.write(2, b"I0000 00:00:1795031935.393585   12479 port.cc:153] oneDNN\n")
        os.write(2, b"2026-11-18 19:50:43.123456: I tensorflow/core/util/port.cc:153] x\n")
        os.write(2, b"OSError: libcudart.so is broken\n")
    assert capfd.readouterr().err == "OSError: libcudart.so is broken\n"


def test_every_key_of_a_config_has_a_meaning(capsys, monkeypatch):
    assert set(keys.MEANINGS) == set(keys.defaults())
    assert main(["config", "--method", "proden"]) == 0
    text = capsys.readouterr().out
    assert all(key in text for key in keys.defaults())
    assert main(["config"]) == 0
    assert "settings.compatibility_weight" in capsys.readouterr().out
    assert main(["config", "--method", "none"]) == 2
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["config"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 40


@pytest.mark.parametrize("method", vt.methods.names())
def test_settings_read_off_the_source_are_those_of_the_class(method):
    import inspect

    expected = inspect.signature(vt.methods.find(method)).parameters
    own = set(expected) - {"classifier", "seed", "name"}
    found = vt.methods.settings_of(method)
    assert set(found) == own
    assert all(meaning for _, meaning in found.values())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_commands_options_and_keys(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("train", "--epochs", "training.epochs=", "bash"))


def test_bash_completes(tmp_path):
    made = subprocess.run([*COMMAND, "completion", "bash"], capture_output=True, text=True)
    (tmp_path / "completion").write_text(made.stdout)
    ask = "source completion; COMP_WORDS=(valen-tf train --ep); COMP_CWORD=2; _valen_tf; echo $COMPREPLY"
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "--epochs", done


def test_a_closed_pipe_is_no_error(tmp_path):
    shell = f"{sys.executable} -m valen_tf.cli config | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode in (0, 141) and not done.stderr


def test_a_run_that_diverged_does_not_block_its_folder(tmp_path, monkeypatch):
    from valen_tf.runs import running

    def diverges(*args, **kwargs):
        raise FloatingPointError("Training diverged")

    monkeypatch.setattr(running, "fit", diverges)
    config = vt.runs.read_config(None, QUICK)
    with pytest.raises(FloatingPointError):
        vt.runs.train(config, tmp_path / "run", report=lambda text: None)
    assert vt.runs.is_free(tmp_path / "run", vt.runs.read_config(None, ["seed=1"]))


def test_paths_of_a_config_become_absolute(monkeypatch, tmp_path):
    from valen_tf.runs.beforehand import located

    monkeypatch.chdir(tmp_path)
    config = located(vt.runs.read_config(None, ["data.csv=a.csv"]))
    assert config.data.csv == str(tmp_path / "a.csv")


def test_a_config_that_is_written_names_its_data_from_any_folder(monkeypatch, tmp_path):
    from valen_tf.runs.beforehand import write_config

    monkeypatch.chdir(tmp_path)
    for variable in ("VALEN_TF_DATA_DIR", "TFDS_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    places = {"lost": tmp_path, "mnist": pathlib.Path("~/tensorflow_datasets").expanduser()}
    for name, place in {**places, "digits": None}.items():
        write_config(tmp_path / "config.yaml", vt.runs.read_config(None, [f"data.name={name}"]))
        assert vt.runs.read_config("config.yaml").data.data_dir == (place and str(place))
    monkeypatch.setenv("VALEN_TF_DATA_DIR", "mine")
    write_config(tmp_path / "config.yaml", vt.runs.read_config(None, ["data.name=lost"]))
    assert vt.runs.read_config("config.yaml").data.data_dir == str(tmp_path / "mine")


def test_an_ignored_interrupt_stays_ignored(monkeypatch):
    from valen_tf.cli import terminal

    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_, **__: pytest.fail("installed"))
        terminal.end_after_interrupt(lambda: "")
    finally:
        signal.signal(signal.SIGINT, former)
