"""What is said: passages that mean what a query says (by their vectors), and when the words of a phrase are spoken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import PASSAGES_SETTING, passage_rows
from momentseek.library.database import SPEECH
from momentseek.library.timed_text import tracked_videos
from momentseek.library.tracks.speech import transcript
from momentseek.library.words import COMMON_WORDS, plain_words, words
from momentseek.media.subtitles.cues import Cue, SpokenWord
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.search.confidence import LEVELS, MIN_CLIPS, NORMAL_QUARTILE, Scale
from momentseek.search.fusion import RRF_K
from momentseek.search.hit import Level, StreamHit
from momentseek.search.state import LibraryState, QueryEncoder
from momentseek.search.stream_index import Ids, SampledIndex, row_products
from momentseek.search.streams.timed_text import MAX_CUE_GAP_SECONDS, MAX_UTTERANCE_SECONDS

MAX_MEANT_HITS = 400
"""Passages of the same meaning that are ranked."""
MAX_MEANT_VIDEOS = 40
"""Videos that are searched for passages of the same meaning."""
MIN_MEANING = (0.35, 0.45)
"""Cosine below which a passage does not mean what is asked for, however far it stands out: in a library with up to
``FEW_ROWS`` vectors of speech, and in one with ten times as many or more, where something is always near."""
UNSURE_MEANING = 0.07
"""How much less a passage may have that is still worth a look: it is weak."""
FEW_ROWS = 100
MEANING_CHANCE = 0.05
"""Chance, as of a level, below which the meaning of a passage stands out."""
MIN_MEANT_WORDS = 2
"""Words that a passage must have besides common ones: "the" is near everything."""
CUE_SHARE = 0.85
"""What the cosine of a cue alone counts against that of a passage: short texts are near many others."""
MEAN_GAIN = 1.25
"""How much nearer the mean of a passage's cues may be than the nearest vector, where passages were not encoded."""
MATCHING_SHARE = 0.85
"""Share of the best cosine within a passage that the cues have which are its hit."""
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

    @classmethod
    def of(cls, vector: Vectors, scores: NDArray[np.float32], rows: int) -> MeaningQuery:
        """The question, given the scores of a sample of the library's ``rows``.

        The spread is that of the lower half: speech about what is asked for may be much of a library's.
        """
        low, centre = np.quantile(scores, (0.25, 0.5)).tolist()
        return cls(vector, Scale(centre, max((centre - low) / NORMAL_QUARTILE, 1e-6), rows))

    @property
    def least(self) -> float:
        """The cosine that a passage must have; a library with too few cues cannot tell what stands out."""
        low, high = MIN_MEANING
        if self.scale.clips < MIN_CLIPS:
            return high
        return float(np.clip(low + (high - low) * math.log10(self.scale.clips / FEW_ROWS), low, high))

    def level(self, score: float) -> Level | None:
        """How sure it is that a passage with this score means the same, never strong; None if it surely does not."""
        if score < self.least - UNSURE_MEANING or (
            self.scale.clips >= MIN_CLIPS and self.scale.chance(score) >= MEANING_CHANCE
        ):
            return None
        return "fair" if score >= self.least else "weak"


class MeantCues(NamedTuple):
    """Cues of the meaning that is asked for, in columns, and the best score of each one's video."""

    video: Ids
    row: Ids
    """Place of the first cue in its video."""
    score: NDArray[np.float64]
    """Cosine of the passage that they are in."""
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
    """The question for a meaning; None where no cue has a vector, or the encoder knows no word of the text."""
    if not len(index.sample) or not encoder.knows_words("speech", [text]):
        return None
    vector = encoder.encode("speech", [text])[0]
    return MeaningQuery.of(vector, row_products(index.sample, vector), index.clips)


def find_meant(state: LibraryState, asked: MeaningQuery, allowed: Ids | None) -> MeantCues:
    """The cues of passages whose vectors stand out, in the videos that have the best vectors."""
    index = state.speech
    best = index.scan.search(asked.vector, MAX_MEANT_VIDEOS, allowed=index.allowed_mask(allowed), gone=index.gone)
    found: list[tuple[int, int, float, float, float, float]] = []
    columns = (best.ids[0].tolist(), best.scores[0].tolist(), best.segment[0].tolist(), best.at[0].tolist())
    slack = 1.0 if state.catalog.get(PASSAGES_SETTING) else MEAN_GAIN
    for id, top, segment, at in zip(*columns, strict=True):
        if asked.level(slack * top) is None:
            break  # and so are all further videos
        rows = index.segments[segment].vectors(at)
        if not np.isfinite(rows).all():
            index.damaged_videos.add(id)
            rows = np.where(np.isfinite(rows), rows, 0)
        spoken, found_passages = state.find_spoken(id)
        if len(rows) < len(spoken):
            continue  # its cues have just been replaced
        for cues, score in _meant_passages(rows, spoken, found_passages, asked):
            start, end = spoken[cues.start].start, max(spoken[at].end for at in cues)
            found.append((id, cues.start, score, start, end, top))
    video, row, *numbers = np.array(found, np.float64).reshape(-1, 6).T
    return MeantCues(video.astype(np.int64), row.astype(np.int64), *numbers)


def _meant_passages(
    rows: Vectors, cues: Sequence[Cue], found: Sequence[range], asked: MeaningQuery
) -> Iterator[tuple[range, float]]:
    """The cues of a video's passages that mean what is asked for, best first, each cue once, with their cosines."""
    if not found:
        return
    near = np.append(rows[: len(cues)] @ asked.vector, np.float32(-1))
    edges = np.array([(some.start, some.stop) for some in found]).ravel()
    alone = CUE_SHARE * np.maximum.reduceat(near, edges)[::2]
    scores = np.maximum(passage_rows(rows, cues, found) @ asked.vector, alone)
    taken: set[int] = set()
    for at in np.argsort(-scores, kind="stable").tolist():
        if asked.level(float(scores[at])) is None:
            return
        text = " ".join(cues[one].text for one in found[at])
        if taken.isdisjoint(found[at]) and len(set(words(text)) - COMMON_WORDS) >= MIN_MEANT_WORDS:
            taken.update(found[at])
            yield _matching_cues(rows, found[at], asked.vector), float(scores[at])


def _matching_cues(rows: Vectors, passage: range, vector: Vectors) -> range:
    """The most cues in a row of a passage whose vectors together are nearly as near as the nearest of its cues are."""
    sums = np.concatenate([np.zeros_like(rows[:1]), np.cumsum(rows[passage.start : passage.stop], axis=0)])
    runs = [(first, end) for first in range(len(passage)) for end in range(first + 1, len(passage) + 1)]
    whole = np.stack([sums[end] - sums[first] for first, end in runs])
    near = whole @ vector / np.maximum(np.linalg.norm(whole, axis=1), 1e-9)
    best = float(near.max())
    least = best - (1 - MATCHING_SHARE) * abs(best)
    good = [(end - first, at, first) for (first, end), at in zip(runs, near.tolist(), strict=True) if at >= least]
    length, _, first = max(good)
    return passage[first : first + length]


def meant_hits(found: MeantCues, asked: MeaningQuery) -> list[StreamHit]:
    """StreamHits of passages by their meaning, best first; meaning alone is never strong."""
    order = np.lexsort((found.row, found.video, -found.score))[:MAX_MEANT_HITS]
    columns = (column[order].tolist() for column in (found.video, found.start, found.end, found.score))
    return [
        StreamHit(video, start, end, score, asked.level(score) or "weak", meant=(start, end, score))
        for video, start, end, score in zip(*columns, strict=True)
    ]


def fuse_hits(by_word: list[StreamHit], by_meaning: list[StreamHit]) -> list[StreamHit]:
    """Fuse two lists into one, surer hits first and within a level by reciprocal ranks.

    Where a passage has the meaning and a hit by words lies in it, the hit by words stands, with its times and score; a
    weak one, which has few of the words, gives way to the passage.
    """
    shares = {u: 1 / (RRF_K + rank) for rank, u in enumerate(by_word, 1)}
    of_video: dict[int, list[StreamHit]] = {}
    for u in by_word:
        of_video.setdefault(u.video, []).append(u)
    meant: dict[StreamHit, tuple[float, float, float] | None] = {}
    for rank, other in enumerate(by_meaning, 1):
        same = [u for u in of_video.get(other.video, ()) if u.start < other.end and other.start < u.end]
        sure = [u for u in same if u.level != "weak"]
        shares[other] = max((shares.pop(u, 0.0) for u in same if not sure), default=0.0)
        for u in sure or [other]:
            shares[u] += 1 / (RRF_K + rank)
            meant.setdefault(u, other.meant)
        if sure:
            del shares[other]
    order = sorted(shares, key=lambda u: (-LEVELS.index(u.level), -shares[u], u.video, u.start, u.end))
    return [u if u.meant == meant.get(u) else replace(u, meant=meant.get(u)) for u in order]


# when the words of a phrase are spoken, where a recogniser heard them: bounds that are closer than a cue's


def bound_by_words(catalog: Catalog, hits: Sequence[StreamHit], phrases: Sequence[str]) -> list[StreamHit]:
    """The same hits, with the times of the sentences in which the phrases are said where these are known, else as they
    are; the frame to show is in the middle of the words.
    """
    heard = tracked_videos(catalog, SPEECH) if hits else frozenset()
    known: dict[int, list[SpokenWord]] = {}
    out = []
    for hit in hits[:MAX_BOUNDED_HITS]:
        if hit.video in heard:
            if hit.video not in known:
                found = transcript(catalog, hit.video)
                known[hit.video] = [word for cue in (found.cues if found is not None else ()) for word in cue.words]
            said = [word for word in known[hit.video] if hit.start <= word.start and word.end <= hit.end]
            bounds = phrase_bounds(timed_tokens(said), phrases)
            if bounds is not None:
                start, end = sentence_bounds(known[hit.video], *bounds)
                start, end = max(0.0, start - WORD_MARGIN_SECONDS), end + WORD_MARGIN_SECONDS
                hit = replace(hit, start=start, end=end, peak=sum(bounds) / 2)
        out.append(hit)
    return [*out, *hits[MAX_BOUNDED_HITS:]]


def sentence_bounds(said: Sequence[SpokenWord], start: float, end: float) -> tuple[float, float]:
    """From the beginning to the end of the sentences that words lie in; the words' own times if that is too long.

    >>> said = [SpokenWord(at, at + 1, text) for at, text in enumerate((" Yes.", " We", " go", " now.", " Why?"))]
    >>> sentence_bounds(said, 2, 3), sentence_bounds(said, 0, 2)
    ((1, 4), (0, 4))
    """
    inside = [at for at, word in enumerate(said) if word.start < end and start < word.end]
    if not inside:
        return start, end
    first, last = inside[0], inside[-1]
    while first and not _ends_sentence(said[first - 1], said[first]):
        first -= 1
    while last + 1 < len(said) and not _ends_sentence(said[last], said[last + 1]):
        last += 1
    whole = said[first].start, said[last].end
    return whole if whole[1] - whole[0] <= MAX_UTTERANCE_SECONDS else (start, end)


def _ends_sentence(word: SpokenWord, following: SpokenWord) -> bool:
    return word.text.rstrip().endswith((".", "?", "!")) or following.start - word.end > MAX_CUE_GAP_SECONDS


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


def timed_tokens(said: Sequence[SpokenWord]) -> list[TimedToken]:
    """The words as searches compare them, each with the times of the pieces in which it was heard.

    >>> pieces = [" It's", " self", "-made", "!"]
    >>> timed_tokens([SpokenWord(at, at + 1, text) for at, text in enumerate(pieces)])
    [('it', 0, 1), ('s', 0, 1), ('self', 1, 2), ('made', 2, 3)]
    """
    out: list[TimedToken] = []
    for word, plain in zip(said, plain_words(list(accumulate(word.text for word in said))), strict=True):
        tokens = plain.split()
        if out and len(tokens) >= len(out) and tokens[len(out) - 1] != out[-1][0]:  # a piece goes on with a word
            out[-1] = (tokens[len(out) - 1], out[-1][1], word.end)
        out += [(token, word.start, word.end) for token in tokens[len(out) :]]
    return out
