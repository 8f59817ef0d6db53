"""What is said: cues that mean what a query says (by their vectors), and when the words of a phrase are spoken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.database import SPEECH
from momentseek.library.timed_text import tracked_videos
from momentseek.library.tracks.speech import transcript
from momentseek.library.words import plain_words
from momentseek.media.subtitles.cues import Cue, SpokenWord
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.search.confidence import MIN_CLIPS, Scale
from momentseek.search.fusion import RRF_K
from momentseek.search.hit import StreamHit
from momentseek.search.state import LibraryState, QueryEncoder
from momentseek.search.stream_index import Ids, SampledIndex, row_products

MAX_MEANT_CUES = 400
"""Cues of the same meaning that are ranked."""
MAX_MEANT_VIDEOS = 100
"""Videos that are searched for cues of the same meaning."""
MIN_MEANING = 0.45
"""Cosine below which two sentences do not mean the same, however far it stands out: on real recordings with few cues,
all that stood out with less was about something else."""
WORD_MARGIN_SECONDS = 0.1
"""Time before the first and after the last word of a phrase that its moment takes in (docs/transcribing.md)."""
MAX_BOUNDED_HITS = 200
"""Hits that are bounded by their words; nobody looks at more."""
TimedToken = tuple[str, float, float]


@dataclass(frozen=True, eq=False)
class MeaningQuery:
    """A text as its meaning is looked for: its vector, and what is usual for it in the library's speech."""

    vector: Vectors
    scale: Scale

    def accepts(self, score: float) -> bool:
        """Whether a cue with this score means the same, and stands out."""
        return score >= MIN_MEANING and self.scale.level(score) != "weak"


class MeantCues(NamedTuple):
    """Cues of the meaning that is asked for, in columns, and by how much the best cue of each one's video has it."""

    video: Ids
    row: Ids
    score: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    video_score: NDArray[np.float64]

    @classmethod
    def join(cls, parts: Sequence[MeantCues]) -> MeantCues:
        """The cues of the best videos of several parts of a library."""
        whole = cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        first = np.flatnonzero(np.diff(whole.video, prepend=-1))  # the cues of a video lie together
        best = np.lexsort((whole.video[first], -whole.video_score[first]))[:MAX_MEANT_VIDEOS]
        chosen = np.isin(np.arange(len(first)), best)
        rows = np.repeat(chosen, np.diff(first, append=len(whole.video)))
        return cls(*(np.asarray(column)[rows] for column in whole))  # type: ignore[arg-type]


def ask_meaning(index: SampledIndex, encoder: QueryEncoder, text: str) -> MeaningQuery | None:
    """The question for a meaning; None where too few cues have vectors to know what is usual: only words count then."""
    if not len(index.sample) or index.clips < MIN_CLIPS or not encoder.knows_words("speech", [text]):
        return None
    vector = encoder.encode("speech", [text])[0]
    return MeaningQuery(vector, Scale.of(row_products(index.sample, vector), index.clips))


def find_meant(state: LibraryState, asked: MeaningQuery, allowed: Ids | None) -> MeantCues:
    """Cues whose vectors stand out, in the videos that have the best ones."""
    index = state.speech
    best = index.scan.search(asked.vector, MAX_MEANT_VIDEOS, allowed=index.allowed_mask(allowed), gone=index.gone)
    found: list[tuple[int, int, float, float, float, float]] = []
    columns = (best.ids[0].tolist(), best.scores[0].tolist(), best.segment[0].tolist(), best.at[0].tolist())
    for id, top, segment, at in zip(*columns, strict=True):
        scores = index.segments[segment].vectors(at) @ asked.vector
        if not np.isfinite(scores).all():
            index.damaged_videos.add(id)
            scores = np.where(np.isfinite(scores), scores, -1)
        if not asked.accepts(float(scores.max())):
            break  # and so are all further videos
        spoken = state.catalog.own_cues(id, SPEECH)
        found += [
            (id, row, score, spoken[row].start, spoken[row].end, top)
            for row, score in enumerate(scores.tolist())
            if row < len(spoken) and asked.accepts(score)
        ]
    video, row, score, start, end, tops = zip(*found, strict=True) if found else ((),) * 6
    return MeantCues(
        np.array(video, np.int64), np.array(row, np.int64), np.array(score, np.float64), np.array(start, np.float64),
        np.array(end, np.float64), np.array(tops, np.float64),
    )  # fmt: skip


def meant_hits(found: MeantCues) -> list[StreamHit]:
    """StreamHits of cues by their meaning, best first; meaning alone is never strong."""
    order = np.lexsort((found.row, found.video, -found.score))[:MAX_MEANT_CUES]
    columns = (column[order].tolist() for column in (found.video, found.start, found.end, found.score))
    return [StreamHit(video, start, end, score, "fair") for video, start, end, score in zip(*columns, strict=True)]


def fuse_hits(by_word: list[StreamHit], by_meaning: list[StreamHit]) -> list[StreamHit]:
    """Fuse two lists into one by reciprocal ranks; a hit found by its words keeps its times and score."""
    shares = {u: 1 / (RRF_K + rank) for rank, u in enumerate(by_word, 1)}
    of_video: dict[int, list[StreamHit]] = {}
    for u in by_word:
        of_video.setdefault(u.video, []).append(u)
    meant = set()
    for rank, other in enumerate(by_meaning, 1):
        same = [u for u in of_video.get(other.video, ()) if u.start < other.end and other.start < u.end]
        for u in same or [other]:
            shares[u] = shares.get(u, 0.0) + 1 / (RRF_K + rank)
            meant.add(u)
    order = sorted(shares, key=lambda u: (-shares[u], u.video, u.start, u.end))
    return [replace(u, level="fair") if u.level == "weak" and u in meant else u for u in order]


# when the words of a phrase are spoken, where a recogniser heard them: bounds that are closer than a cue's


def bound_by_words(catalog: Catalog, hits: Sequence[StreamHit], phrases: Sequence[str]) -> list[StreamHit]:
    """The same hits, with the times of the phrases' words where these are known, else as they are."""
    heard = tracked_videos(catalog, SPEECH) if hits else frozenset()
    cues: dict[int, tuple[Cue, ...]] = {}
    out = []
    for hit in hits[:MAX_BOUNDED_HITS]:
        if hit.video in heard:
            if hit.video not in cues:
                found = transcript(catalog, hit.video)
                cues[hit.video] = found.cues if found is not None else ()
            said = [cue for cue in cues[hit.video] if hit.start <= cue.start and cue.end <= hit.end]
            bounds = phrase_bounds([token for cue in said for token in timed_tokens(cue.words)], phrases)
            if bounds is not None:
                start, end = bounds
                hit = replace(hit, start=max(0.0, start - WORD_MARGIN_SECONDS), end=end + WORD_MARGIN_SECONDS)
        out.append(hit)
    return [*out, *hits[MAX_BOUNDED_HITS:]]


def phrase_bounds(said: Sequence[TimedToken], phrases: Sequence[str]) -> tuple[float, float] | None:
    """From the first word of the phrases to their last, where they are nearest; None if one of them is not said.

    >>> said = [("a", 0.0, 0.1), ("red", 0.1, 0.4), ("a", 0.5, 0.6), ("blue", 0.6, 0.9), ("day", 1.0, 1.3)]
    >>> phrase_bounds(said, ["a blue"]), phrase_bounds(said, ["red", "Day!"]), phrase_bounds(said, ["green"])
    ((0.5, 0.9), (0.1, 1.3), None)
    """
    bounds: tuple[float, float] | None = None
    for phrase in phrases:
        sought = plain_words([phrase])[0].split()
        places = list(_places(said, sought)) if sought else []
        if not places:
            return None
        first = bounds or places[0]
        joined = [(min(first[0], start), max(first[1], end)) for start, end in places]
        bounds = min(joined, key=lambda both: both[1] - both[0])
    return bounds


def _places(said: Sequence[TimedToken], sought: Sequence[str]) -> Iterator[tuple[float, float]]:
    texts = [text for text, _, _ in said]
    for at in range(len(texts) - len(sought) + 1):
        if texts[at : at + len(sought)] == list(sought):
            yield said[at][1], said[at + len(sought) - 1][2]


def timed_tokens(words: Sequence[SpokenWord]) -> list[TimedToken]:
    """The words as searches compare them, each with the times of the pieces in which it was heard.

    >>> pieces = [" It's", " self", "-made", "!"]
    >>> timed_tokens([SpokenWord(at, at + 1, text) for at, text in enumerate(pieces)])
    [('it', 0, 1), ('s', 0, 1), ('self', 1, 2), ('made', 2, 3)]
    """
    out: list[TimedToken] = []
    for word, plain in zip(words, plain_words(list(accumulate(word.text for word in words))), strict=True):
        tokens = plain.split()
        if out and len(tokens) >= len(out) and tokens[len(out) - 1] != out[-1][0]:  # a piece goes on with a word
            out[-1] = (tokens[len(out) - 1], out[-1][1], word.end)
        out += [(token, word.start, word.end) for token in tokens[len(out) :]]
    return out
