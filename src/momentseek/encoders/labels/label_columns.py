"""An image's most probable labels, kept in columns of its vector that no query looks at.

A search asks one question of all vectors, how near they are to the query, and another of the few it shows: does the
image surely show a thing that the query names? For that the probabilities of labels are needed, which a mixture of
label vectors does not give back. So a row is

    √(1 - B²) v,  (c₁ + 1) / 2¹⁵, …, (cₖ + 1) / 2¹⁵,  p₁ / 2⁴, …, pₖ / 2⁴,  f

with ``v`` the mixture (length 1), ``c`` the numbers of the k most probable labels, ``p`` their probabilities, and ``f``
such that all that is added has length B. Rows have length 1, dot products with queries (0 in these columns) are those
of ``v`` times a constant, and numbers of labels survive the rounding to float16 exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from momentseek.encoders.protocol import Vectors

KEPT_LABELS = 16
"""Number of labels that are kept of an image: k."""
COLUMNS = 2 * KEPT_LABELS + 1
ADDED_LENGTH = 0.15
"""Length of what is added to a row: B."""
NUMBER_STEP, CHANCE_STEP = 2.0**-15, 2.0**-4


def add_label_columns(vectors: Vectors, chances: Vectors) -> Vectors:
    """Rows of length 1 from the mixtures of some images and the probabilities of all labels."""
    best = np.argsort(-chances, axis=1, kind="stable")[:, :KEPT_LABELS]
    numbers = (best + 1) * NUMBER_STEP
    kept = np.take_along_axis(chances, best, axis=1) * CHANCE_STEP
    filler = np.sqrt(ADDED_LENGTH**2 - (numbers**2).sum(axis=1) - (kept**2).sum(axis=1))
    parts = (np.sqrt(1 - ADDED_LENGTH**2) * vectors, numbers, kept, filler[:, None])
    return np.concatenate(parts, axis=1).astype(np.float32)


def read_label_columns(rows: Vectors) -> tuple[NDArray[np.int64], Vectors]:
    """The numbers of the labels that rows keep, most probable first, and their probabilities.

    >>> chances = np.zeros((1, 1000), np.float32)
    >>> chances[0, [281, 999]] = 0.75, 0.25
    >>> row = add_label_columns(np.array([[0.6, 0.8]], np.float32), chances)
    >>> numbers, kept = read_label_columns(row.astype(np.float16).astype(np.float32))
    >>> numbers[0, :2].tolist(), kept[0, :2].tolist(), round(float(np.linalg.norm(row)), 6)
    ([281, 999], [0.75, 0.25], 1.0)
    """
    columns = rows[:, -COLUMNS:]
    numbers = np.rint(columns[:, :KEPT_LABELS] / NUMBER_STEP).astype(np.int64) - 1
    return numbers, np.maximum(columns[:, KEPT_LABELS : 2 * KEPT_LABELS] / np.float32(CHANCE_STEP), 0)
