"""How a command lives in a terminal: a sign of life at once, TensorFlow without its log, Ctrl-C."""

import contextlib
import os
import re
import signal
import sys
import threading
import time
import warnings

interrupted = (
    threading.Event()
)  # whether Ctrl-C was pressed; a library may make another error of it
_GRACE = 1.5  # seconds after Ctrl-C, within which Python may end by itself
# Lines that TensorFlow's C++ and the libraries below it write: glog's, absl's, and the older form.
_LOG_LINE = re.compile(
    rb"[IWE]\d{4} |[IWE]\d{4} \d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] |"
    rb"WARNING: All log messages before absl|To enable the following instructions"
)


def say(text):
    """A line on standard error, where no result stands."""
    print(text, file=sys.stderr, flush=True)


def load_tensorflow(*, quiet=False, verbose=False):
    """Imports TensorFlow with a word before, because that takes seconds, and without its own log lines.

    What is no log line, an error above all, is written after all. The rest is seen under `verbose`.

    Args:
        quiet: Whether to say nothing.
        verbose: Whether to show the log.
    """
    if "tensorflow" in sys.modules:
        return
    if not quiet:
        say("valen-tf: loading TensorFlow ...")
    with contextlib.nullcontext() if verbose else without_log_lines():
        import tensorflow as tf

        tf.config.list_logical_devices()  # which looks for devices, and logs what it does not find


@contextlib.contextmanager
def without_log_lines():
    """Keeps log lines from standard error, those that C++ writes past Python too."""
    import tempfile

    sys.stderr.flush()
    shown = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(shown, 2)
            os.close(shown)
            kept.seek(0)
            rest = [line for line in kept if line.strip() and not _LOG_LINE.match(line)]
            if rest:
                os.write(2, b"".join(rest))


def show_warnings(program="valen-tf"):
    """Shows warnings of Python as one line, without the place in a file."""

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, (UserWarning, FutureWarning)):
            say(f"{program}: warning: {' '.join(str(message).split())}")

    warnings.showwarning = show


def end_after_interrupt(words):
    """Makes a first Ctrl-C end the process within two seconds, whatever is running.

    Python hears of it only between two of its own steps, of which an epoch in TensorFlow is one, and some
    libraries swallow it. What is written to disk is written whole or not at all.

    Args:
        words: Function that gives the last line.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        return

    def pressed(number, frame):
        interrupted.set()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, pressed)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def wait():
        while True:
            received = os.read(reading, 1)
            if received and received[0] == signal.SIGINT:
                break
        time.sleep(_GRACE)
        restore()
        os.write(2, f"\n{words()}\n".encode())
        os._exit(130)

    threading.Thread(target=wait, daemon=True, name="interrupt").start()


def restore():
    """Shows the cursor again, which a progress bar hides."""
    for stream in (sys.stderr, sys.stdout):
        if stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
            with contextlib.suppress(OSError):
                os.write(stream.fileno(), b"\x1b[?25h")
            return
