"""Labels to break results down by: the truth's own fields, and how long the moments are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.measures.lengths import LENGTH_BOUNDS_SECONDS
from momentseek.moments import MAX_RELEVANCE, CaptionTable, Judgements
from momentseek.moments.arrays import stable_order


def labels_of(truth: Judgements | CaptionTable, field: str) -> NDArray[np.str_]:
    """Each query's label: a field such as TVR's ``type``, or ``length``, that of its first most relevant moment.

    >>> truth = Judgements.from_rows([("a", "v", 0, 10, 1), ("b", "v", 0, 50, 4), ("b", "v", 0, 5, 2)])
    >>> labels_of(truth, "length").tolist()
    ['short', 'long']
    """
    if field in truth.fields:
        return np.array(truth.fields[field])
    if field == "length":
        return _lengths(truth)
    known = ", ".join([*truth.fields, "length"])
    raise MomentseekError(f"{truth.source}: {truth.ASKED[1]} have no {field!r} to group by, only {known}")


def _lengths(truth: Judgements | CaptionTable) -> NDArray[np.str_]:
    relevance = truth.relevance if isinstance(truth, Judgements) else np.ones(len(truth.start), dtype=np.int64)
    order = stable_order(truth.row_query * (MAX_RELEVANCE + 1) + (MAX_RELEVANCE - relevance))
    some = truth.counts > 0
    seconds = (truth.end - truth.start)[order[truth.offsets[:-1][some]]]
    names = np.array([*LENGTH_BOUNDS_SECONDS, "none"])
    limits = [high for _, high in LENGTH_BOUNDS_SECONDS.values()][:-1]
    number = np.full(len(truth), len(LENGTH_BOUNDS_SECONDS))
    number[some] = np.searchsorted(limits, seconds)
    labels: NDArray[np.str_] = names[number]
    return labels
