"""Moments of all of a query's videos as one ranking."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray, IntArray
from momentseek.ranking.top import Scores, top


def merge(spans: Scores, videos: Scores, alpha: float, k: int) -> tuple[IntArray, IntArray, FloatArray]:
    r"""The ``k`` best of the spans ``(queries, videos, spans)`` under ``span + alpha * video``.

    With spans as :math:`\log p_{st} + \log p_{ed}` that is the order of XML's
    :math:`p_{st}\, p_{ed} \exp(\alpha s^{vr})` (TVR, section 4.4), and it neither overflows nor runs into zero.
    Returns the video's and the span's place in their lists and the score, each ``(queries, k)``. Ties go to the video,
    then the span, that stands first; minus infinity marks what is not there.

    >>> video, span, score = merge(np.array([[[-1.0, -2.0], [-0.5, -4.0]]]), np.array([[0.9, 0.8]]), 10.0, 3)
    >>> video.tolist(), span.tolist(), score.tolist()
    ([[0, 1, 0]], [[0, 0, 1]], [[8.0, 7.5, 7.0]])
    """
    queries, _, each = spans.shape
    total = spans.astype(np.float64)
    if alpha != 0:
        total += (alpha * np.asarray(videos, dtype=np.float64))[:, :, None]
    places, score = top(total.reshape(queries, -1), k)
    video, span = np.divmod(places, max(1, each))
    return video, span, score.astype(np.float64)
