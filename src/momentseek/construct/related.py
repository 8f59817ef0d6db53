"""Which other videos answer a training query too: those with a sentence that is nearly the query (CroCs, eq. 1).

``s(q, v)`` is the largest similarity between the query and any sentence of the video; at or above a threshold (0.9 in
the paper) the video is related, and training does not use it as a negative of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.construct.massive.scores import TextSimilarity
from momentseek.construct.similarity import BLOCK_BYTES
from momentseek.errors import MomentseekError
from momentseek.moments import Judgements
from momentseek.moments.arrays import IntArray

ROUNDING_TOLERANCE = 1e-6
"""How far the cosine of a sentence with itself may be from 1."""


@dataclass(frozen=True, eq=False)
class VideoSentences:
    """The distinct sentences of a truth, and the videos that they describe."""

    truth: Judgements
    texts: tuple[str, ...]
    """The sentences, in order of first appearance."""
    of_query: IntArray
    """Place of each query's sentence in ``texts``; -1 for a query without words."""
    text: IntArray
    """The sentence of each distinct pair of sentence and video, as a place in ``texts``, video after video."""
    video: IntArray
    """The video of each distinct pair of sentence and video."""


def collect_sentences(truth: Judgements) -> VideoSentences:
    """Collect the sentences of a truth; moments of relevance 0 do not tie a sentence to their video."""
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
    progress: Callable[[int], None] | None = None,
    block: int | None = None,
) -> dict[str, list[str]]:
    """Find the other videos related to each query that has any; ``progress`` is called with sentences compared.

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
            progress(len(asked))
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
