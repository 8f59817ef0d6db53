"""The confidence of a hit: strong, fair or weak, judged by how the query scores on the rest of the library.

A cosine means little by itself: 0.25 is high for one encoder and one query, and low for others. What matters is how far
a score stands out. Let ``m`` be the median of the query's scores over the library's clips and ``s`` its spread, the
larger distance from the median to a quartile, divided by 0.6745 (for a normal distribution that is the standard
deviation; a quarter of the clips may be relevant without changing it). For a score ``x`` with ``z = (x - m) / s``,

    chance(x) = 1 - exp(-n Q(z))        Q(z) = P(normal > z)

is the probability that the best of ``n`` clips unrelated to the query scores as high: in a large library something
always looks a little like anything. ``n`` counts scenes rather than clips, because clips of a scene are alike, and it
is capped, because the tail of a real distribution is not normal. docs/measurements/search-quality.md has the resulting
error rates on planted and on absent moments.

An encoder that recognises things by label also gives absolute evidence: the probability of the labels that the query
names. A strong hit then needs this evidence (:meth:`Scale.labelled_level`). Standing out alone makes a hit fair at
most, because on real videos something stands out even for most things that do not occur.

If CLIP has also encoded the clips, its margin (how much better the query fits than common words do) is a second
absolute sign. All three together give the odds that a clip is right (:meth:`Scale.log_odds`), fitted on judged queries
and on queries for absent things. Hits are ranked by these odds, and each level is a range of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.moments.arrays import FloatArray
from momentseek.search.hit import Level

STRONG_CHANCE, FAIR_CHANCE = 1e-3, 0.15
"""Chances below which a hit is strong, or fair."""
STRONG_EVIDENCE, FAIR_EVIDENCE = 0.3, 0.05
"""Label probabilities from which a hit that stands out is strong, and any hit is fair (search-quality.md)."""
LABELLED_FAIR_CHANCE = 0.5
"""Chance below which a hit is fair if labels can make hits strong: it need only be worth a look."""
ODDS_WEIGHTS, ODDS_BASE = (21.6, 0.6, 6.0), -5.0
"""Weights of CLIP's margin, the surplus and the labels in the log odds, and their constant, fitted on judged hits."""
STRONG_PROBABILITY, FAIR_PROBABILITY = 0.9, 0.3
"""Probabilities from which a hit is strong, or fair, if CLIP has encoded the clips."""
MAX_SURPLUS = 10.0
"""Limit of the surplus, in spreads: if most clips are alike (a camera that films a wall), everything stands out."""
TOLERATED_SPREADS = 1.0
"""Spreads above the median from which something to avoid counts."""
MIN_CLIPS = 24
"""Number of clips (half a minute) below which a library is too small to judge what is usual."""
SCENE_CLIPS = 4
"""Approximate number of clips in a scene."""
MAX_SCENES = 2500
"""Largest value of ``n``."""
NORMAL_QUARTILE = 0.6744897501960817
"""Distance of a normal distribution's quartile from its median, in standard deviations."""
LEVELS: tuple[Level, ...] = ("weak", "fair", "strong")
"""All levels, the least confident first."""


@dataclass(frozen=True)
class Scale:
    """The distribution of a query's scores on a library's clips, by which single scores are judged.

    >>> scale = Scale.of(np.sin(np.arange(4000.0)))
    >>> [scale.level(x) for x in (1.0, 4.5, 8.0)]
    ['weak', 'fair', 'strong']
    """

    centre: float
    """Median of the scores."""
    spread: float
    """Scatter of the scores; the standard deviation if they are normal."""
    clips: int
    """Number of clips in the library."""

    @classmethod
    def of(cls, scores: ArrayLike, clips: int | None = None) -> Scale:
        """Estimate the scale from the scores of a sample of the library's ``clips``."""
        values = np.asarray(scores, dtype=np.float64)
        low, centre, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist() if len(values) else (0.0, 0.0, 0.0)
        spread = max(centre - low, high - centre) / NORMAL_QUARTILE
        return cls(float(centre), float(max(spread, 1e-6)), len(values) if clips is None else clips)

    @property
    def scenes(self) -> float:
        """Estimated number of scenes in the library, up to ``MAX_SCENES``."""
        return min(max(1.0, self.clips / SCENE_CLIPS), MAX_SCENES)

    def z(self, score: float) -> float:
        """How many spreads a score lies above the centre."""
        return (score - self.centre) / self.spread

    def chance(self, score: float) -> float:
        """Probability that the best clip of a library of this size scores as high without being related to the query.

        >>> round(Scale(0.0, 1.0, 400).chance(3.0), 3)
        0.126
        """
        return -math.expm1(-self.scenes * 0.5 * math.erfc(self.z(score) / math.sqrt(2)))

    def level(self, score: float) -> Level:
        """The level of a hit with this score; always fair in a tiny library."""
        if self.clips < MIN_CLIPS:
            return "fair"
        chance = self.chance(score)
        return "strong" if chance < STRONG_CHANCE else "fair" if chance < FAIR_CHANCE else "weak"

    def log_odds(self, scores: ArrayLike, labels: ArrayLike, margins: ArrayLike) -> FloatArray:
        """The log odds that each clip matches the query, given its score, label probability and CLIP's margin.

        A logistic regression on the margin, on the surplus (how many spreads the score lies above what the best of as
        many clips would reach by chance), and on the labels. If CLIP has not encoded a clip (NaN), its margin counts as
        0.

        >>> odds = Scale(0.0, 1.0, 400).log_odds([6, 3], [0, 0], [0.3, 0.1])
        >>> [odds_level(x) for x in odds]
        ['strong', 'weak']
        >>> [odds_level(x) for x in Scale(0.0, 1e-6, 400).log_odds([-1, 1], [0, 0], [0, 0])]
        ['weak', 'fair']
        """
        best = NormalDist().inv_cdf(0.5 ** (1 / self.scenes))
        surplus = (np.asarray(scores, np.float64) - self.centre) / self.spread - best
        surplus = np.clip(surplus, -MAX_SURPLUS, MAX_SURPLUS)
        signs = [np.nan_to_num(np.asarray(margins, np.float64)), surplus, np.asarray(labels, np.float64)]
        weighted = [weight * sign for weight, sign in zip(ODDS_WEIGHTS, signs, strict=True)]
        return np.asarray(sum(weighted, start=np.asarray(ODDS_BASE)), np.float64)

    def labelled_level(self, scores: ArrayLike, evidence: ArrayLike) -> Level:
        """The level of a hit, given the scores of its clips and the probabilities of the labels that the query names.

        It is strong if one clip both stands out and has a high probability. In a tiny library any clip counts as
        standing out.

        >>> scale = Scale(0.0, 1.0, 400)
        >>> pairs = (([9.0], [0.0]), ([1.0, 5.0], [0.0, 0.4]), ([1.0], [0.4]), ([1.0], [0.0]))
        >>> [scale.labelled_level(*pair) for pair in pairs]
        ['fair', 'strong', 'fair', 'weak']
        """
        values, sure = np.asarray(scores, np.float64), np.asarray(evidence, np.float64)
        tiny = self.clips < MIN_CLIPS
        named = values[sure >= STRONG_EVIDENCE]
        if len(named) and (tiny or self.chance(float(named.max())) < FAIR_CHANCE):
            return "strong"
        known = tiny or sure.max() >= FAIR_EVIDENCE or self.chance(float(values.max())) < LABELLED_FAIR_CHANCE
        return "fair" if known else "weak"


def odds_level(odds: float) -> Level:
    """The level of a hit with these log odds.

    >>> [odds_level(x) for x in (-3.0, 0.0, 3.0)]
    ['weak', 'fair', 'strong']
    """
    probability = 1 / (1 + math.exp(-odds))
    return "strong" if probability >= STRONG_PROBABILITY else "fair" if probability >= FAIR_PROBABILITY else "weak"


def combined_level(levels: Iterable[Level]) -> Level:
    """The level of a hit that several streams found: the highest of theirs; two fair streams make it strong.

    >>> combined_level(["weak", "fair"]), combined_level(["fair", "fair"])
    ('fair', 'strong')
    """
    given = list(levels)
    if given.count("fair") > 1:
        return "strong"
    return max(given, key=LEVELS.index, default="weak")


def evidence(scores: ArrayLike, width: int = 3) -> float:
    """The score that decides a span's level: the best mean of ``width`` clips in a row, less noisy than the best clip.

    >>> evidence([0, 3, 3, 3, 0]), evidence([2, 4])
    (3.0, 3.0)
    """
    values = np.asarray(scores, dtype=np.float64)
    width = min(width, len(values))
    return float(np.convolve(values, np.full(width, 1 / width), "valid").max())
