"""`merge`: the best clips, joined if they are consecutive.

This is how segment-based retrieval (SPR) builds spans: take the top segments, merge consecutive ones of a video, and
rank a merged span by its best member. It needs no threshold on a cosine, only a rank. Top clips are best determined
over the whole library, so a curve with a background uses that.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from momentseek.core.moments.arrays import runs_of_true
from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals

TOP_SHARE = 0.1
"""Share of a video's clips that count as top clips if no background is known."""
TOP_QUANTILE = 0.99
"""Share of the library's clips that a top clip must score above."""


@LOCALISERS.register("merge")
def merge(
    curve: Curve, gap: int = 1, alpha: float = 0.25, rule: Literal["const", "adaptive"] = "adaptive"
) -> Proposals:
    """Propose runs of top clips, merged from left to right over small gaps.

    A gap may have up to ``gap`` clips (``const``), or max(``gap``, ``alpha`` · (length left + length right)) clips
    (``adaptive``).

    >>> spans = merge(Curve.regular([0.1, 0.5, 0.1, 0.6, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], seconds=2))
    >>> spans.start.tolist(), spans.end.tolist(), spans.score.round(2).tolist()
    ([2.0], [8.0], [0.6])
    """
    scores = curve.scores
    top = np.sort(scores)[-max(2, round(TOP_SHARE * len(scores))) :][0]
    if curve.background is not None:
        # the best clip always counts, because something must be shown of a video that was found
        top = min(max(top, curve.background.quantile(TOP_QUANTILE)), scores.max())
    first, last = runs_of_true(scores >= top)
    joined: list[list[int]] = []
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        if joined:
            start, end = joined[-1]
            reach = max(gap, alpha * (end - start + b - a)) if rule == "adaptive" else gap
            if a - end <= reach:
                joined[-1][1] = b
                continue
        joined.append([a, b])
    first, last = np.asarray(joined, dtype=np.intp).T
    return Proposals.of_clips(curve, first, last, [scores[a:b].max() for a, b in joined])
