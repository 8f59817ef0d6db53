"""`scenes`, the default: the intervals that explain the curve best, with a liking for the edges of scenes.

It grew out of TAG (Lee et al. 2025): straighten the scores by Box–Cox, know the scenes, prefer stretches that stand
above the rest. Measured on curves with known truth (docs/localising.md), three things were worth changing:

- TAG's scenes are hard and come from k-means; here every window is a candidate, and cuts and changes of the
  clips' vectors are a prior on its edges (``scene_edges``);
- the contrast of one window cannot tell three moments from their union; here all sets of disjoint intervals over a
  slowly swelling background are weighed together, exactly (``posterior``);
- of the many windows that are nearly as likely as the best, the one is chosen that overlaps the likely ones most.
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.search.localise.boxcox import straightened
from momentseek.search.localise.curve import Curve
from momentseek.search.localise.posterior import MOST, interval_posterior
from momentseek.search.localise.registry import register
from momentseek.search.localise.runs import Index
from momentseek.search.localise.scene_edges import edge_prior, edge_times
from momentseek.search.localise.spans import Spans
from momentseek.search.localise.standing import standing
from momentseek.search.localise.swell import background

SECONDS = 300.0
"""No moment is longer, unless it is the whole video."""
INDEPENDENT = 0.35
"""What one clip counts: neighbours say much the same."""
FLOOR = 0.001
"""Variance added, on the straightened scale: even a clean curve is not that sure."""
RARITY = 1.5
"""Log odds against a moment at any given place, beyond log T."""
LIKELY = 120
"""Candidates that are compared with each other."""
AGREE = 0.3
"""Overlap from which on two candidates count as the same moment."""
FEW = 1.5
"""Clips at which the height of a window counts half."""
FAINT = 0.02
"""Candidates with less than this share of the first one's worth and belief are not shown."""
KEPT = 10


@register("scenes")
def scenes(curve: Curve) -> Spans:
    """The likeliest intervals, best first.

    >>> spans = scenes(Curve.regular([0.1] * 10 + [0.5] * 5 + [0.1] * 10 + [0.4] * 5, seconds=2, shots=[20.4]))
    >>> spans.start.tolist(), spans.end.tolist()
    ([20.4, 50.0], [30.0, 60.0])
    """
    scores = curve.scores.astype(np.float64)
    values = straightened(scores)
    if not values.any():  # nothing stands out: the whole video, or nothing
        return Spans.of_clips(curve, np.array([0]), np.array([len(curve)]), [scores.mean()])
    level, spread = background(values)
    first, last, weight, height = weighed(curve, values - level, spread)
    top, chance = likeliest(first, last, weight, len(curve))
    first, last, size = first[top], last[top], (last - first)[top]
    kept, belief = chosen(agreement(first, last), chance, np.maximum(height[top], 0.0) * size / (size + FEW))
    first, last = first[kept], last[kept]
    score = standing(scores, first, last, belief, curve.level)
    single = no_union(first, last, score)
    first, last, score = first[single], last[single], score[single]
    times = edge_times(curve)
    return Spans.of_clips(curve, first, last, score, times[first], times[last])


def weighed(curve: Curve, rest: FloatArray, spread: float) -> tuple[Index, Index, FloatArray, FloatArray]:
    r"""Every window with its log likelihood ratio against background, and its mean height above it.

    .. math:: w_{ij} = c \, \frac{n \bar r |\bar r|}{2 \sigma^2} + b_i + b_j - \ln T - \rho

    with :math:`\bar r` the mean of the n clips above the background, b the prior of the edges and c what one of a
    series of dependent clips counts; c is lowered on curves so clean that the sums would overflow.
    """
    count = len(curve)
    clip = (curve.duration - float(curve.edges[0])) / count
    first, last = np.triu_indices(count + 1, 1)
    keep = last - first <= max(1, int(SECONDS / clip))
    first, last = first[keep], last[keep]
    size = last - first
    sums = np.concatenate(([0.0], np.cumsum(rest)))
    height = (sums[last] - sums[first]) / size
    prior = edge_prior(curve)
    sure = INDEPENDENT / (2 * (spread**2 + FLOOR))
    sure *= min(1.0, MOST / max(sure * float((rest**2).sum()), 1e-9))
    gain = sure * size * height * np.abs(height)
    return first, last, gain + prior[first] + prior[last] - np.log(count) - RARITY, height


def likeliest(first: Index, last: Index, weight: FloatArray, count: int) -> tuple[Index, FloatArray]:
    """The :data:`LIKELY` windows and their probabilities, that of the surest first."""
    table = np.full((count + 1, count + 1), -np.inf)
    table[first, last] = weight
    chance = interval_posterior(table)[first, last]
    top = np.arange(len(chance)) if len(chance) <= LIKELY else np.argpartition(-chance, LIKELY)[:LIKELY]
    top = top[np.lexsort((top, -chance[top]))]
    return top, chance[top]


def agreement(first: Index, last: Index) -> FloatArray:
    """0 … 1: how far each window says the same as each: (IoU − t)₊ / (1 − t) with t = :data:`AGREE`."""
    a, b = first.astype(np.float64), last.astype(np.float64)
    inter = np.minimum(b[:, None], b) - np.maximum(a[:, None], a)
    union = np.maximum(b[:, None], b) - np.minimum(a[:, None], a)  # the hull; right wherever they overlap
    result: FloatArray = np.maximum((inter / union - AGREE) / (1 - AGREE), 0.0)
    return result


def chosen(agree: FloatArray, chance: FloatArray, worth: FloatArray) -> tuple[Index, FloatArray]:
    """Windows worth showing, one after the other, and how sure each is.

    The next one is that of the greatest worth times belief, belief being the probability that agrees with it; then
    that probability is spent, so that a second window on the same place needs reasons of its own.

    >>> same = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> kept, belief = chosen(same, np.array([0.5, 0.4, 0.8]), np.ones(3))
    >>> kept.tolist(), belief.round(2).tolist()
    ([0, 2, 1], [0.86, 0.8, 0.04])
    """
    left = chance.copy()
    kept: list[int] = []
    beliefs: list[float] = []
    for _ in range(min(KEPT, len(chance))):
        belief = agree @ left
        pick = int(np.argmax(belief * worth))
        if beliefs and belief[pick] * worth[pick] <= FAINT * beliefs[0] * worth[kept[0]]:
            break
        kept.append(pick)
        beliefs.append(min(1.0, float(belief[pick])))
        left *= 1 - agree[pick]
    return np.asarray(kept, dtype=np.intp), np.asarray(beliefs)


def no_union(first: Index, last: Index, score: FloatArray) -> Index:
    """Windows without those that only glue together two better, separate ones.

    >>> no_union(np.array([0, 6, 0]), np.array([4, 9, 9]), np.array([0.3, 0.2, 0.1])).tolist()
    [0, 1]
    """
    kept: list[int] = []
    for i in np.argsort(-score, kind="stable").tolist():
        held = [k for k in kept if first[i] <= first[k] and last[k] <= last[i]]
        if not held or max(first[held]) < min(last[held]):  # those inside all share a clip: one moment
            kept.append(i)
    return np.asarray(kept, dtype=np.intp)
