"""Many shards' answers as the one that a single library would have found, stream by stream.

Only columns of numbers are compared; of what was found, no more is touched than one library would have looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from momentseek.cluster.search.requests import PhraseRows, ShardAnswer, TextKind, TextRows, VideoCards
from momentseek.cluster.word_counts import keep_best
from momentseek.core.moments.arrays import FloatArray, Positions
from momentseek.search.hit import StreamHit
from momentseek.search.state import Ids
from momentseek.search.streams.speech import MAX_BOUNDED_HITS, MAX_MEANT_VIDEOS, MeantCues


class TextLine(NamedTuple):
    """A text with its times, as word streams judge it."""

    start: float
    end: float
    text: str
    at: float


class ShardMatch(NamedTuple):
    """A text of some shard that holds words of a query."""

    id: int
    video: int
    line: TextLine
    bm25: float


class VideoCard(NamedTuple):
    """What ranking has to know of a video, and which shard has it."""

    id: int
    duration: float
    hash: str
    shard: int


def join_texts(answers: Mapping[int, ShardAnswer], kind: TextKind, limit: int) -> TextRows | None:
    """The ``limit`` texts of all shards that match best, best first; ties by video and number; None if unasked."""
    parts = [answer.texts[kind] for answer in answers.values() if kind in answer.texts]
    if not parts:
        return None
    ends = first_parts([part.table[2] for part in parts], limit)
    table = np.concatenate([part.table[:, :end] for part, end in zip(parts, ends, strict=True)], axis=1)
    texts = [text for part, end in zip(parts, ends, strict=True) for text in part.texts[:end]]
    order = np.lexsort((table[0], table[1], -table[2]))[:limit]
    return TextRows(table[:, order], [texts[at] for at in order.tolist()])


def first_parts(scores: Sequence[FloatArray], limit: int) -> list[int]:
    """How much of each of some lists, best first, may be among the best ``limit`` of all.

    >>> first_parts([np.array([9.0, 8.0, 1.0]), np.array([7.0, 5.0, 4.0])], 2)
    [2, 1]
    """
    few = -(-limit // len(scores))
    some = np.concatenate([one[:few] for one in scores])
    if len(some) < limit:
        return [len(one) for one in scores]
    # so many are at least as good as this; what is worse is not among the best
    bound = np.partition(some, len(some) - limit)[len(some) - limit]
    return [len(one) - int(one[::-1].searchsorted(bound)) for one in scores]


def text_matches(rows: TextRows | None) -> list[ShardMatch]:
    """Texts one by one, as the streams of words judge them."""
    if rows is None:
        return []
    ranked = rows.ranked
    columns = (ranked.id, ranked.video, *rows.times, ranked.bm25)
    return [
        ShardMatch(id, video, TextLine(begin, finish, text, frame), bm25)
        for id, video, begin, finish, frame, bm25, text in zip(
            *(one.tolist() for one in columns), rows.texts, strict=True
        )
    ]


def join_meant(answers: Mapping[int, ShardAnswer]) -> MeantCues | None:
    """The cues of the meaning asked for, in the best videos of all shards; None if no shard was asked."""
    parts = [answer.meant for answer in answers.values() if answer.meant is not None]
    if not parts:
        return None
    whole = MeantCues(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    first = np.flatnonzero(np.diff(whole.video, prepend=-1))  # the cues of a video lie together
    if len(first) <= MAX_MEANT_VIDEOS:
        return whole
    scores = whole.video_score[first]
    some = keep_best(scores, MAX_MEANT_VIDEOS)
    best = some[np.lexsort((whole.video[first[some]], -scores[some]))[:MAX_MEANT_VIDEOS]]
    chosen = np.zeros(len(first), bool)
    chosen[best] = True
    return whole.part(np.repeat(chosen, np.diff(first, append=len(whole.video))))


def join_phrases(answers: Mapping[int, ShardAnswer]) -> list[StreamHit]:
    """Where phrases are said in all shards, best first; the first of them bounded by their words."""
    parts = [answer.phrases for answer in answers.values() if answer.phrases is not None]
    if not parts:
        return []
    rows = PhraseRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.lexsort((rows.end, rows.start, rows.video, -rows.score))
    close = np.arange(len(order)) < MAX_BOUNDED_HITS
    start, end = (
        np.where(close, bounded[order], plain[order])
        for bounded, plain in ((rows.bounded_start, rows.start), (rows.bounded_end, rows.end))
    )
    columns = (rows.video[order].tolist(), start.tolist(), end.tolist(), rows.score[order].tolist())
    return [
        StreamHit(video, begin, finish, score, "strong") for video, begin, finish, score in zip(*columns, strict=True)
    ]


class CardIndex:
    """The cards of the videos that answers mention; looked up one by one, since few of them are needed."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, VideoCards]] = []
        self._ids: Ids | None = None
        self._known: dict[int, VideoCard] = {}

    def add(self, answers: Mapping[int, ShardAnswer]) -> None:
        """Take the cards of further answers."""
        self._parts += [(shard, answer.cards) for shard, answer in answers.items() if answer.cards is not None]
        self._ids = None

    def find(self, ids: Sequence[int]) -> dict[int, VideoCard]:
        """The cards of videos by their ids; those that no shard knows are missing."""
        new = np.array(sorted({id for id in ids if id not in self._known}), np.int64)
        if len(new) and self._parts:
            if self._ids is None:
                self._ids = np.concatenate([cards.ids for _, cards in self._parts])
            begins = np.cumsum([0, *(len(cards.ids) for _, cards in self._parts)])
            at = places_of(new, self._ids)
            part = np.searchsorted(begins, at, side="right") - 1
            for one, place in zip(part.tolist(), (at - begins[part]).tolist(), strict=True):
                shard, cards = self._parts[one]
                id = int(cards.ids[place])
                self._known[id] = VideoCard(id, float(cards.durations[place]), cards.hashes[place], shard)
        return {id: self._known[id] for id in dict.fromkeys(ids) if id in self._known}


def places_of(wanted: Ids, ids: Ids) -> Positions:
    """Where some ids, in order and each once, are among many others in any order.

    >>> places_of(np.array([3, 8]), np.array([8, 1, 3, 8])).tolist()
    [0, 2, 3]
    """
    marked = np.zeros(1 << 12, bool)  # most are ruled out by their last bits, which is far quicker than a search
    marked[wanted & 4095] = True
    some = np.flatnonzero(marked[ids & 4095])
    near = np.minimum(np.searchsorted(wanted, ids[some]), len(wanted) - 1)
    return np.asarray(some[wanted[near] == ids[some]], np.int64)
