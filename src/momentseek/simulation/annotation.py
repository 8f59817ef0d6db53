"""Judging as TVR-Ranking's annotators do (section 3.2): pools by similarity, two opinions, consensus.

The top 20 by similarity are judged first; the queries whose last five of these are still the most relevant get a
second batch of 20 (47 % of them, the paper's share). Two annotators each see the true level, or one beside it; where
they differ by more than 1 two more are asked and the extremes set aside; where the middle two still differ by more
the pair is dropped. The mean is rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.moments.arrays import FloatArray, IntArray
from momentseek.simulation.relevance import Judge

BATCH_MOMENTS = 20
SECOND_BATCH_SHARE = 0.47
DECIDING_MOMENTS = 5
OFF_BY_ONE_PROBABILITY = 0.12
"""How often an annotator is one level too high, and as often one too low."""


@dataclass(frozen=True, eq=False)
class SimulatedJudgements:
    """The judged moments of some queries, query after query, the most similar first."""

    counts: IntArray
    moment: IntArray
    similarity: FloatArray
    relevance: IntArray


def annotate(
    judge: Judge, queries: IntArray, near: IntArray, similarity: FloatArray, rng: np.random.Generator
) -> SimulatedJudgements:
    """Judge ``near``, the 40 nearest moments of each query; ``queries`` are the moments whose captions were asked."""
    truth = judge(queries[:, None], near)
    first = near[:, :BATCH_MOMENTS].shape[1]
    still = truth[:, max(0, first - DECIDING_MOMENTS) : first].sum(axis=1) + rng.random(len(queries))
    again = np.argsort(-still, kind="stable")[: round(SECOND_BATCH_SHARE * len(queries))]
    asked = np.zeros(truth.shape, dtype=bool)
    asked[:, :first] = True
    asked[again] = True
    level = draw_consensus(truth.astype(np.int64), rng)
    kept = asked & (level >= 0)
    return SimulatedJudgements(kept.sum(axis=1), near[kept], similarity[kept], level[kept])


def draw_consensus(truth: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw the levels on which simulated annotators agree; -1 where they do not.

    >>> levels = draw_consensus(np.full(5000, 2), np.random.default_rng(0))
    >>> (np.bincount(levels + 1, minlength=6) / 5000).round(2).tolist()
    [0.0, 0.0, 0.01, 0.78, 0.2, 0.0]
    """
    noise = rng.random((4, *truth.shape))
    opinions = np.clip(
        truth + (noise < OFF_BY_ONE_PROBABILITY) - (noise > 1 - OFF_BY_ONE_PROBABILITY).astype(np.int64), 0, 4
    )
    two, four = np.sort(opinions[:2], axis=0), np.sort(opinions, axis=0)
    agree = two[1] - two[0] <= 1
    low, high = np.where(agree, two[0], four[1]), np.where(agree, two[1], four[2])
    result: IntArray = np.where(high - low <= 1, (low + high + 1) // 2, -1).astype(np.int64)
    return result
