"""The label report: what was recovered of every label, how surely, and which labels to look at first."""

from valen_tf.reports.agreement import krippendorff_alpha
from valen_tf.reports.asking import next_to_label
from valen_tf.reports.frame import label_frame, posterior_uncertainty, write_frame
from valen_tf.reports.page import report
from valen_tf.reports.uncertainty import Calibration, calibrate

__all__ = [
    "Calibration",
    "calibrate",
    "krippendorff_alpha",
    "label_frame",
    "next_to_label",
    "posterior_uncertainty",
    "report",
    "write_frame",
]
