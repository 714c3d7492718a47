"""The embedded data set: 1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from valen_tf.data.dataset import PartialLabelDataset


def load_digits() -> PartialLabelDataset:
    """The digits with their true labels as candidate sets of size one.

    Reference:
        E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits, UCI, 1998.
    """
    import sklearn.datasets

    digits = sklearn.datasets.load_digits()
    return PartialLabelDataset(
        digits.data.astype(np.float32),
        np.eye(10, dtype=np.uint8)[digits.target],
        labels=digits.target,
        class_names=[str(name) for name in digits.target_names],
    )
