"""How sure a hit is: strong, fair or weak, judged by how the query scores on the rest of the library.

A cosine means little by itself: 0.25 is high for one encoder and one query, and low for others. What can be said is how
far a score stands out. Let ``m`` be the median of the query's scores over the library's clips and ``s`` its spread, the
larger distance from the median to a quartile, divided by 0.6745 (for a normal distribution that is the standard
deviation; a quarter of the clips may be relevant without changing it). For a score ``x`` with ``z = (x - m) / s``,

    chance(x) = 1 - exp(-n Q(z))        Q(z) = P(normal > z)

is how often the best of ``n`` clips that have nothing to do with the query would score as high: in a large library
something always looks a little like anything. ``n`` counts scenes rather than clips, since clips of a scene are alike,
and stops growing at a point, since a real distribution's tail is not normal. docs/searching.md has the rates that this
gives on planted and on absent moments.

An encoder that knows what it sees by name gives absolute evidence besides: the probability of labels that the query
names. That is what "strong" then means (:meth:`Scale.labelled_level`); standing out makes a hit fair at most, since on
real videos something stands out for most things that are nowhere.

Where CLIP looked too, how much better the query fits than usual words do is a second absolute sign, and all three make
one probability that the hit is right (:meth:`Scale.probability`), fitted on judged queries and absent things. Then a
level is a range of that probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.moments.arrays import FloatArray
from momentseek.search.hit import Level

STRONG_CHANCE, FAIR_CHANCE = 1e-3, 0.15
"""Chances below which a hit is strong, or fair."""
STRONG_EVIDENCE, FAIR_EVIDENCE = 0.3, 0.05
"""Evidence by labels from which a hit that stands out is strong, and any hit is fair (docs/searching.md)."""
LABELLED_FAIR_CHANCE = 0.5
"""Chance below which a hit is fair where labels can make it strong: it need only be worth a look."""
LOGISTIC = (16.5, 0.34, 4.7, -3.8)
"""Weights of CLIP's margin, of the surprise and of the labels, and the base, fitted on judged hits."""
MAX_SURPRISE = 6.0
"""Powers of ten of a chance beyond which nothing is added."""
STRONG_PROBABILITY, FAIR_PROBABILITY = 0.85, 0.3
"""Probabilities from which a hit is strong, or fair, where CLIP has looked."""
TOLERATED_SPREADS = 1.0
"""Spreads above the usual from which something to avoid counts."""
MIN_CLIPS = 24
"""Clips (half a minute) below which a library says nothing about what is usual."""
SCENE_CLIPS = 4
"""Clips of one scene, roughly."""
MAX_SCENES = 2500
"""Scenes at which ``n`` stops growing."""
NORMAL_QUARTILE = 0.6744897501960817
"""Distance of a normal distribution's quartile from its median, in standard deviations."""
LEVELS: tuple[Level, ...] = ("weak", "fair", "strong")
"""All levels, the least sure first."""


@dataclass(frozen=True)
class Scale:
    """How a query scores on a library's clips in general, against which a single score is judged.

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
        """The scale that the scores of a sample of the library's ``clips`` show."""
        values = np.asarray(scores, dtype=np.float64)
        low, centre, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist() if len(values) else (0.0, 0.0, 0.0)
        spread = max(centre - low, high - centre) / NORMAL_QUARTILE
        return cls(float(centre), float(max(spread, 1e-6)), len(values) if clips is None else clips)

    def z(self, score: float) -> float:
        """How many spreads a score lies above the centre."""
        return (score - self.centre) / self.spread

    def chance(self, score: float) -> float:
        """How often the best of as many clips that have nothing to do with the query would score as high.

        >>> round(Scale(0.0, 1.0, 400).chance(3.0), 3)
        0.126
        """
        scenes = min(max(1.0, self.clips / SCENE_CLIPS), MAX_SCENES)
        return -math.expm1(-scenes * 0.5 * math.erfc(self.z(score) / math.sqrt(2)))

    def level(self, score: float) -> Level:
        """How sure a hit with this score is; a tiny library is never sure, and never sure of the opposite."""
        if self.clips < MIN_CLIPS:
            return "fair"
        chance = self.chance(score)
        return "strong" if chance < STRONG_CHANCE else "fair" if chance < FAIR_CHANCE else "weak"

    def evident_level(self, scores: ArrayLike, evidence: ArrayLike) -> Level:
        """How sure a hit is, given its clips' scores and what encoders say of each: labels, CLIP's margin."""
        values, found = np.asarray(scores, np.float64), np.asarray(evidence, np.float64)
        if found.ndim == 1:
            return self.labelled_level(values, found)
        seen = np.isfinite(found[:, 1])
        if not seen.any():
            return self.labelled_level(values, found[:, 0])
        probability = self.probability(values[seen], found[seen, 0], found[seen, 1])
        return "strong" if probability >= STRONG_PROBABILITY else "fair" if probability >= FAIR_PROBABILITY else "weak"

    def probability(self, scores: FloatArray, labels: FloatArray, margins: FloatArray) -> float:
        """How probably a hit is right, given its clips' scores, evidence by labels and CLIP's margins.

        A logistic regression on the margin and the chance (as a power of ten) of the best clip and the best evidence.

        >>> scale = Scale(0.0, 1.0, 400)
        >>> [round(scale.probability(np.array([z]), np.zeros(1), np.array([m])), 2) for z, m in ((6, 0.3), (3, 0.1))]
        [0.96, 0.14]
        """
        best = int(np.argmax(scores))
        surprise = min(-math.log10(max(self.chance(float(scores[best])), 1e-300)), MAX_SURPRISE)
        by_margin, by_surprise, by_labels, base = LOGISTIC
        logit = by_margin * margins[best] + by_surprise * surprise + by_labels * labels.max() + base
        return float(1 / (1 + math.exp(-logit)))

    def labelled_level(self, scores: ArrayLike, evidence: ArrayLike) -> Level:
        """How sure a hit is, given its clips' scores and how surely labels say that each shows what is asked for.

        It is strong if one clip both stands out and has the evidence. A tiny library cannot tell what stands out.

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


def combined_level(levels: Iterable[Level]) -> Level:
    """How sure a hit is that several streams found: as the surest of them, and two that are fair make it strong.

    >>> combined_level(["weak", "fair"]), combined_level(["fair", "fair"])
    ('fair', 'strong')
    """
    given = list(levels)
    if given.count("fair") > 1:
        return "strong"
    return max(given, key=LEVELS.index, default="weak")


def evidence(scores: ArrayLike, width: int = 3) -> float:
    """What a span's level is judged by: the best mean of ``width`` clips in a row, steadier than its best clip.

    >>> evidence([0, 3, 3, 3, 0]), evidence([2, 4])
    (3.0, 3.0)
    """
    values = np.asarray(scores, dtype=np.float64)
    width = min(width, len(values))
    return float(np.convolve(values, np.full(width, 1 / width), "valid").max())
