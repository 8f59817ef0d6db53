"""Compare queries with the sentences of other videos, to find videos that answer a query too.

The similarity of a query and a video is the largest one to any sentence of the video (MVMR, section 4.1). At or above
a threshold (0.9 in CroCs, eq. 1) the video is related, and training does not use it as a negative of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.benchmarks.datasets.common import BLOCK_BYTES, BuiltDataset, ShowProgress, no_progress
from momentseek.benchmarks.datasets.pairs import require_one_annotator
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.moments.arrays import IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.progress import ShowCount
from momentseek.measuring.formats import read_truth
from momentseek.measuring.formats.writers import dump, query_videos, require_durations
from momentseek.recognition.encoders.protocol import TextEncoder
from momentseek.recognition.encoders.registry import text_encoder
from momentseek.recognition.encoders.text_cache import EncodeChunks, encode_cached

SimilarityScores = NDArray[np.float32]
TextSimilarity = Callable[[Sequence[str], Sequence[str]], SimilarityScores]
"""Queries × sentences → similarities, one row per query, on any scale that fits the thresholds."""


SIMCSE_PREFIX = "simcse:"
"""Prefix of the folder of a Hugging Face model whose first token's vector represents the sentence."""


def sentence_encoder(name: str) -> TextEncoder:
    """Return a text encoder by name; ``simcse:FOLDER`` is SimCSE, or another BERT or RoBERTa used in the same way."""
    if not name.startswith(SIMCSE_PREFIX):
        return text_encoder(name)
    optional_module("torch", "train")
    from momentseek.models.layers.bert import SentenceTower  # needs torch

    return SentenceTower(Path(name.removeprefix(SIMCSE_PREFIX)))


def encoder_similarity(
    encoder: TextEncoder, texts: Sequence[str], *, progress: ShowCount | None = None, spread: EncodeChunks | None = None
) -> TextSimilarity:
    """Return a similarity by the cosine of an encoder's vectors; ``texts`` are all texts that will be compared.

    ``progress`` is called with the numbers of texts encoded and to encode; ``spread`` encodes them elsewhere, such as
    on a cluster.
    """
    vectors = encode_cached(encoder, texts, progress=progress, encode_chunks=spread)
    place = {text: at for at, text in enumerate(texts)}

    def similarity(queries: Sequence[str], sentences: Sequence[str]) -> SimilarityScores:
        product: SimilarityScores = vectors[[place[q] for q in queries]] @ vectors[[place[s] for s in sentences]].T
        return product

    return similarity


@dataclass(frozen=True, eq=False)
class MassiveSource:
    """A dataset with one video per query, prepared for drawing pools."""

    truth: Judgements
    own: IntArray
    """Position of each query's video in the truth's ``videos``."""
    texts: tuple[str, ...]
    """Distinct sentences, in order of first appearance."""
    text: IntArray
    """Position of each query's sentence in ``texts``."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each query for random draws: its video, sentence and times, whatever its position in the file."""
        truth = self.truth
        times = list(zip(truth.start.tolist(), truth.end.tolist(), strict=True))
        return tuple(
            "\0".join([truth.videos[video], self.texts[text], *(f"{s!r}-{e!r}" for s, e in sorted(times[a:b]))])
            for video, text, a, b in zip(
                self.own.tolist(),
                self.text.tolist(),
                truth.offsets[:-1].tolist(),
                truth.offsets[1:].tolist(),
                strict=True,
            )
        )

    @cached_property
    def by_video(self) -> IntArray:
        """The queries by video, time and sentence, whatever their order in the file."""
        _, alphabetic = np.unique(np.array(self.texts), return_inverse=True)
        first = self.truth.offsets[:-1]
        return np.lexsort((alphabetic[self.text], self.truth.end[first], self.truth.start[first], self.own))

    @cached_property
    def bounds(self) -> IntArray:
        """Where each video's queries begin in ``by_video``."""
        return np.searchsorted(self.own[self.by_video], np.arange(len(self.truth.videos) + 1))


def prepare_source(truth: Judgements) -> MassiveSource:
    """Prepare a truth for drawing pools; every query needs words, one video and its duration."""
    if truth.queries is None or not any(text.strip() for text in truth.queries):
        raise MomentseekError(f"{truth.source}: has no sentences to compare; give annotations with sentences")
    require_one_annotator(truth)
    require_durations(truth, "mvmr")
    for query, video, text in zip(truth.query_ids, query_videos(truth, "mvmr"), truth.queries, strict=True):
        if video is None or not text.strip():
            lacks = "moment" if video is None else "sentence"
            raise MomentseekError(f"{truth.source}: query {query} has no {lacks}; leave it out of the file")
    places: dict[str, int] = {}
    text_of = np.fromiter((places.setdefault(t, len(places)) for t in truth.queries), np.int64, len(truth))
    return MassiveSource(truth, truth.video[truth.offsets[:-1]].astype(np.int64), tuple(places), text_of)


def video_similarity(
    data: MassiveSource, similarity: TextSimilarity
) -> Iterator[tuple[IntArray, SimilarityScores, SimilarityScores]]:
    """Yield blocks of queries, with their similarities to every query's sentence and to every video.

    .. math:: s_{te}(q, v) = \\max_{q' \\in Q_v} s_{te}(q, q')
    """
    block = max(1, BLOCK_BYTES // (4 * len(data.truth)))
    has_queries = np.flatnonzero(np.diff(data.bounds))
    for at in range(0, len(data.truth), block):
        queries = np.arange(at, min(at + block, len(data.truth)))
        asked, place = np.unique(data.text[queries], return_inverse=True)
        scores = np.asarray(similarity([data.texts[t] for t in asked.tolist()], data.texts), dtype=np.float32)
        if scores.shape != (len(asked), len(data.texts)):
            raise MomentseekError(
                f"the text similarity gave {scores.shape} scores for {len(asked)} × {len(data.texts)}"
            )
        sentences = scores[place][:, data.text]
        videos = np.full((len(queries), len(data.truth.videos)), -np.inf, dtype=np.float32)
        ordered = sentences[:, data.by_video]
        videos[:, has_queries] = np.maximum.reduceat(ordered, data.bounds[has_queries], axis=1)
        yield queries, sentences, videos


ROUNDING_TOLERANCE = 1e-6
"""Maximum deviation from 1 of the cosine of a sentence with itself."""


@dataclass(frozen=True, eq=False)
class VideoSentences:
    """The distinct sentences of a truth, and the videos that they describe."""

    truth: Judgements
    texts: tuple[str, ...]
    """The sentences, in order of first appearance."""
    of_query: IntArray
    """Position of each query's sentence in ``texts``; -1 for a query without words."""
    text: IntArray
    """The sentence of each distinct pair of sentence and video, as a position in ``texts``, by video."""
    video: IntArray
    """The video of each distinct pair of sentence and video."""


def collect_sentences(truth: Judgements) -> VideoSentences:
    """Collect the sentences of a truth; moments of relevance 0 do not link a sentence to their video."""
    if truth.queries is None or not any(text.strip() for text in truth.queries):
        raise MomentseekError(f"{truth.source}: has no sentences to compare; give annotations with sentences")
    places: dict[str, int] = {}
    stripped = (text.strip() for text in truth.queries)
    of_query = np.fromiter((places.setdefault(t, len(places)) if t else -1 for t in stripped), np.int64, len(truth))
    text, video = of_query[truth.row_query], truth.video.astype(np.int64)
    keep = (truth.relevance > 0) & (text >= 0)
    pairs = np.unique(np.stack([video[keep], text[keep]], axis=1), axis=0)
    return VideoSentences(truth, tuple(places), of_query, pairs[:, 1], pairs[:, 0])


def find_related_videos(
    data: VideoSentences,
    similarity: TextSimilarity,
    threshold: float = 0.9,
    progress: ShowCount | None = None,
    block: int | None = None,
) -> dict[str, list[str]]:
    """Find the related videos of each query that has any; ``progress`` gets the numbers of sentences done and in total.

    >>> from dataclasses import replace
    >>> rows = [("q1", "a", 0, 5, 1), ("q2", "b", 0, 5, 1), ("q3", "c", 0, 5, 1)]
    >>> truth = replace(Judgements.from_rows(rows), queries=("opens a door", "opens a door", "sits"))
    >>> same = lambda a, b: np.array([[x == y for y in b] for x in a], np.float32)
    >>> find_related_videos(collect_sentences(truth), same)
    {'q1': ['b'], 'q2': ['a']}
    """
    if not len(data.video):
        return {}
    found: dict[int, IntArray] = {}
    codes, begin = np.unique(data.video, return_index=True)
    size = block or max(1, BLOCK_BYTES // (4 * len(data.text)))
    for first in range(0, len(data.texts), size):
        asked = data.texts[first : first + size]
        scores = np.asarray(similarity(asked, data.texts), dtype=np.float32)
        best = np.maximum.reduceat(scores[:, data.text], begin, axis=1)
        for row, hits in enumerate(best >= threshold - ROUNDING_TOLERANCE):
            found[first + row] = codes[hits]
        if progress is not None:
            progress(min(first + size, len(data.texts)), len(data.texts))
    return _name_videos(data, found)


def _name_videos(data: VideoSentences, found: Mapping[int, IntArray]) -> dict[str, list[str]]:
    truth = data.truth
    named: dict[str, list[str]] = {}
    for place, (query, text) in enumerate(zip(truth.query_ids, data.of_query.tolist(), strict=True)):
        if text < 0:
            continue
        rows = slice(int(truth.offsets[place]), int(truth.offsets[place + 1]))
        own = truth.video[rows][truth.relevance[rows] > 0]
        others: Sequence[int] = np.setdiff1d(found[text], own).tolist()
        if others:
            named[query] = [truth.videos[v] for v in others]
    return named


def build_related(
    truth: str, out: str, *, threshold: float = 0.9, encoder: str = "minilm", progress: ShowProgress = no_progress
) -> BuiltDataset:
    """Find, for every query of a training set, the other videos that answer it."""
    judgements = read_truth(truth, invalid="keep")  # times do not matter
    data = collect_sentences(judgements)
    model = sentence_encoder(encoder)
    with progress(f"encoding with {model.name}") as show:
        similarity = encoder_similarity(model, data.texts, progress=show)
    with progress("comparing sentences") as show:
        found = find_related_videos(data, similarity, threshold, show)
    pairs = sum(map(len, found.values()))
    return BuiltDataset(
        files={Path(out): dump(found)},
        summary={
            "out": out,
            "encoder": encoder,
            "threshold": threshold,
            "queries": len(judgements),
            "with_related": len(found),
            "pairs": pairs,
        },
        text=f"{len(found):,} of {len(judgements):,} queries have other videos that answer them ({encoder}, similarity "
        f"{threshold:g} or more), {pairs / max(1, len(found)):.1f} on average",
    )
