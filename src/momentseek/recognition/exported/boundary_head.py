"""The filters by which XML and ReLoCLNet find where a moment starts and ends, evaluated in numpy.

The same formulas as ``models.inference``: the filters' responses on the query-clip curve become probabilities by a
softmax over the clips, a span's score is ``log p_start + log p_end + alpha * match`` (TVR, sections 4.3 and 4.4), and
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


@dataclass(frozen=True, eq=False)
class Boundaries:
    """What a trained model says of where moments start and end in a video."""

    start: FloatArray
    """(T,) logarithm of the probability that the moment starts with this clip."""
    end: FloatArray
    """(T,) that it ends with it."""
    shortest: int
    longest: int
    match: float
    """How well the video as a whole answers."""
    less: FloatArray
    """(T,) what a clip takes off, for what it shows that is to be avoided."""
    end_time: EndTime = "inclusive"
    alpha: float = 1.0
    """What ``match`` weighs in the score of each of its spans."""

    @property
    def max_score(self) -> float:
        """No span of the video scores higher: probabilities are at most 1."""
        return self.alpha * self.match

    def part(self, first: int, last: int) -> Boundaries:
        """Clips ``first`` to ``last`` (exclusive) alone."""
        at = slice(first, last)
        return replace(self, start=self.start[at], end=self.end[at], less=self.less[at])


@dataclass(frozen=True, eq=False)
class BoundaryHead:
    """A trained model's start and end filters, with the settings by which spans are scored."""

    start: Vectors
    """The filter that answers to where a moment starts."""
    end: Vectors
    shortest: int
    longest: int
    alpha: float
    modalities: int
    window: int
    """Clips of the longest video the model was trained on: in longer ones, the clips one start competes with."""
    end_time: EndTime = "inclusive"

    @classmethod
    def of(cls, about: EncoderManifest) -> BoundaryHead:
        """The head that an exported model's manifest describes."""
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
        """The bounds of a video from its ``curve`` and its score ``match``; ``less`` is taken off the clips' share."""
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
        """A video's score: for each modality its best clip, and these added up (vectors are scaled so that this is the
        mean of cosines).

        >>> head = BoundaryHead(np.ones(1), np.ones(1), 1, 4, 20.0, 2, 100)
        >>> clips = np.array([[0.7, 0.0, 0.1, 0.0], [0.1, 0.0, 0.0, 0.7]], np.float32)
        >>> round(head.match(clips, np.array([0.7, 0.0, 0.0, 0.7], np.float32)), 2)
        0.98
        """
        width = len(query) // self.modalities
        sides = (slice(at, at + width) for at in range(0, len(query), width))
        return float(sum((clips[:, side] @ query[side]).max() for side in sides))

    def probes(self, query: Vectors) -> Vectors:
        """What to scan for: the query, and each of its modalities alone, as a row of length 1 each.

        The scan finds the best clip of all modalities together, and a video may be best by different clips in each.

        >>> BoundaryHead(np.ones(1), np.ones(1), 1, 4, 20.0, 2, 100).probes(np.float32([0.6, 0.8])).tolist()
        [[0.6000000238418579, 0.800000011920929], [1.0, 0.0], [0.0, 1.0]]
        """
        rows = [query]
        if self.modalities > 1:
            owner = np.arange(len(query)) // (len(query) // self.modalities)
            rows += [np.where(owner == part, query, 0) for part in range(self.modalities)]
        table = np.stack([row for row in rows if np.linalg.norm(row) > 0])
        return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True), np.float32)


def response(curve: Vectors, kernel: Vectors) -> FloatArray:
    """Response of a filter at each clip of a curve, which counts as 0 before and after the video.

    >>> response(np.array([0.0, 1.0, 1.0, 0.0]), np.array([-1.0, 1.0, 0.0])).tolist()
    [0.0, 1.0, 0.0, -1.0]
    """
    half = len(kernel) // 2
    full = np.convolve(np.asarray(curve, np.float64), np.asarray(kernel, np.float64)[::-1])
    result: FloatArray = full[half : len(full) - half]
    return result


def log_shares(values: FloatArray, window: int) -> FloatArray:
    """Logarithms of the softmax over all clips, or in a long video over the ``window`` clips about each.

    A start in a film of two hours need not stand out from 4,800 clips, more than the model ever saw.

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
