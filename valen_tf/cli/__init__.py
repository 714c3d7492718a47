"""The command line."""

try:
    from valen_tf.cli.main import main
except KeyboardInterrupt:  # Ctrl-C before there is anything to end, and no traceback
    raise SystemExit(130) from None

__all__ = ["main"]
