"""Files that are written whole or not at all."""

import json
import os


def write(path, writer):
    """Writes a file whole or not at all.

    Args:
        path: The file.
        writer: Called with another path in the same folder, where it writes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        writer(scratch)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def write_json(path, value):
    """Writes a value as JSON."""
    write(path, lambda scratch: scratch.write_text(json.dumps(value, indent=1) + "\n"))
