"""`scenes`: the intervals that explain the curve best, with a preference for the edges of scenes.

It is based on TAG (Lee et al. 2025), which straightens the scores by Box–Cox, finds scenes, and prefers stretches that
stand above the rest. Three changes improved it on curves with known truth (docs/measurements/benchmarks.md):

- TAG's scenes are hard and come from k-means; here every window is a candidate, and cuts and changes of the clips'
  vectors are a prior on its edges (:func:`edge_prior`);
- the contrast of one window cannot tell three moments from their union; here all sets of disjoint intervals over a
  slowly varying background are weighed together, exactly (:func:`interval_posterior`);
- of the many windows that are nearly as likely as the best, the one is chosen that overlaps the likely ones most.
"""

from __future__ import annotations

import numpy as np

from momentseek.core.moments.arrays import FloatArray, Positions
from momentseek.core.native.kernels import address, call, kernels, writable
from momentseek.search.localise.localiser import LOCALISERS, Background, Curve, Floats32, Proposals

LAMBDAS: FloatArray = np.linspace(-2.0, 2.0, 41)
"""Candidate powers."""
SMALLEST_LAMBDA = 1e-8
"""λ nearer to 0 than this counts as 0: the transform is then the logarithm."""


def log_likelihoods(x: FloatArray, lambdas: FloatArray = LAMBDAS) -> FloatArray:
    r"""Profile log-likelihood of each λ for a positive sample (Box and Cox 1964).

    .. math:: \ell(\lambda) = (\lambda - 1) \sum_i \ln x_i - \frac n2 \ln \operatorname{var}(x^{(\lambda)})

    >>> skewed = np.exp(np.linspace(-2, 2, 50))
    >>> LAMBDAS[np.argmax(log_likelihoods(skewed))].round(6)  # logarithm of an exponential
    np.float64(0.0)
    """
    logs = np.log(x)
    powers = np.exp(lambdas[:, None] * logs)  # the constants −1 and, for λ ≠ 0, 1/λ do not change the shape
    plain = np.abs(lambdas) < SMALLEST_LAMBDA
    powers[plain] = logs
    scale = np.where(plain, 1.0, lambdas)
    variance = powers.var(axis=1) / scale**2
    result: FloatArray = (lambdas - 1) * logs.sum() - len(x) / 2 * np.log(np.maximum(variance, np.finfo(float).tiny))
    return result


def power_transform(x: FloatArray, lam: float) -> FloatArray:
    """The Box–Cox transform of a positive sample: (x^λ − 1) / λ, and the logarithm at λ = 0."""
    return np.log(x) if abs(lam) < SMALLEST_LAMBDA else (x**lam - 1) / lam


def two_level_share(x: FloatArray) -> float:
    """Share of a sample's variance that lies between the two groups that a threshold separates best (Otsu 1979).

    About 0.64 for a normal sample, 1 for two values.

    >>> round(two_level_share(np.array([0.0, 0.0, 1.0])), 2), round(two_level_share(np.linspace(0, 1, 100)), 2)
    (1.0, 0.75)
    """
    ordered = np.sort(x)
    sums = np.cumsum(ordered)
    low = np.arange(1, len(x))
    high = len(x) - low
    step = (sums[-1] - sums[:-1]) / high - sums[:-1] / low
    return float((low * high * step**2).max() / len(x) / ((x - x.mean()) ** 2).sum())


def straighten(scores: FloatArray, two_levels: float = 0.9, floor: float = 0.25) -> FloatArray:
    """Remove the skew of scores and scale them to 0 … 1; a constant curve becomes zeros.

    Box–Cox needs positive values and cosines have no natural zero, so the lowest score becomes ``floor`` times the
    range. Therefore the result does not change when a constant is added to the scores or when they are multiplied. λ is
    the likeliest of :data:`LAMBDAS`. A curve of two clear levels (:func:`two_level_share` above ``two_levels``) is only
    scaled: it is far from normal because it contains a moment, and transforming it would spread the noise of the low
    level over the range.

    >>> straighten(np.array([0.2, 0.21, 0.22, 0.24, 0.3])).round(2).tolist()
    [0.0, 0.28, 0.46, 0.69, 1.0]
    """
    low, high = float(scores.min()), float(scores.max())
    if high - low <= 1e-6 * max(abs(low), abs(high), 1e-6):
        return np.zeros(len(scores))
    x = (scores - low) / (high - low)
    if two_level_share(x) <= two_levels:
        x = power_transform(x + floor, float(LAMBDAS[np.argmax(log_likelihoods(x + floor))]))
    result: FloatArray = (x - x.min()) / (x.max() - x.min())
    return result


MAX_MOMENT_SECONDS = 300.0
"""Longest moment; only if nothing stands out is the whole video proposed instead."""
CLIP_WEIGHT = 0.35
"""Weight of one clip as evidence; below 1, because neighbouring clips are correlated."""
MIN_VARIANCE = 0.001
"""Added to the variance on the straightened scale, because even a clean curve is not completely certain."""
MOMENT_RARITY = 1.5
"""Log odds against a moment at any given place, beyond log T."""
MAX_COMPARED_WINDOWS = 120
"""Number of most likely windows that are compared with each other."""
MIN_AGREEMENT_IOU = 0.3
"""IoU above which two windows begin to count as the same moment."""
HALF_VALUE_CLIPS = 1.5
"""Number of clips at which the height of a window counts half."""
MIN_VALUE_SHARE = 0.02
"""Share of the first window's value times belief below which a window is not proposed."""
MAX_PROPOSALS = 10


@LOCALISERS.register("scenes")
def scenes(curve: Curve) -> Proposals:
    """Propose the most likely intervals, best first.

    >>> spans = scenes(Curve.regular([0.1] * 10 + [0.5] * 5 + [0.1] * 10 + [0.4] * 5, seconds=2, shots=[20.4]))
    >>> spans.start.tolist(), spans.end.tolist()
    ([20.4, 50.0], [30.0, 60.0])
    """
    scores = curve.scores.astype(np.float64)
    values = straighten(scores)
    if not values.any():  # nothing stands out: propose the whole video
        return Proposals.of_clips(curve, np.array([0]), np.array([len(curve)]), [scores.mean()])
    level, spread = fit_background(values)
    first, last, weight, height = weigh_windows(curve, values - level, spread)
    top, chance = likeliest_windows(first, last, weight, len(curve))
    first, last, size = first[top], last[top], (last - first)[top]
    value = np.maximum(height[top], 0.0) * size / (size + HALF_VALUE_CLIPS)
    chosen, belief = choose_windows(agreement(first, last), chance, value)
    first, last = first[chosen], last[chosen]
    score = comparable_scores(scores, first, last, belief, curve.background)
    single = windows_without_unions(first, last, score)
    first, last, score = first[single], last[single], score[single]
    times = edge_times(curve)
    return Proposals.of_clips(curve, first, last, score, times[first], times[last])


# all windows and their evidence


def weigh_windows(curve: Curve, rest: FloatArray, spread: float) -> tuple[Positions, Positions, FloatArray, FloatArray]:
    r"""First clip, last clip (exclusive), log likelihood ratio against background and mean height of every window.

    .. math:: w_{ij} = c \, \frac{n \bar r |\bar r|}{2 \sigma^2} + b_i + b_j - \ln T - \rho

    where :math:`\bar r` is the mean height of the n clips above the background, b the prior of the edges, and c the
    weight of one clip among correlated clips; c is reduced on curves so clean that the sums would overflow.
    """
    count = len(curve)
    clip = (curve.duration - float(curve.edges[0])) / count
    first, last = np.triu_indices(count + 1, 1)
    keep = last - first <= max(1, int(MAX_MOMENT_SECONDS / clip))
    first, last = first[keep], last[keep]
    size = last - first
    sums = np.concatenate(([0.0], np.cumsum(rest)))
    height = (sums[last] - sums[first]) / size
    prior = edge_prior(curve)
    factor = CLIP_WEIGHT / (2 * (spread**2 + MIN_VARIANCE))
    factor *= min(1.0, MAX_LOG_WEIGHT / max(factor * float((rest**2).sum()), 1e-9))
    gain = factor * size * height * np.abs(height)
    return first, last, gain + prior[first] + prior[last] - np.log(count) - MOMENT_RARITY, height


def likeliest_windows(
    first: Positions, last: Positions, weight: FloatArray, count: int
) -> tuple[Positions, FloatArray]:
    """Positions of the :data:`MAX_COMPARED_WINDOWS` most likely windows, best first, and their probabilities."""
    table = np.full((count + 1, count + 1), -np.inf)
    table[first, last] = weight
    chance = interval_posterior(table)[first, last]
    most = MAX_COMPARED_WINDOWS
    top = np.arange(len(chance)) if len(chance) <= most else np.argpartition(-chance, most)[:most]
    top = top[np.lexsort((top, -chance[top]))]
    return top, chance[top]


def agreement(first: Positions, last: Positions) -> FloatArray:
    """How far each pair of windows agrees, 0 … 1: (IoU − t)₊ / (1 − t), t = MIN_AGREEMENT_IOU."""
    a, b = first.astype(np.float64), last.astype(np.float64)
    inter = np.minimum(b[:, None], b) - np.maximum(a[:, None], a)
    union = np.maximum(b[:, None], b) - np.minimum(a[:, None], a)  # the hull, which equals the union if they overlap
    result: FloatArray = np.maximum((inter / union - MIN_AGREEMENT_IOU) / (1 - MIN_AGREEMENT_IOU), 0.0)
    return result


def choose_windows(agree: FloatArray, chance: FloatArray, value: FloatArray) -> tuple[Positions, FloatArray]:
    """Positions of the windows to propose, one after the other, and the belief in each.

    Each step chooses the window with the highest value times belief, where belief is the total probability of the
    windows that agree with it. That probability is then used up, so that a second window at the same place needs its
    own evidence.

    >>> same = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> chosen, belief = choose_windows(same, np.array([0.5, 0.4, 0.8]), np.ones(3))
    >>> chosen.tolist(), belief.round(2).tolist()
    ([0, 2, 1], [0.86, 0.8, 0.04])
    """
    left = chance.copy()
    chosen: list[int] = []
    beliefs: list[float] = []
    for _ in range(min(MAX_PROPOSALS, len(chance))):
        belief = agree @ left
        pick = int(np.argmax(belief * value))
        if beliefs and belief[pick] * value[pick] <= MIN_VALUE_SHARE * beliefs[0] * value[chosen[0]]:
            break
        chosen.append(pick)
        beliefs.append(min(1.0, float(belief[pick])))
        left *= 1 - agree[pick]
    return np.asarray(chosen, dtype=np.intp), np.asarray(beliefs)


def windows_without_unions(first: Positions, last: Positions, score: FloatArray) -> Positions:
    """Positions of the windows, best first, without those that only join two better, separate windows.

    >>> windows_without_unions(np.array([0, 6, 0]), np.array([4, 9, 9]), np.array([0.3, 0.2, 0.1])).tolist()
    [0, 1]
    """
    stay: list[int] = []
    for i in np.argsort(-score, kind="stable").tolist():
        inner = [k for k in stay if first[i] <= first[k] and last[k] <= last[i]]
        if not inner or max(first[inner]) < min(last[inner]):  # the windows inside all share a clip: one moment
            stay.append(i)
    return np.asarray(stay, dtype=np.intp)


# the background: the slowly varying score of the query outside of moments

ABOVE_WEIGHT = 0.1
"""Weight of clips that stand out, because they are more likely part of a moment than of the background."""
STIFFNESS = 0.15
"""Penalty on slope and bend, per clip."""
FIRST_QUANTILE = 0.3
"""Quantile to start from; below the median, because moments may fill more than half of a short video."""
MAX_ROUNDS = 6


def fit_background(values: FloatArray) -> tuple[FloatArray, float]:
    """Fit a stiff parabola under the curve; returns its values and the spread of the clips around it.

    Least squares in which clips more than one spread above weigh :data:`ABOVE_WEIGHT`, with a ridge on slope and bend
    so that a plateau is not taken for drift. The spread is that of the clips below, because moments only add to the
    score.

    >>> level, spread = fit_background(np.array([0.0, 0.1, 0.0, 0.1] * 8 + [0.9] * 8))
    >>> bool(level.max() < 0.3), round(spread, 2)
    (True, 0.05)
    """
    t = np.linspace(-1, 1, len(values))
    basis = np.stack((np.ones_like(t), t, t * t))
    ridge = np.diag([1e-9, 1.0, 1.0]) * STIFFNESS * len(values)
    level: FloatArray = np.full(len(values), np.quantile(values, FIRST_QUANTILE))
    outstanding = np.zeros(len(values), dtype=bool)
    for _ in range(MAX_ROUNDS):
        before, outstanding = outstanding, values - level > _spread_below(values - level)
        if (outstanding == before).all():
            break
        weighted = basis * np.where(outstanding, ABOVE_WEIGHT, 1.0)
        level = np.linalg.solve(weighted @ basis.T + ridge, weighted @ values) @ basis
    return level, _spread_below(values - level)


def _spread_below(rest: FloatArray) -> float:
    """Root mean square of the negative values."""
    below = rest[rest < 0]
    return float(np.sqrt((below**2).mean())) if len(below) else 0.0


# the edges of scenes: the prior probability that a moment begins or ends between two clips

CUT_PRIOR, CHANGE_PRIOR, END_PRIOR = 2.5, 2.5, 1.0
"""Log prior of a cut, of the clearest change of vectors, and of the ends of the video: a bonus, not a rule."""
COMPARED_CLIPS = 4
"""Number of clips on either side of a boundary that are compared."""
CLEAR_DEVIATIONS = 6.0
"""Changes this many deviations above the median count in full."""
LEAST_DEVIATION = 1e-9
"""A median deviation below this counts as zero; the mean deviation is used instead."""
SLOPE_SHARE = 0.6
"""Factor for a change that is not a local maximum, because its neighbour is more likely the edge."""


def edge_prior(curve: Curve) -> FloatArray:
    """(T + 1,) log prior, up to a constant, of a moment's edge at each boundary of clips.

    The evidence is a cut, a change of the clips' vectors, or an end of the video.

    >>> edge_prior(Curve.regular([0.1] * 6, seconds=2, shots=[4.2])).tolist()
    [1.0, 0.0, 2.5, 0.0, 0.0, 0.0, 1.0]
    """
    prior = np.zeros(len(curve) + 1)
    if curve.features is not None and len(curve) > 4:
        prior[1:-1] = CHANGE_PRIOR * clear_changes(curve.features)
    cuts, _ = curve.cuts
    prior[cuts] = np.maximum(prior[cuts], CUT_PRIOR)
    prior[[0, -1]] = END_PRIOR
    return prior


def clear_changes(features: Floats32) -> FloatArray:
    """(T − 1,) clearness, 0 … 1, of the change of the clips' vectors at each inner boundary.

    >>> clear_changes(np.repeat(np.eye(2, dtype=np.float32), 8, axis=0)).round(2).tolist()[5:10]
    [0.14, 0.31, 0.91, 0.31, 0.14]
    """
    if kernels() is None or len(features) < 2:
        return clearness(feature_change(features))
    rows = np.ascontiguousarray(features, np.float32)
    clear = np.empty(len(rows) - 1)
    call(
        kernels().clear_changes, address(rows, np.float32, *rows.shape), *rows.shape, COMPARED_CLIPS, LEAST_DEVIATION,
        CLEAR_DEVIATIONS, SLOPE_SHARE, writable(clear, np.float64, len(clear)),
    )  # fmt: skip
    return clear


def feature_change(features: Floats32, width: int = COMPARED_CLIPS) -> FloatArray:
    """(T − 1,) squared distance of the mean vectors before and after each inner boundary, over ``width`` clips each.

    There are fewer clips to average near the ends; the factor n₁n₂ / (n₁ + n₂) compensates for their larger variance.

    >>> feature_change(np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32)).round(3).tolist()
    [0.667, 2.0, 0.667]
    """
    count = len(features)
    sums = np.concatenate((np.zeros((1, features.shape[1])), np.cumsum(features, axis=0, dtype=np.float64)))
    at = np.arange(1, count)
    low, high = np.maximum(at - width, 0), np.minimum(at + width, count)
    before, after = at - low, high - at
    step = (sums[at] - sums[low]) / before[:, None] - (sums[high] - sums[at]) / after[:, None]
    result: FloatArray = (step**2).sum(1) * before * after / (before + after)
    return result


def clearness(values: FloatArray) -> FloatArray:
    """How far changes are above the median change, 0 … 1; local maxima count in full, their slopes in part."""
    middle = float(np.median(values))
    deviation = 1.4826 * float(np.median(np.abs(values - middle)))
    if deviation <= LEAST_DEVIATION:
        deviation = max(float(np.abs(values - middle).mean()), LEAST_DEVIATION)
    clear = np.clip((values - middle) / deviation / CLEAR_DEVIATIONS, 0.0, 1.0)
    around = np.concatenate(([-np.inf], values, [-np.inf]))
    top = (values >= around[:-2]) & (values > around[2:])
    result: FloatArray = np.where(top, clear, SLOPE_SHARE * clear)
    return result


def edge_times(curve: Curve) -> FloatArray:
    """(T + 1,) times of the clips' boundaries: that of the nearest cut that belongs to the boundary, or else its own.

    >>> edge_times(Curve.regular([0.1] * 4, seconds=2, shots=[4.2, 4.5])).tolist()
    [0.0, 2.0, 4.2, 6.0, 8.0]
    """
    times = curve.edges.copy()
    edge, cut = curve.cuts
    order = np.argsort(-np.abs(cut - curve.edges[edge]), kind="stable")  # the nearest is written last
    times[edge[order]] = cut[order]
    return times


# sets of moments: a greedy search for the best interval takes three separate moments for one long moment, because their
# union, even with the gaps, stands out more than each of them; comparing whole sets of disjoint intervals does not

MAX_LOG_WEIGHT = 500.0
"""Largest sum of the weights of a set, to prevent overflow; :func:`weigh_windows` stays below it."""


def interval_posterior(weights: FloatArray) -> FloatArray:
    r"""Probability that [i, j) is one of the moments of a video that has any number of disjoint moments.

    ``weights`` (T + 1, T + 1) holds the log likelihood ratio (with prior) of [i, j) against background in the upper
    triangle, −∞ if there is no such interval. The weight of a set of intervals, at least one clip apart, is the sum of
    their weights. Let F(i) be the sum over all sets on the clips before i that leave out clip i − 1, and B(j) the same
    for the clips after j; then

    .. math:: p(i, j) = F(i) \, e^{w_{ij}} \, B(j) / Z

    >>> w = np.full((3, 3), -np.inf)
    >>> w[0, 1] = w[1, 2] = 0.0  # sets: none, first, second (both would touch)
    >>> interval_posterior(w)[0, 1].round(4)
    np.float64(0.3333)
    """
    odds = np.exp(weights)
    forward, last = _set_sums(np.ascontiguousarray(odds.T))
    backward, _ = _set_sums(np.ascontiguousarray(odds[::-1, ::-1]))
    total = forward[-1] + last
    result: FloatArray = odds * (forward / total)[:, None]
    result *= backward[::-1]
    return result


def _set_sums(rows: FloatArray) -> tuple[FloatArray, float]:
    """F(0 … T) and the sum over sets that end with the last clip, given the odds of the intervals by end and start."""
    count = len(rows) - 1
    sums = np.zeros(count + 1)
    sums[0] = 1.0
    ended = 0.0
    for j in range(1, count + 1):
        sums[j] = sums[j - 1] + ended
        ended = float(rows[j, :j] @ sums[:j])
    return sums, ended


# scores that can be compared across videos

DOUBT_CLIPS = 4.0
"""Shrinkage, in clips: the mean of few clips is drawn towards the mean around them."""
CONTRAST_WEIGHT = 5.0
"""How much standing out within the video counts, in addition to the level itself (measured)."""
BELIEF_POWER = 0.25
"""Power of the belief, because a belief from a single curve is overconfident."""


def comparable_scores(
    scores: FloatArray,
    first: Positions,
    last: Positions,
    belief: FloatArray | float = 1.0,
    level: Background | None = None,
) -> FloatArray:
    r"""Scores by which spans of all videos are ranked together: a span's level, plus a share of its contrast.

    .. math:: o + (1 + c) \, p^{1/4} \, \frac{n}{n + k} \, (m - o)

    where m is the mean inside, o the mean outside, n the number of clips, and p the belief that there is a moment.
    Contrast alone would prefer videos with a low background; the mean alone would prefer videos that resemble every
    query, and single noisy clips. If the library's mean is known, o is at least that, so that a video gains nothing
    from parts that are unlike the query.

    >>> s = np.array([0.1, 0.1, 0.3, 0.3, 0.1, 0.1])
    >>> comparable_scores(s, np.array([2, 2]), np.array([4, 3])).round(3).tolist()  # both clips score more than one
    [0.5, 0.332]
    """
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    size = last - first
    rest = len(scores) - size
    inside = (sums[last] - sums[first]) / size
    around = (sums[-1] - (sums[last] - sums[first])) / np.maximum(rest, 1)
    usual = np.minimum(inside, np.inf if level is None else level.mean)
    outside = np.where(rest > 0, around if level is None else np.maximum(around, usual), usual)
    weight = (1 + CONTRAST_WEIGHT) * np.power(belief, BELIEF_POWER) * size / (size + DOUBT_CLIPS)
    result: FloatArray = outside + weight * (inside - outside)
    return result
