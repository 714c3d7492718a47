"""Seconds to import the library and to print the command's help, beside those of importing TensorFlow.

    python benchmarks/start_up.py [--rounds 5] [--json FILE]

Each in a new process, in turns, medians over the rounds. `import valen_tf` is to take at most 1.3 times as
long as `import tensorflow`, `valen-tf --help` less than a second. What training needs is imported when
`Valen` is first used, which is timed as well.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

_COMMANDS = {
    "import tensorflow": ["-c", "import tensorflow"],
    "import valen_tf": ["-c", "import valen_tf"],
    "valen_tf.Valen": ["-c", "import valen_tf; valen_tf.Valen"],
    "valen-tf --help": ["-m", "valen_tf.cli", "--help"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    times = {name: [] for name in _COMMANDS}
    for round_number in range(options.rounds + 1):
        for name, arguments in _COMMANDS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            if round_number:  # the first fills the disk's cache
                times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, seconds in medians.items():
        ratio = seconds / medians["import tensorflow"]
        print(f"{name:20}{seconds:7.2f} s{ratio:7.2f} x import tensorflow")
    if options.json:
        options.json.write_text(json.dumps(medians, indent=1) + "\n")


if __name__ == "__main__":
    main()
