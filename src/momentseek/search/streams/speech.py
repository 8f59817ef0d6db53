"""The speech stream: finds passages by meaning (with vectors), and the exact times of the words of a phrase."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import PASSAGES_SETTING
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
from momentseek.search.stream_index import Ids, SampledIndex, StreamIndex, VideoRows, row_products
from momentseek.search.streams.timed_text import MAX_CUE_GAP_SECONDS, MAX_UTTERANCE_SECONDS

MAX_MEANT_HITS = 400
"""Largest number of passages that are ranked by meaning."""
MAX_MEANT_VIDEOS = 40
"""Number of videos that are searched for passages by meaning."""
MIN_MEANING = (0.35, 0.45)
"""Smallest cosine of a match by meaning, however far it stands out: in a library with up to ``FEW_ROWS`` vectors of
speech, and in one with at least ten times as many, where something is always close."""
UNSURE_MEANING = 0.07
"""How far below that cosine a passage still is a weak match."""
FEW_ROWS = 100
MEANING_CHANCE = 0.05
"""Chance (see ``Scale.chance``) below which a passage stands out."""
MIN_MEANT_WORDS = 2
"""Smallest number of words in a passage, not counting common ones: "the" is close to everything."""
CUE_SHARE = 0.85
"""Factor for the cosine of a single cue compared with a passage, because short texts are close to many others."""
MEAN_GAIN = 1.25
"""How much higher the cosine of a passage's mean may be than that of its best cue, if passages were not encoded."""
MATCHING_SHARE = 0.85
"""Share of the best cosine in a passage that a run of cues must reach to be its hit."""
WORD_MARGIN_SECONDS = 0.1
"""Time that is added before the first and after the last word of a phrase (docs/recognition.md)."""
MAX_BOUNDED_HITS = 200
"""Number of hits that get the times of their words; nobody looks at more."""
TimedToken = tuple[str, float, float]


@dataclass(frozen=True, eq=False)
class MeaningQuery:
    """A query by meaning: the vector of a text, and the usual scores in the library's speech."""

    vector: Vectors
    scale: Scale

    @classmethod
    def of(cls, vector: Vectors, scores: NDArray[np.float32], rows: int) -> MeaningQuery:
        """Build the query from the scores of a sample of the library's ``rows``.

        The spread is that of the lower half, because much of a library's speech may be about the query.
        """
        low, centre = np.quantile(scores, (0.25, 0.5)).tolist()
        return cls(vector, Scale(centre, max((centre - low) / NORMAL_QUARTILE, 1e-6), rows))

    @cached_property
    def least(self) -> float:
        """The smallest cosine of a fair match; higher in large libraries, and in those too small to judge."""
        low, high = MIN_MEANING
        if self.scale.clips < MIN_CLIPS:
            return high
        return float(np.clip(low + (high - low) * math.log10(self.scale.clips / FEW_ROWS), low, high))

    def level(self, score: float) -> Level | None:
        """The level of a passage with this score, never strong; None if it does not match."""
        if score < self.least - UNSURE_MEANING or (
            self.scale.clips >= MIN_CLIPS and self.scale.chance(score) >= MEANING_CHANCE
        ):
            return None
        return "fair" if score >= self.least else "weak"


class MeantCues(NamedTuple):
    """Cues that match by meaning, in columns, and the best score of each one's video."""

    video: Ids
    row: Ids
    """Place of the first cue in its video."""
    score: NDArray[np.float64]
    """Cosine of the passage that contains them."""
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    video_score: NDArray[np.float64]

    @classmethod
    def join(cls, parts: Sequence[MeantCues]) -> MeantCues:
        """The cues of the best videos of several parts of a library."""
        whole = cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        first = np.flatnonzero(np.diff(whole.video, prepend=-1))  # the cues of a video are contiguous
        best = np.lexsort((whole.video[first], -whole.video_score[first]))[:MAX_MEANT_VIDEOS]
        chosen = np.isin(np.arange(len(first)), best)
        rows = np.repeat(chosen, np.diff(first, append=len(whole.video)))
        return cls(*(np.asarray(column)[rows] for column in whole))  # type: ignore[arg-type]


def ask_meaning(index: SampledIndex, encoder: QueryEncoder, text: str) -> MeaningQuery | None:
    """Build the query by meaning; None if no cue has a vector, or the encoder knows no word of the text."""
    if not len(index.sample) or not encoder.knows_words("speech", [text]):
        return None
    vector = encoder.encode("speech", [text])[0]
    return MeaningQuery.of(vector, row_products(index.sample, vector), index.clips)


def find_meant(state: LibraryState, asked: MeaningQuery, allowed: Ids | None) -> MeantCues:
    """Find the cues of passages that match by meaning, in the videos with the best vectors."""
    index = state.speech
    best = index.scan.search(asked.vector, MAX_MEANT_VIDEOS, allowed=index.allowed_mask(allowed), gone=index.gone)
    slack = 1.0 if state.catalog.get(PASSAGES_SETTING) else MEAN_GAIN
    scored = zip(best.ids[0].tolist(), best.scores[0].tolist(), strict=True)
    tops = dict(takewhile(lambda pair: asked.level(slack * pair[1]) is not None, scored))
    found: list[tuple[int, int, float, float, float, float]] = []
    for block in index.read(list(tops)):
        spoken = state.find_spoken(block.ids)
        taken: set[int] = set()
        for passage in find_passages(_mend_rows(index, block), spoken, asked):
            id, begin, cues = block.ids[passage.video], int(block.offsets[passage.video]), spoken[passage.video][0]
            text = " ".join(cues[row - begin].text for row in passage.rows)
            if taken.isdisjoint(passage.rows) and len(set(words(text)) - COMMON_WORDS) >= MIN_MEANT_WORDS:
                taken.update(passage.rows)
                said = cues[passage.best.start - begin : passage.best.stop - begin]
                end = max(cue.end for cue in said)
                found.append((id, passage.best.start - begin, passage.score, said[0].start, end, tops[id]))
    video, row, *numbers = np.array(found, np.float64).reshape(-1, 6).T
    return MeantCues(video.astype(np.int64), row.astype(np.int64), *numbers)


def _mend_rows(index: StreamIndex, block: VideoRows) -> VideoRows:
    """Replace damaged numbers of a block by zeros, and record their videos."""
    whole = np.isfinite(block.rows)
    if whole.all():
        return block
    owner = np.repeat(np.arange(len(block.ids)), np.diff(block.offsets))
    index.damaged_videos.update(block.ids[at] for at in owner[~whole.all(axis=1)].tolist())
    return block._replace(rows=np.where(whole, block.rows, np.float32(0)))


class MeantPassage(NamedTuple):
    """A passage that matches by meaning; its cues are given by the positions of their vectors among all rows."""

    video: int
    """Position of its video."""
    rows: range
    score: float
    """Its cosine with the query."""
    best: range
    """The longest run of its cues whose cosine is close to the best one in the passage."""


def find_passages(
    block: VideoRows, spoken: Sequence[tuple[list[Cue], list[range]]], asked: MeaningQuery
) -> list[MeantPassage]:
    """Find the passages of videos that match by meaning, grouped by video, best first.

    ``spoken`` has the cues and the passages of each video. A passage has its own vector, or, in libraries in which
    passages were not encoded, the mean of the vectors of its cues.
    """
    rows, offsets = block.rows, block.offsets
    listed: list[tuple[int, int, int, int]] = []
    for at, (cues, found) in enumerate(spoken):
        begin, count = int(offsets[at]), int(offsets[at + 1] - offsets[at])
        if count < len(cues):
            continue  # its cues have just been replaced
        several = begin + len(cues)
        for some in found:
            own = -1 if count == len(cues) else begin + some.start if len(some) == 1 else several
            several += len(some) > 1
            listed.append((at, begin + some.start, begin + some.stop, own))
    if not listed:
        return []
    video, first, last, own = np.array(listed).T
    near = np.append(row_products(rows, asked.vector), np.float32(-1))
    edges = np.stack([first, last], axis=1).ravel()
    scores = near[own]
    if (mean := own < 0).any():  # passages were not encoded
        sums = np.add.reduceat(np.concatenate([rows, np.zeros_like(rows[:1])]), edges)[::2][mean]
        scores[mean] = row_products(sums, asked.vector) / np.maximum(np.linalg.norm(sums, axis=1), 1e-9)
    scores = np.maximum(scores, CUE_SHARE * np.maximum.reduceat(near, edges)[::2])
    order = np.lexsort((-scores, video))
    meant = np.array([at for at in order.tolist() if asked.level(float(scores[at])) is not None], np.int64)
    begins, lengths = _matching_cues(rows, first[meant], (last - first)[meant], asked.vector)
    columns = (video[meant], first[meant], last[meant], scores[meant], begins, begins + lengths)
    return [
        MeantPassage(at, range(a, b), score, range(c, d))
        for at, a, b, score, c, d in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _matching_cues(rows: Vectors, first: Ids, lengths: Ids, vector: Vectors) -> tuple[Ids, Ids]:
    """First cue and length of the longest run of cues of each passage whose cosine is close to the best run's."""
    begins, counts = first.copy(), lengths.copy()
    for length in np.unique(lengths[lengths > 1]).tolist():
        chosen = np.flatnonzero(lengths == length)
        start, end = np.triu_indices(length)
        size = end + 1 - start
        sums = np.zeros((len(chosen), length + 1, rows.shape[1]), np.float32)
        np.cumsum(rows[first[chosen, None] + np.arange(length)], axis=1, out=sums[:, 1:])
        whole = sums[:, end + 1] - sums[:, start]
        near = row_products(whole, vector) / np.maximum(np.linalg.norm(whole, axis=2), 1e-9)
        best = near.max(axis=1, keepdims=True)
        good = near >= best - (1 - MATCHING_SHARE) * np.abs(best)
        longest = np.where(good, size, 0).max(axis=1, keepdims=True)
        near[~good | (size != longest)] = -np.inf
        place = len(size) - 1 - np.argmax(near[:, ::-1], axis=1)  # the last one of a tie
        begins[chosen], counts[chosen] = first[chosen] + start[place], size[place]
    return begins, counts


def meant_hits(found: MeantCues, asked: MeaningQuery) -> list[StreamHit]:
    """Turn passages that match by meaning into hits, best first; meaning alone is never strong."""
    order = np.lexsort((found.row, found.video, -found.score))[:MAX_MEANT_HITS]
    columns = (column[order].tolist() for column in (found.video, found.start, found.end, found.score))
    return [
        StreamHit(video, start, end, score, asked.level(score) or "weak", meant=(start, end, score))
        for video, start, end, score in zip(*columns, strict=True)
    ]


def fuse_hits(by_word: list[StreamHit], by_meaning: list[StreamHit]) -> list[StreamHit]:
    """Fuse two lists of hits into one, sorted by level and then by reciprocal ranks.

    If a hit by words overlaps a passage that matches by meaning, the hit by words is kept, with its times and score; a
    weak one, which has few of the words, is replaced by the passage.
    """
    ranks = {u: rank for rank, u in enumerate(by_word, 1)}
    hits, shares = list(ranks), {at: 1 / (RRF_K + rank) for at, rank in enumerate(ranks.values())}
    of_video: dict[int, list[int]] = {}
    for at, u in enumerate(hits):
        of_video.setdefault(u.video, []).append(at)
    for rank, other in enumerate(by_meaning, 1):
        near = of_video.get(other.video, ())
        same = [at for at in near if hits[at].start < other.end and other.start < hits[at].end]
        sure = [at for at in same if hits[at].level != "weak"]
        for at in sure:
            shares[at] += 1 / (RRF_K + rank)
            hits[at] = hits[at]._replace(meant=hits[at].meant or other.meant)
        if not sure:
            shares[len(hits)] = max((shares.pop(at, 0.0) for at in same), default=0.0) + 1 / (RRF_K + rank)
            hits.append(other)
    rows = [(-LEVELS.index(hits[at].level), -share, *hits[at][:3], at) for at, share in shares.items()]
    return [hits[row[-1]] for row in sorted(rows)]


# the times of the words of a phrase, if a recogniser transcribed them; more exact than those of cues


def bound_by_words(catalog: Catalog, hits: Sequence[StreamHit], phrases: Sequence[str]) -> list[StreamHit]:
    """The hits with the times of the sentences that contain the phrases, if known.

    The frame to show is in the middle of the phrases' words. Other hits stay as they are.
    """
    heard = tracked_videos(catalog, SPEECH, {hit.video for hit in hits[:MAX_BOUNDED_HITS]})
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
                hit = hit._replace(start=start, end=end, peak=sum(bounds) / 2)
        out.append(hit)
    return [*out, *hits[MAX_BOUNDED_HITS:]]


def sentence_bounds(said: Sequence[SpokenWord], start: float, end: float) -> tuple[float, float]:
    """Start and end of the sentences that contain words at given times; the given times if that is too long.

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
    """Start of the first and end of the last word of the phrases, where they are closest; None if one is not said.

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
    """Transcribed pieces as normalised words, each with the times of its pieces.

    >>> pieces = [" It's", " self", "-made", "!"]
    >>> timed_tokens([SpokenWord(at, at + 1, text) for at, text in enumerate(pieces)])
    [('it', 0, 1), ('s', 0, 1), ('self', 1, 2), ('made', 2, 3)]
    """
    out: list[TimedToken] = []
    for word, plain in zip(said, plain_words(list(accumulate(word.text for word in said))), strict=True):
        tokens = plain.split()
        if out and len(tokens) >= len(out) and tokens[len(out) - 1] != out[-1][0]:  # the piece continues a word
            out[-1] = (tokens[len(out) - 1], out[-1][1], word.end)
        out += [(token, word.start, word.end) for token in tokens[len(out) :]]
    return out
