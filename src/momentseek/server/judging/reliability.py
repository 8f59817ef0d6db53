"""Whether levels keep their promise on a judged library: how many of its strong, fair and weak hits are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.evaluation.reliability import RIGHT_RELEVANCE, ReliabilityBin, bins_by_level
from momentseek.moments.overlap import iou
from momentseek.search.confidence import LEVELS
from momentseek.server.judging.evaluation import HitsWithHashes, JudgedTruth

HITS_PER_QUERY = 10
"""Hits of each query that are looked at."""
SAME_MOMENT_IOU = 0.5
"""Overlap from which a hit is the moment that was judged."""


@dataclass(frozen=True)
class JudgedLevels:
    """How many hits of each level are right, the least sure level first."""

    first: list[ReliabilityBin]
    """Of the first hit of each query."""
    every: list[ReliabilityBin]
    """Of all hits."""
    unjudged: int
    """Hits on moments that nobody has judged; they do not count."""


def judged_levels(truth: JudgedTruth, answers: HitsWithHashes) -> JudgedLevels:
    """Judge the hits on every query by the moments that people have judged; right is what has relevance 3 or 4."""
    judgements = truth.judgements
    codes = {name: code for code, name in enumerate(judgements.videos)}
    first: list[tuple[str, bool]] = []
    every: list[tuple[str, bool]] = []
    unjudged = 0
    for at, hits in enumerate(answers):
        rows = slice(int(judgements.offsets[at]), int(judgements.offsets[at + 1]))
        videos, relevance = judgements.video[rows], judgements.relevance[rows]
        for rank, (hit, hash) in enumerate(hits):
            same = videos == codes.get(truth.labels.get(hash, ""), -1)
            overlaps = np.where(same, iou(hit.start, hit.end, judgements.start[rows], judgements.end[rows]), 0.0)
            best = int(np.argmax(overlaps))
            if overlaps[best] < SAME_MOMENT_IOU:
                unjudged += 1
                continue
            told = (hit.level, bool(relevance[best] >= RIGHT_RELEVANCE))
            every.append(told)
            if rank == 0:
                first.append(told)
    return JudgedLevels(bins_by_level(first, LEVELS), bins_by_level(every, LEVELS), unjudged)
