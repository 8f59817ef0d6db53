"""Whether a worker judges higher or lower than the others, and whether that changes during their work.

A worker's deviation is the mean of (their level − the mean of the two levels that count) over the kept pairs they
judged. The reference is the consensus before rounding: rounded up, it would make everybody look strict. Their own label
may be one of the two, so the figure is smaller than their distance to the others, but its sign is right. The sequence
of their pairs, in the order of the file, is cut into ten equal parts to show a drift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.construct.annotation.consensus import Consensus
from momentseek.moments.arrays import FloatArray, stable_order

DRIFT_PARTS = 10


@dataclass(frozen=True, slots=True)
class Drift:
    """How many labels a worker gave, their mean deviation, and the deviation in each tenth of their work."""

    worker: str
    labels: int
    compared: int
    deviation: float
    tenths: tuple[float, ...]


def measure_drift(found: Consensus) -> list[Drift]:
    """Measure the drift of every worker, most labels first; NaN for those who judged no pair that was kept.

    >>> from momentseek.construct.annotation.consensus import find_consensus
    >>> from momentseek.construct.annotation.labels import group_labels
    >>> rows = [(p, w, r) for p in range(20) for w, r in (("kind", 3), ("strict", 2))]
    >>> [(d.worker, d.deviation, d.tenths[0]) for d in measure_drift(find_consensus(group_labels(rows)))]
    [('kind', 0.5, 0.5), ('strict', -0.5, -0.5)]
    """
    labels = found.labels
    middle = (found.low + found.high) / 2
    deviation = labels.relevance - middle[labels.pair]
    counted = found.kept[labels.pair]
    in_order = stable_order(labels.place)
    by_worker = in_order[stable_order(labels.worker[in_order])]
    bounds = np.searchsorted(labels.worker[by_worker], np.arange(len(labels.workers) + 1))
    result = []
    for w, name in enumerate(labels.workers):
        rows = by_worker[bounds[w] : bounds[w + 1]]
        used = rows[counted[rows]]
        parts = np.array_split(deviation[used], DRIFT_PARTS)
        result.append(Drift(name, len(rows), len(used), _mean(deviation[used]), tuple(map(_mean, parts))))
    return sorted(result, key=lambda d: -d.labels)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")
