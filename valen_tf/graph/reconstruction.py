"""Examples made up of their neighbors: non-negative least squares, weights in sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

if TYPE_CHECKING:
    pass

BLOCK = 1000  # examples whose neighbors' features are in memory at once


def nonnegative_least_squares(matrices: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Minimizes |matrix w - target| over w >= 0 for every problem of a stack.

    The active-set method of Lawson and Hanson, each step of which is one array operation over all
    problems that are not solved yet: a variable that would lower the error enters, the least squares
    problem of the variables inside is solved, and those that turn negative leave. Everything runs on the
    triangular factors, so precision is that of the matrices and not of their squares. Where the solution
    is not unique (more variables than rows, equal columns) it is one with independent columns.

    Args:
        matrices: [problems, rows, variables].
        targets: [problems, rows].

    Returns:
        `float64` array [problems, variables].

    Example:
        >>> nonnegative_least_squares([[[1.0, 0.0], [0.0, 1.0]]], [[2.0, -1.0]])
        array([[2., 0.]])

    Reference:
        Charles Lawson, Richard Hanson. Solving Least Squares Problems. 1974, Chapter 23.
    """
    matrices, targets = np.asarray(matrices, np.float64), np.asarray(targets, np.float64)
    num_problems, _, num_variables = matrices.shape
    factors = np.linalg.qr(np.concatenate([matrices, targets[:, :, None]], axis=2), mode="r")
    lengths = np.linalg.norm(factors, axis=1)  # [problems, variables + 1]
    threshold = 1e-12 * lengths[:, :-1] * lengths[:, -1:]  # rounding of the gradient

    weights = np.zeros((num_problems, num_variables))
    inside = np.zeros(weights.shape, bool)
    refused = np.zeros(weights.shape, bool)  # entered and had to leave at once, by rounding
    index = np.arange(num_problems)  # the problems not solved yet
    growing = np.ones(
        num_problems, bool
    )  # those whose weights solve the problem of the variables inside
    for _ in range(10 * num_variables):
        residual = factors[:, :, -1] - np.einsum("prv,pv->pr", factors[:, :, :-1], weights[index])
        gradient = np.einsum("prv,pr->pv", factors[:, :, :-1], residual)
        gain = np.where(inside | refused | (gradient <= threshold), -np.inf, gradient)
        entering = gain.argmax(axis=1)
        rows = np.arange(len(index))
        open_ = ~growing | (gain[rows, entering] > -np.inf)
        index, factors, threshold, inside, refused, growing, entering, lengths = (
            array[open_]
            for array in (index, factors, threshold, inside, refused, growing, entering, lengths)
        )
        if not len(index):
            break
        entered = growing
        rows = np.flatnonzero(entered)
        inside[rows, entering[rows]] = True

        old = weights[index]
        solution = _least_squares(factors, inside, lengths)
        falling = inside & (solution <= 0)
        growing = ~falling.any(axis=1)
        # The farthest step towards the solution at which nothing is negative yet; 1 where nothing falls.
        ratio = np.divide(old, old - solution, out=np.ones_like(old), where=falling)
        ratio[falling & (old <= 0)] = 0
        step = ratio.min(axis=1, keepdims=True)
        leaving = falling & (ratio <= step)
        inside &= ~leaving
        refused = np.where(entered[:, None] & (step > 0), False, refused | (leaving & (step == 0)))
        weights[index] = np.where(inside, old + step * (solution - old), 0)
    return weights


def _least_squares(factors, inside, lengths):
    """Solutions [problems, variables] of the problems of the variables inside, 0 for the others."""
    num_variables = inside.shape[1]
    # An own row per variable: it fixes those outside at 0; inside it is too small to matter and keeps
    # the triangle regular.
    own = np.where(inside, 1e-14 * lengths[:, :-1] + np.finfo(np.float64).tiny, 1)
    rows = np.zeros((len(inside), num_variables, num_variables + 1))
    rows[:, np.arange(num_variables), np.arange(num_variables)] = own
    masked = np.concatenate([factors[:, :, :-1] * inside[:, None], factors[:, :, -1:]], axis=2)
    triangle = np.linalg.qr(np.concatenate([masked, rows], axis=1), mode="r")
    triangle = triangle[:, :num_variables]
    solution = np.linalg.solve(triangle[:, :, :-1], triangle[:, :, -1:])[:, :, 0]
    return np.where(inside, solution, 0)


def restrict(confidence: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Confidence on the candidates alone, rows of sum 1; uniform where none is left."""
    inside = confidence * candidates
    total = inside.sum(axis=1, keepdims=True)
    inside = np.where(total > 0, inside, candidates)
    return inside / inside.sum(axis=1, keepdims=True)


def blocks(num_examples: int) -> list[slice]:
    """Slices that cover all examples."""
    return [slice(start, start + BLOCK) for start in range(0, num_examples, BLOCK)]


def sparse_rows(
    values: np.ndarray, columns: np.ndarray, num_columns: int
) -> scipy.sparse.csr_array:
    """Sparse [rows, num_columns] of k values per row."""
    row_ends = np.arange(0, columns.size + 1, columns.shape[1])
    shape = len(columns), num_columns
    return scipy.sparse.csr_array((values.ravel(), columns.ravel(), row_ends), shape=shape)
