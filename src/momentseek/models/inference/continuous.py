"""Second stage of models that predict times: the moments of each of a query's videos, in seconds and inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.features.clips import edges
from momentseek.models.inference.encode import StageCallback, TimedClipFeatures
from momentseek.models.inference.first_stage import MAX_TENSOR_NUMBERS
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.inference.second_stage import score_pairs, sorted_pairs
from momentseek.models.model import CorpusModel, ModelConfig
from momentseek.moments.arrays import FloatArray, IntArray


class CoveredTimes:
    """The seconds that the clips of each video cover, which shares of a video are of, and where the video ends."""

    def __init__(
        self, data: TimedClipFeatures, names: Sequence[str], config: ModelConfig, durations: Mapping[str, float]
    ) -> None:
        known = [durations.get(name, float("nan")) for name in names]
        at = [
            edges(data.rows(name), config.max_clips, config.fit, data.clip_seconds, seconds)[-1]
            for name, seconds in zip(names, known, strict=True)
        ]
        self.covered: FloatArray = np.array(at, dtype=np.float64)
        self.end: FloatArray = np.fmin(self.covered, known)


@dataclass(frozen=True, eq=False)
class TimedMoments:
    """Moments in seconds with their scores, each ``(queries, videos, k)``; minus infinity where there is none."""

    start: FloatArray
    end: FloatArray
    score: NDArray[np.float32]

    def times(
        self, query: IntArray, column: IntArray, place: IntArray, video: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Starts and ends of the entries at ``[query, column, place]``."""
        return self.start[query, column, place], self.end[query, column, place]


def moments_of_pairs(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    places: IntArray,
    videos: IntArray,
    covered: CoveredTimes,
    *,
    cells: int = MAX_TENSOR_NUMBERS,
    progress: StageCallback | None = None,
) -> TimedMoments:
    """All moments that a model predicts for every (query, video), in seconds.

    ``places`` are those of queries, and ``videos`` ``(queries, n)`` those of videos, -1 for none. Times are cut to the
    video, and moments of which nothing is left are none.
    """
    row, column, video = sorted_pairs(videos)
    parts = []
    for part, found in score_pairs(model, model.moments, queries, corpus, places[row], video, cells):
        start, end, score = (x.float().cpu().numpy() for x in found)
        there = score > -np.inf
        if np.isnan(score).any() or not np.isfinite(start[there]).all() or not np.isfinite(end[there]).all():
            raise MomentseekError("the model's moments are no numbers; its training has diverged")
        parts.append((part, *moments_in_seconds(start, end, score, video[part], covered)))
        if progress is not None:
            progress("spans", sum(len(p[0]) for p in parts), len(video))
    width = max((start.shape[1] for _, start, _, _ in parts), default=1)
    shape = (*videos.shape, width)
    result = TimedMoments(np.zeros(shape), np.zeros(shape), np.full(shape, -np.inf, np.float32))
    for part, start, end, score in parts:
        here = row[part], column[part], slice(0, start.shape[1])
        result.start[here], result.end[here], result.score[here] = start, end, score
    return result


def moments_in_seconds(
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    score: NDArray[np.float32],
    video: IntArray,
    covered: CoveredTimes,
) -> tuple[FloatArray, FloatArray, NDArray[np.float32]]:
    """Shares of videos as seconds inside them; a score of minus infinity where nothing is left of a moment."""
    whole, last = covered.covered[video][:, None], covered.end[video][:, None]
    there = score > -np.inf
    first, final = (np.clip(np.where(there, x, 0).astype(np.float64) * whole, 0, last) for x in (start, end))
    return first, final, np.where(there & (final > first), score, np.float32(-np.inf))
