"""The command line."""

from valen_tf.cli.main import main

__all__ = ["main"]
