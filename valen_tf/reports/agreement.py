"""How far annotators agree: Krippendorff's alpha of their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from valen_tf.data.answers import Answers


def krippendorff_alpha(answers: Answers) -> float:
    """Krippendorff's alpha of nominal answers: 1 where all agree, 0 where they agree as often as by chance.

    With w_u(c) the votes for class c on example u and n_u their sum, an example's pairs of answers disagree

        D_u = (n_u^2 - sum_c w_u(c)^2) / (n_u - 1),

    alpha is 1 - (n - 1) sum_u D_u / (n^2 - sum_c n_c^2), over examples with at least two votes. An answer
    of several labels is divided among them; labels that were ruled out do not count.

    Args:
        answers: `valen_tf.data.answers.Answers`.

    Returns:
        A number of at most 1; NaN where no two answers are on one example, or all answers are the same.

    Example:
        >>> from valen_tf.data.answers import Answers
        >>> said = Answers([0, 0, 1, 1, 2, 2], [0, 1] * 3, [0, 0, 1, 1, 0, 1], 3, 2)
        >>> round(krippendorff_alpha(said), 3)
        0.444

    Reference:
        Klaus Krippendorff. Content Analysis: An Introduction to Its Methodology. 2004, Chapter 11.
    """
    votes = answers.votes
    sizes = votes.sum(axis=1)
    several = sizes > 1 + 1e-9
    votes, sizes = votes[several], sizes[several]
    total, classes = sizes.sum(), votes.sum(axis=0)
    expected = total**2 - np.square(classes).sum()
    if not len(votes) or expected <= 0:
        return float("nan")
    observed = ((sizes**2 - np.square(votes).sum(axis=1)) / (sizes - 1)).sum()
    return float(1 - (total - 1) * observed / expected)


def words(alpha: float) -> str:
    """What a value of alpha means, in a sentence."""
    if np.isnan(alpha):
        return "No two answers are on the same example, so that agreement cannot be told."
    level = (
        "which is good agreement (0.8 and more is relied upon)"
        if alpha >= 0.8
        else "which allows tentative conclusions (0.8 and more is relied upon)"
        if alpha >= 0.667
        else "which is little agreement: 0.667 and more would allow tentative conclusions"
    )
    return f"Krippendorff's alpha is {alpha:.2f}, {level}."
