"""How similar a query is to a video: the largest similarity to any sentence of the video (MVMR, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from momentseek.construct.changing_distribution.merging import require_one_annotator
from momentseek.construct.similarity import BLOCK_BYTES
from momentseek.encoders import TextEncoder, encode_cached
from momentseek.encoders.cached import SpreadTexts
from momentseek.errors import MomentseekError
from momentseek.formats.writing import query_videos, require_durations
from momentseek.moments import Judgements
from momentseek.moments.arrays import IntArray
from momentseek.progress import ShowCount

SimilarityScores = NDArray[np.float32]
TextSimilarity = Callable[[Sequence[str], Sequence[str]], SimilarityScores]
"""Queries × sentences → similarities, one row per query. Any scale will do, if the thresholds are on it."""


def encoder_similarity(
    encoder: TextEncoder, texts: Sequence[str], *, progress: ShowCount | None = None, spread: SpreadTexts | None = None
) -> TextSimilarity:
    """A similarity by the cosine of an encoder's vectors; ``texts`` are all texts that will be compared.

    ``progress`` is called with the numbers of texts that are encoded and that need encoding; ``spread`` encodes them
    elsewhere.
    """
    vectors = encode_cached(encoder, texts, progress=progress, spread=spread)
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
    """Place of each query's video in the truth's ``videos``."""
    texts: tuple[str, ...]
    """Distinct sentences, in order of first appearance."""
    text: IntArray
    """Place of each query's sentence in ``texts``."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each query when lots are drawn: its video, sentence and times, wherever it is in the file."""
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
        """The queries, video after video, each video's by time and sentence, wherever they are in the file."""
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
