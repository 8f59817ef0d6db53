"""What a pseudo training set holds, in the terms of TVR-Ranking's Table 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from momentseek.construct.decisions import tally
from momentseek.construct.pseudo_training.collection import hours
from momentseek.construct.pseudo_training.lists import PseudoTraining


def summary(training: PseudoTraining, lengths: Sequence[int]) -> dict[str, Any]:
    """Counts, and for each N the distinct moments and videos, their hours, and the similarity at the last rank."""
    return {
        "queries": len(training.query_ids),
        "moments_to_choose_from": training.collection.size,
        "own_moment_first": _own_first(training),
        "decisions": tally(training.decisions),
        "lists": {str(n): _list(training, n) for n in lengths},
    }


def _list(training: PseudoTraining, n: int) -> dict[str, Any]:
    used = np.unique(training.moments[:, :n]).tolist()
    last = training.similarity[:, :n][:, -1]
    return {
        "pairs": int(training.moments[:, :n].size),
        "moments": len(np.unique(training.collection.moment[used])),
        "videos": len({training.collection.moments[p].video for p in used}),
        "hours": round(hours(training.collection, used), 2),
        "similarity": round(float(training.similarity[:, :n].mean(dtype=np.float64)), 4),
        "last_similarity": round(float(last.mean(dtype=np.float64)), 4),
    }


def _own_first(training: PseudoTraining) -> float:
    own, moment = training.collection.own, training.collection.moment
    first = sum(
        bool((moment[list(own[query])] == moment[place]).any())
        for query, place in zip(training.query_ids, training.moments[:, 0].tolist(), strict=True)
    )
    return round(first / len(training.query_ids), 4)
