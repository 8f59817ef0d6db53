"""The start and end filters of XML and ReLoCLNet, evaluated in numpy.

The formulas are those of ``models.inference``: a softmax over the clips turns the filters' responses on the query-clip
curve into probabilities, a span's score is ``log p_start + log p_end + alpha * match`` (TVR, sections 4.3 and 4.4), and
``match`` is the video's score, the mean over modalities of its best clip's cosine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from momentseek.core.moments.arrays import FloatArray
from momentseek.core.ranking import EndTime
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.manifest import EncoderManifest
from momentseek.recognition.exported.span_head import SpanHead


@dataclass(frozen=True, eq=False)
class Boundaries:
    """A trained model's probabilities of where moments start and end in a video."""

    start: FloatArray
    """(T,) log probability that the moment starts with this clip."""
    end: FloatArray
    """(T,) log probability that the moment ends with this clip."""
    shortest: int
    longest: int
    match: float
    """Score of the video as a whole."""
    less: FloatArray
    """(T,) penalty of each clip for showing what the query wants to avoid."""
    end_time: EndTime = "inclusive"
    alpha: float = 1.0
    """Weight of ``match`` in the score of each span."""

    @property
    def max_score(self) -> float:
        """Upper bound of the score of any span, since probabilities are at most 1."""
        return self.alpha * self.match

    def part(self, first: int, last: int) -> Boundaries:
        """Return the values of clips ``first`` to ``last`` (exclusive)."""
        at = slice(first, last)
        return replace(self, start=self.start[at], end=self.end[at], less=self.less[at])


@dataclass(frozen=True, eq=False)
class BoundaryHead:
    """A trained model's start and end filters, with its settings for scoring spans."""

    start: Vectors
    """The filter that responds to the start of a moment."""
    end: Vectors
    shortest: int
    longest: int
    alpha: float
    modalities: int
    window: int
    """Clips of the longest training video; in longer videos, a start competes only with this many clips."""
    end_time: EndTime = "inclusive"

    @classmethod
    def of(cls, about: EncoderManifest) -> BoundaryHead:
        """Return the head that an exported model's manifest describes."""
        return cls(
            start=about.start,
            end=about.end,
            shortest=about.shortest,
            longest=about.longest,
            alpha=about.alpha,
            modalities=about.modalities,
            window=about.max_clips,
            end_time=cast(EndTime, about.end_time),
        )

    def bounds(self, curve: Vectors, match: float, less: FloatArray | None = None) -> Boundaries:
        """Return the boundaries of a video from its ``curve`` and its score ``match``; ``less`` is the penalty."""
        return Boundaries(
            start=log_shares(response(curve, self.start), self.window),
            end=log_shares(response(curve, self.end), self.window),
            shortest=self.shortest,
            longest=self.longest,
            match=match,
            less=np.zeros(len(curve)) if less is None else self.alpha * less,
            end_time=self.end_time,
            alpha=self.alpha,
        )

    def match(self, clips: Vectors, query: Vectors) -> float:
        """Return a video's score: the sum over modalities of the best clip's product.

        Vectors are scaled so that this is the mean of cosines.

        >>> head = BoundaryHead(np.ones(1), np.ones(1), 1, 4, 20.0, 2, 100)
        >>> clips = np.array([[0.7, 0.0, 0.1, 0.0], [0.1, 0.0, 0.0, 0.7]], np.float32)
        >>> round(head.match(clips, np.array([0.7, 0.0, 0.0, 0.7], np.float32)), 2)
        0.98
        """
        width = len(query) // self.modalities
        sides = (slice(at, at + width) for at in range(0, len(query), width))
        return float(sum((clips[:, side] @ query[side]).max() for side in sides))

    def probes(self, query: Vectors) -> Vectors:
        """Return the vectors to scan for: the query, and each of its modalities alone, as rows of length 1.

        A scan finds the best clip of all modalities together, but different clips may be best in each.

        >>> BoundaryHead(np.ones(1), np.ones(1), 1, 4, 20.0, 2, 100).probes(np.float32([0.6, 0.8])).tolist()
        [[0.6000000238418579, 0.800000011920929], [1.0, 0.0], [0.0, 1.0]]
        """
        rows = [query]
        if self.modalities > 1:
            owner = np.arange(len(query)) // (len(query) // self.modalities)
            rows += [np.where(owner == part, query, 0) for part in range(self.modalities)]
        table = np.stack([row for row in rows if np.linalg.norm(row) > 0])
        return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True), np.float32)


def head_of(about: EncoderManifest | None) -> BoundaryHead | SpanHead | None:
    """What finds spans of an exported model's clips; None without a model, or for one that keeps vectors of moments."""
    if about is None or about.moments is not None:
        return None
    return BoundaryHead.of(about) if about.curves is None else about.curves


def response(curve: Vectors, kernel: Vectors) -> FloatArray:
    """Return the response of a filter at each clip of a curve, which is 0 before and after the video.

    >>> response(np.array([0.0, 1.0, 1.0, 0.0]), np.array([-1.0, 1.0, 0.0])).tolist()
    [0.0, 1.0, 0.0, -1.0]
    """
    half = len(kernel) // 2
    full = np.convolve(np.asarray(curve, np.float64), np.asarray(kernel, np.float64)[::-1])
    result: FloatArray = full[half : len(full) - half]
    return result


def log_shares(values: FloatArray, window: int) -> FloatArray:
    """Return the log softmax over all clips, or in a long video over the ``window`` clips around each.

    A start in a film of two hours need not stand out from 4,800 clips, more than the model was trained on.

    >>> np.exp(log_shares(np.zeros(4), 100)).tolist(), np.exp(log_shares(np.zeros(4), 2)).tolist()
    ([0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.5, 0.5])
    """
    window = min(window, len(values))
    views = sliding_window_view(values, window)
    highest = views.max(axis=1)
    total = highest + np.log(np.exp(views - highest[:, None]).sum(axis=1))
    own = np.clip(np.arange(len(values)) - window // 2, 0, len(values) - window)
    result: FloatArray = values - total[own]
    return result
