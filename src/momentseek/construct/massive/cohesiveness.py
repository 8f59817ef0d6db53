"""Whether a pool's positives talk of the same things and its negatives do not (MVMR, section 5.2 and Figure 4)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.construct.text import words as words_of
from momentseek.moments.arrays import FloatArray, IntArray

HISTOGRAM_BINS = 10


@dataclass(frozen=True)
class Cohesiveness:
    """How many words a set's videos share: mean co-occurrence ratio, and its histogram in ten bins of [0, 1]."""

    mean: float
    histogram: tuple[float, ...]
    words: int


def video_words(sentences: Iterable[Iterable[str]]) -> list[IntArray]:
    """Number the distinct words of each video.

    >>> [w.tolist() for w in video_words([["A man runs.", "he runs"], ["the MAN sits"]])]
    [[0, 1, 2, 3], [4, 1, 5]]
    """
    numbers: dict[str, int] = {}
    found = []
    for some in sentences:
        words = dict.fromkeys(itertools.chain.from_iterable(words_of(s) for s in some))
        found.append(np.array([numbers.setdefault(w, len(numbers)) for w in words], dtype=np.int64))
    return found


def cooccurrence_ratios(words: Sequence[IntArray]) -> tuple[FloatArray, IntArray]:
    """Each word's co-occurrence ratio in a set of n videos, and how many videos have the word.

    .. math:: r(w, v) = \\frac{|\\{u \\ne v : w \\in W_u\\}|}{n - 1}

    The ratio is the same for all videos that have the word, and counts once for each of them.

    >>> ratio, times = cooccurrence_ratios(video_words([["man runs"], ["man sits"], ["man"]]))
    >>> ratio.tolist(), times.tolist()
    ([1.0, 0.0, 0.0], [3, 1, 1])
    """
    if len(words) < 2:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    _, times = np.unique(np.concatenate(words), return_counts=True)
    return (times - 1) / (len(words) - 1), times


def measure_cohesiveness(sets: Iterable[Sequence[int]], words: Sequence[IntArray]) -> Cohesiveness:
    """Measure cohesiveness over many sets of videos (places in ``words``); sets of one video do not count."""
    histogram = np.zeros(HISTOGRAM_BINS)
    total = 0.0
    for some in sets:
        ratio, times = cooccurrence_ratios([words[v] for v in some])
        histogram += np.bincount(
            np.minimum((ratio * HISTOGRAM_BINS).astype(np.int64), HISTOGRAM_BINS - 1), times, HISTOGRAM_BINS
        )
        total += float((ratio * times).sum())
    count = int(histogram.sum())
    if not count:
        return Cohesiveness(float("nan"), (0.0,) * HISTOGRAM_BINS, 0)
    return Cohesiveness(total / count, tuple((histogram / count).round(4).tolist()), count)
