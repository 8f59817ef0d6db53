"""The best possible runs: answers from the truth itself, with times on the grid of clips."""

from __future__ import annotations

import numpy as np

from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import FloatArray, IntArray
from momentseek.moments.overlap import iou
from momentseek.simulation.relevance import Judge
from momentseek.simulation.settings import CLIP_SECONDS
from momentseek.simulation.story import Story

MOMENTS_PER_QUERY = 20


def snap_to_clips(start: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Move each moment to its nearest span of whole clips: of the edges beside its own, those of the greatest IoU.

    >>> first, last = snap_to_clips(np.array([1.0, 4.0]), np.array([6.2, 4.4]))
    >>> first.tolist(), last.tolist()
    ([1.5, 3.0], [6.0, 4.5])
    """
    low, high = np.floor(start / CLIP_SECONDS), np.floor(end / CLIP_SECONDS)
    choices = [(low + i, high + j) for i in (0, 1) for j in (0, 1)]
    firsts = np.stack([a for a, _ in choices]) * CLIP_SECONDS
    lasts = np.stack([b for _, b in choices]) * CLIP_SECONDS
    overlap = np.where(lasts > firsts, iou(firsts, lasts, start, end), -1)
    best = overlap.argmax(axis=0)
    every = np.arange(len(start))
    return firsts[best, every], lasts[best, every]


def oracle_run(truth: Judgements) -> Run:
    """A run of the judged moments of each query, the most relevant first."""
    start, end = snap_to_clips(truth.start, truth.end)
    order = np.lexsort((np.arange(len(start)), -truth.relevance.astype(np.int64), truth.row_query))
    videos = [truth.videos[c] for c in truth.video[order].tolist()]
    score = truth.relevance[order].astype(np.float64)
    return Run.from_groups(truth.query_ids, truth.counts.tolist(), videos, start[order], end[order], score)


def all_knowing_run(truth: Judgements, story: Story, judge: Judge, queries: IntArray, rng: np.random.Generator) -> Run:
    """A run of the moments of the whole corpus that truly are most relevant to each query, ties in random order.

    It does not know which of them the pool held, so that this is the most a model can hope for.
    """
    levels = judge.levels_of_all_moments(queries) + rng.random((len(queries), len(story.moments)))
    best = np.argsort(-levels, axis=1)[:, :MOMENTS_PER_QUERY]
    m, rows = story.moments, best.ravel()
    start, end = snap_to_clips(m.start[rows], m.end[rows])
    names = [story.videos[v].name for v in m.video[rows].tolist()]
    score = np.take_along_axis(levels, best, axis=1).ravel()
    return Run.from_groups(truth.query_ids, [best.shape[1]] * len(queries), names, start, end, score)
