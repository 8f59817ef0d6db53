"""The greedy matching of TVR-Ranking §4, for all queries at once.

Predictions are taken in rank order; each takes the remaining judged moment it overlaps most, if that passes
the threshold. Taken literally that is a loop over every prediction. Seen from the other side it is a stable
matching in which all moments prefer better ranks, so deferred acceptance gives the same result in a few
rounds of array operations: everybody proposes to their best moment, each moment keeps the best-ranked
proposer, the others go on to their next.
"""

from __future__ import annotations

import numpy as np

from momentseek.measures.alignment import Alignment, Overlap, passes
from momentseek.moments.arrays import IntArray


def match(view: Alignment, threshold: float, *, strict: bool, absorb: bool, overlap: Overlap = "union") -> IntArray:
    """The judged moment each prediction gets (a row of the truth), or −1.

    ``absorb``: moments of relevance 0 take part, and a prediction that overlaps one of them most is spent on it.
    """
    key = ("match", threshold, strict, absorb, overlap)
    return view.once(key, lambda: _match(view, threshold, strict, absorb, overlap))


def _match(view: Alignment, threshold: float, strict: bool, absorb: bool, overlap: Overlap) -> IntArray:
    pairs = view.pairs(overlap)
    good = passes(pairs.iou, threshold, strict)
    if not absorb:
        good &= view.truth.relevance[pairs.judged] > 0
    row, judged, score = pairs.row[good], pairs.judged[good], pairs.iou[good]
    order = np.lexsort((-score, row))  # stable: equal overlaps stay in order of relevance
    row, judged = row[order], judged[order]
    return greedy(row, judged, len(view.query), len(view.truth.video))


def greedy(row: IntArray, judged: IntArray, rows: int, moments: int) -> IntArray:
    """Assign to each row, in row order, the first of its listed moments that no earlier row has taken.

    ``row`` ascends; ``judged`` lists each row's moments in order of preference.

    >>> greedy(np.array([0, 0, 1, 1, 2]), np.array([2, 0, 2, 0, 0]), 3, 4).tolist()
    [2, 0, -1]
    """
    nobody = rows
    last = np.append(row[1:] != row[:-1], True)[: len(row)]
    choice = np.full(rows, -1, dtype=np.int64)  # the pair each row currently proposes
    first = np.append(True, row[1:] != row[:-1])[: len(row)]
    choice[row[first]] = np.flatnonzero(first)
    holder = np.full(moments, nobody, dtype=np.int64)
    asking = row[first]
    while len(asking):
        wanted = judged[choice[asking]]
        former = holder[wanted]
        np.minimum.at(holder, wanted, asking)
        # Rejected: those asking who did not get it, and former holders who lost it.
        lost = asking[holder[wanted] != asking]
        evicted = np.unique(former[(former != nobody) & (holder[wanted] != former)])
        rejected = np.concatenate([lost, evicted])
        more = ~last[choice[rejected]]
        choice[rejected[~more]] = -1
        asking = rejected[more]
        choice[asking] += 1
    taken = np.full(rows, -1, dtype=np.int64)
    held = np.flatnonzero(choice >= 0)
    taken[held] = judged[choice[held]]
    return taken
