"""Many shards' answers as the one that a single library would have found, stream by stream.

Only columns of numbers are compared; of what was found, no more is touched than one library would have looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.word_counts import RankedTexts, keep_best
from momentseek.search.hit import StreamHit
from momentseek.search.shards.answers import PhraseRows, ShardAnswer, TextKind, TextRows
from momentseek.search.state import Ids
from momentseek.search.streams.speech import MAX_MEANT_VIDEOS, MeantCues
from momentseek.search.streams.spoken_words import MAX_BOUNDED_HITS


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


@dataclass(frozen=True)
class VideoCard:
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
    ranked = [part.ranked for part in parts]
    scores = np.concatenate([one.bm25 for one in ranked])
    some = keep_best(scores, limit)
    ids, videos = np.concatenate([one.id for one in ranked])[some], np.concatenate([one.video for one in ranked])[some]
    best = np.lexsort((ids, videos, -scores[some]))[:limit]
    order = some[best]
    begins = np.cumsum([0, *(len(part.texts) for part in parts)])
    owner = np.searchsorted(begins, order, side="right") - 1
    return TextRows(
        RankedTexts(ids[best], videos[best], scores[order]),
        np.concatenate([part.start for part in parts])[order],
        np.concatenate([part.end for part in parts])[order],
        np.concatenate([part.at for part in parts])[order],
        np.concatenate([part.heard for part in parts])[order],
        [parts[part].texts[at] for part, at in zip(owner.tolist(), (order - begins[owner]).tolist(), strict=True)],
    )


def text_matches(rows: TextRows | None) -> list[ShardMatch]:
    """Texts one by one, as the streams of words judge them."""
    if rows is None:
        return []
    ranked, start, end, at, _, texts = rows
    columns = (ranked.id, ranked.video, start, end, at, ranked.bm25)
    return [
        ShardMatch(id, video, TextLine(begin, finish, text, frame), bm25)
        for id, video, begin, finish, frame, bm25, text in zip(*(one.tolist() for one in columns), texts, strict=True)
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
        self._parts: dict[int, list[ShardAnswer]] = {}
        self._known: dict[int, VideoCard] = {}

    def add(self, answers: Mapping[int, ShardAnswer]) -> None:
        """Take the cards of further answers."""
        for shard, answer in answers.items():
            self._parts.setdefault(shard, []).append(answer)

    def find(self, ids: Sequence[int]) -> dict[int, VideoCard]:
        """The cards of videos by their ids; those that no shard knows are missing."""
        new = np.array(sorted({id for id in ids if id not in self._known}), np.int64)
        for shard, answers in self._parts.items() if len(new) else ():
            for answer in answers:
                if (cards := answer.cards) is not None and len(cards.ids):
                    at, there = _places(cards.ids, new)
                    for id, place in zip(new[there].tolist(), at[there].tolist(), strict=True):
                        self._known[id] = VideoCard(id, float(cards.durations[place]), cards.hashes[place], shard)
        return {id: self._known[id] for id in dict.fromkeys(ids) if id in self._known}


def _places(known: Ids, wanted: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """Where each wanted number would be among sorted known ones, and whether it is there."""
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted
