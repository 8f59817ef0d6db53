"""What every baseline starts from and ends with: the videos a query is searched in, and a ranking over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class QueryVideos:
    """Pairs of a query and a video to look in, by query; a grounding dataset has one video per query."""

    query: IntArray
    video: IntArray
    seconds: FloatArray

    def __len__(self) -> int:
        return len(self.query)


def query_videos(test: Judgements) -> QueryVideos:
    """The videos of each query: its pool where the truth has pools (MVMR), otherwise those of its moments.

    >>> test = Judgements.from_groups("q", [3], ["a", "b", "a"], [0] * 3, [1] * 3, durations={"a": 9, "b": 7})
    >>> where = query_videos(test)
    >>> where.video.tolist(), where.seconds.tolist()
    ([0, 1], [9.0, 7.0])
    """
    if test.pools is not None:
        query, video = np.repeat(np.arange(len(test)), np.diff(test.pools.offsets)), test.pools.video
    else:
        query, video = test.row_query, test.video
    pairs = query * len(test.videos) + video
    _, first = np.unique(pairs, return_index=True)
    first = np.sort(first)
    query, video = query[first], video[first].astype(np.int64)
    return QueryVideos(query, video, seconds_of(test, video))


def seconds_of(table: Judgements, video: IntArray) -> FloatArray:
    """How long the videos with these codes are, or a refusal where one's length is unknown."""
    seconds = table.durations[video]
    wrong = np.flatnonzero(~(np.isfinite(seconds) & (seconds > 0)))
    if len(wrong):
        raise MomentseekError(
            f"{table.source}: the duration of video {table.videos[video[wrong[0]]]} is unknown; "
            "give a list of videos with durations (`videos`)"
        )
    return seconds


def training_locations(train: Judgements) -> FloatArray:
    """``(start, end)`` of the relevant training moments as shares of their videos, within [0, 1].

    >>> training_locations(Judgements.from_groups(["q"], [1], ["a"], [2], [9], durations={"a": 8.0})).tolist()
    [[0.25, 1.0]]
    """
    rows = np.flatnonzero(train.relevance > 0)
    seconds = seconds_of(train, train.video[rows].astype(np.int64))
    shares = np.clip(np.column_stack([train.start[rows], train.end[rows]]) / seconds[:, None], 0, 1)
    shares = shares[shares[:, 0] < shares[:, 1]]
    if not len(shares):
        raise MomentseekError(f"{train.source}: there is no moment to learn from; give another training set (`train`)")
    return shares


def rank_candidates(
    test: Judgements, where: QueryVideos, start: FloatArray, end: FloatArray, score: FloatArray, top: int
) -> Run:
    """A run from candidates per place, ``(places, candidates)`` as shares of the video: each query's ``top`` by score.

    Equal scores keep their order, so that a place's first candidate comes first.
    """
    if top < 1:
        raise MomentseekError(f"too few predictions per query ({top}); ask for at least one (`top`)")
    width = start.shape[1]
    query = np.repeat(where.query, width)
    order = np.lexsort((-score.ravel(), query))
    counts = np.bincount(query, minlength=len(test))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    order = order[rank < top]
    place = order // width
    return Run.from_groups(
        test.query_ids,
        np.minimum(counts, top).tolist(),
        [test.videos[code] for code in where.video[place].tolist()],
        start.ravel()[order] * where.seconds[place],
        end.ravel()[order] * where.seconds[place],
        score.ravel()[order],
        queries=test.queries,
    )
