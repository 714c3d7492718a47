"""VALEN: as it comes (`Valen`), and with the choices that the paper prints (`ValenPaper`)."""

from valen_tf.valen.default import Valen
from valen_tf.valen.published import ValenPaper

__all__ = ["Valen", "ValenPaper"]
