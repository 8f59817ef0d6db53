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
the odds that a clip is right (:meth:`Scale.log_odds`), fitted on judged queries and absent things. Hits are ordered
by these, and a level is a range of them.
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
"""Evidence by labels from which a hit that stands out is strong, and any hit is fair (docs/searching.md)."""
LABELLED_FAIR_CHANCE = 0.5
"""Chance below which a hit is fair where labels can make it strong: it need only be worth a look."""
ODDS_WEIGHTS, ODDS_BASE = (21.6, 0.6, 6.0), -5.0
"""Weights of CLIP's margin, of the surplus and of the labels in the log odds, and the base, fitted on judged hits."""
STRONG_PROBABILITY, FAIR_PROBABILITY = 0.9, 0.3
"""Probabilities from which a hit is strong, or fair, where CLIP has looked."""
MAX_SURPLUS = 10.0
"""Spreads up to which the surplus counts: where most clips are alike (a camera that films a wall), all stands out."""
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

    @property
    def scenes(self) -> float:
        """Number of scenes in the library, as far as it counts."""
        return min(max(1.0, self.clips / SCENE_CLIPS), MAX_SCENES)

    def z(self, score: float) -> float:
        """How many spreads a score lies above the centre."""
        return (score - self.centre) / self.spread

    def chance(self, score: float) -> float:
        """How often the best of as many clips that have nothing to do with the query would score as high.

        >>> round(Scale(0.0, 1.0, 400).chance(3.0), 3)
        0.126
        """
        return -math.expm1(-self.scenes * 0.5 * math.erfc(self.z(score) / math.sqrt(2)))

    def level(self, score: float) -> Level:
        """How sure a hit with this score is; a tiny library is never sure, and never sure of the opposite."""
        if self.clips < MIN_CLIPS:
            return "fair"
        chance = self.chance(score)
        return "strong" if chance < STRONG_CHANCE else "fair" if chance < FAIR_CHANCE else "weak"

    def log_odds(self, scores: ArrayLike, labels: ArrayLike, margins: ArrayLike) -> FloatArray:
        """The log odds that each clip shows what is asked for, given its score, evidence by labels and CLIP's margin.

        A logistic regression on the margin, on how many spreads the score lies above what the best of as many clips
        would reach by chance, and on the labels. Where CLIP has not looked (NaN) the margin counts as 0.

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


def odds_level(odds: float) -> Level:
    """How sure a hit with these log odds is.

    >>> [odds_level(x) for x in (-3.0, 0.0, 3.0)]
    ['weak', 'fair', 'strong']
    """
    probability = 1 / (1 + math.exp(-odds))
    return "strong" if probability >= STRONG_PROBABILITY else "fair" if probability >= FAIR_PROBABILITY else "weak"


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
