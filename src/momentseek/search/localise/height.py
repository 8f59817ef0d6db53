"""`height`, the default: the clips around a peak that come near its height, relative to the library's usual scores.

Other localisers ask what stands out *within* a video, and so they split a short video that shows the thing from
beginning to end. Here the scores of unrelated clips are known from the whole library instead (:class:`Background`). The
score x(t) of a clip is the mean over its neighbours in the same shot (a clear change of the clips' vectors also ends a
shot). Let ``b`` be the library's median score for the query, ``s`` its spread, and ``h`` the mean score around the best
clip. The evidence that clip ``t`` is part of the moment is

    g(t) = (h - b) (x(t) - b - 0.7 (h - b)) / (s / 2)²

With 0.5 instead of 0.7 this is the log likelihood ratio of two normal distributions around ``h`` and ``b``. The moment
is the stretch around the best clip in the most likely sequence of the states "moment" and "background", where every
change of state costs 1 at a cut and 4 elsewhere (Viterbi 1967). docs/architecture.md compares other values on real
videos.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from momentseek.core.moments.arrays import FloatArray, Positions
from momentseek.core.native.kernels import address, call, kernels, writable
from momentseek.search.confidence import NORMAL_QUARTILE
from momentseek.search.localise.localiser import LOCALISERS, MAX_SPANS, Background, Curve, Floats32, Proposals
from momentseek.search.localise.scenes import clear_changes, edge_times

NEIGHBOUR_CLIPS = 4
"""Number of clips on either side, in the same shot, over which a score is averaged."""
HEIGHT_SHARE = 0.7
"""Share of the height from which a clip counts as evidence for the moment."""
NOISE_SPREADS = 0.5
"""Scatter of clips around the height of their moment, in spreads of the library."""
CUT_COST, EDGE_COST = 1.0, 4.0
"""Log odds against an edge of a moment at a cut, and at any other boundary of clips."""
CLEAR_CHANGE = 0.7
"""Clearness (0 to 1) of a change of the clips' vectors from which it counts as a cut."""
MIN_CLIPS_FOR_CHANGES = 5
"""Smallest number of clips for which changes of vectors can be told from noise."""
MIN_SPREAD = 1e-3
"""Smallest distance of a quartile from the median, because cosines are not more exact than that."""
MAX_CLIP_GAIN = 20.0
"""Largest evidence of one clip."""
MIN_HEIGHT_SHARE = 0.5
"""Share of the first moment's height that a further one must reach."""


@LOCALISERS.register("height")
def height(curve: Curve) -> Proposals:
    """Propose the moment around the best clip, then those around the best of the other clips.

    >>> usual = Background.of(np.linspace(0, 0.2, 100))
    >>> scores = [0.1] * 10 + [0.5] * 5 + [0.1] * 10
    >>> spans = height(Curve.regular(scores, seconds=2, shots=[20.4, 29.7], background=usual))
    >>> spans.start.tolist(), spans.end.tolist()
    ([20.4], [29.7])
    >>> short = Curve.regular([0.4, 0.5, 0.35, 0.45], seconds=2, background=usual)
    >>> height(short).start.tolist(), height(short).end.tolist()
    ([0.0], [8.0])
    """
    found = stretches(curve.scores, np.array([0, len(curve)]), [scene_edges(curve)], *usual_level(curve))
    times = edge_times(curve)
    falling = np.minimum.accumulate(curve.scores[found.peaks].astype(np.float64))
    return Proposals.of_clips(curve, found.firsts, found.lasts, falling, times[found.firsts], times[found.lasts])


class Stretches(NamedTuple):
    """The moments on the curves of some videos, grouped by video, the one around the best clip first."""

    counts: Positions
    """Number of moments of each video."""
    firsts: Positions
    """The first clip of each moment, counted in its video …"""
    peaks: Positions
    """… its best clip …"""
    lasts: Positions
    """… and the clip after its last one."""


def stretches(
    scores: Floats32, offsets: Positions, edges: Sequence[Positions], base: float, spread: float
) -> Stretches:
    """Find the moments on the curves of videos, given their offsets, the edges of scenes, and median and spread."""
    return (python_stretches if kernels() is None else compiled_stretches)(scores, offsets, edges, base, spread)


def compiled_stretches(
    scores: Floats32, offsets: Positions, edges: Sequence[Positions], base: float, spread: float
) -> Stretches:
    """Find the same as :func:`python_stretches`, with a compiled kernel."""
    videos, room = len(edges), len(edges) * MAX_SPANS
    cuts, places = np.cumsum([0, *map(len, edges)]), np.concatenate(edges).astype(np.int64)
    firsts, peaks, lasts, counts = (np.empty(size, np.int64) for size in (room, room, room, videos))
    if offsets[0] < 0 or offsets[-1] > len(scores):
        raise IndexError("videos begin or end outside of the scores")
    call(
        kernels().stretches_of_height,
        address(scores, np.float32, len(scores)), address(offsets, np.int64, videos + 1),
        address(places, np.int64, len(places)), address(cuts, np.int64, videos + 1), videos,
        base, (NOISE_SPREADS * spread) ** 2, NEIGHBOUR_CLIPS, HEIGHT_SHARE, MAX_CLIP_GAIN, MIN_HEIGHT_SHARE,
        CUT_COST, EDGE_COST, writable(firsts, np.int64, room), writable(peaks, np.int64, room),
        writable(lasts, np.int64, room), MAX_SPANS, writable(counts, np.int64, videos),
    )  # fmt: skip
    found = counts.sum()
    return Stretches(counts, firsts[:found], peaks[:found], lasts[:found])


def python_stretches(
    scores: Floats32, offsets: Positions, edges: Sequence[Positions], base: float, spread: float
) -> Stretches:
    """Find the moment around the best clip of each video, then those around the best of its other clips."""
    clips = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    found = [_curve_stretches(scores[a:b], some, base, spread) for (a, b), some in zip(clips, edges, strict=True)]
    columns = np.array([row for some in found for row in some]).T
    return Stretches(np.array([len(some) for some in found]), *columns)


def _curve_stretches(curve: Floats32, edges: Positions, base: float, spread: float) -> list[tuple[int, int, int]]:
    """First, best and last clips (exclusive) of the moments on one curve."""
    scores = curve.astype(np.float64)
    smooth = neighbour_means(curve, edges)
    costs = edge_costs(len(scores), edges)
    free = np.ones(len(scores), bool)
    spans: list[tuple[int, int, int]] = []
    least = base + MIN_HEIGHT_SHARE * (float(scores.max()) - base)
    while free.any() and len(spans) < MAX_SPANS:
        peak = int(np.argmax(np.where(free, scores, -np.inf)))
        if spans and scores[peak] <= least:
            break
        rise = max(float(smooth[peak]) - base, 0.0)  # 0: no evidence for or against any clip
        gains = rise * (smooth - base - HEIGHT_SHARE * rise) / (NOISE_SPREADS * spread) ** 2
        gains = np.clip(gains, -MAX_CLIP_GAIN, MAX_CLIP_GAIN)
        gains[~free] = -len(scores) * MAX_CLIP_GAIN
        gains[peak] = len(scores) * MAX_CLIP_GAIN
        first, last = stretch(likeliest_states(gains, costs), peak)
        free[first:last] = False
        spans.append((first, peak, last))
    return spans


def neighbour_means(scores: Floats32, edges: Positions) -> FloatArray:
    """(T,) mean score of each clip and its neighbours between the same two edges of shots.

    >>> neighbour_means(np.float32([0.25, 0.25, 1.0, 0.5]), np.array([2])).tolist()
    [0.25, 0.25, 0.75, 0.75]
    """
    places = np.arange(len(scores))
    bounds = np.concatenate(([0], edges, [len(scores)]))
    shot = np.searchsorted(bounds, places, side="right")
    low = np.maximum(places - NEIGHBOUR_CLIPS, bounds[shot - 1])
    high = np.minimum(places + NEIGHBOUR_CLIPS + 1, bounds[shot])
    sums = np.concatenate(([0.0], np.cumsum(scores, dtype=np.float64)))
    result: FloatArray = (sums[high] - sums[low]) / (high - low)
    return result


def scene_edges(curve: Curve) -> Positions:
    """Boundaries of clips, ascending, at which a shot ends or the clips' vectors change clearly.

    >>> vectors = np.repeat(np.eye(2, dtype=np.float32), 12, axis=0)
    >>> scene_edges(Curve.regular([0.1] * 24, seconds=2, features=vectors, shots=[4.2])).tolist()
    [2, 12]
    """
    cuts, _ = curve.cuts
    if curve.features is None or len(curve) < MIN_CLIPS_FOR_CHANGES:
        return np.unique(cuts)
    clear = np.flatnonzero(clear_changes(curve.features) >= CLEAR_CHANGE) + 1
    return np.unique(np.concatenate((cuts, clear)))


class Layout(NamedTuple):
    """Properties of a video's clips that do not depend on the query."""

    times: FloatArray
    """(T + 1,) time at which a moment may begin or end, for each boundary of clips."""
    middles: FloatArray
    edges: Positions
    """Boundaries at which a scene ends."""


def build_layouts(
    rows: Floats32, offsets: Positions, durations: Sequence[float], shots: Sequence[Sequence[float]], seconds: float
) -> list[Layout]:
    """Build the layouts of several videos in one pass, equal to the results of `edge_times` and `scene_edges`.

    The rows of a video lie between two offsets. Its clips have ``seconds`` each, the last one ends with the video, and
    cuts are at the times of its shots.
    """
    sizes, ends = np.diff(offsets), np.asarray(durations, np.float64)
    first = offsets[:-1] + np.arange(len(sizes))  # a video has one edge more than clips
    last = first + sizes
    nth = np.arange(int(sizes.sum()) + len(sizes)) - np.repeat(first, sizes + 1)
    edges = np.asarray(nth * seconds, np.float64)
    edges[last] = np.where(ends > edges[last - 1], ends, edges[last])
    middles = np.delete((edges[:-1] + edges[1:]) / 2, last[:-1])
    owner = np.repeat(np.arange(len(sizes)), [len(some) for some in shots])
    cut = np.fromiter((time for some in shots for time in some), np.float64, len(owner))
    near = np.clip(np.ceil(cut / seconds - 0.5), 0, sizes[owner]).astype(np.int64)  # middles before it, or one off
    near -= (near > 0) & (middles[offsets[owner] + near - 1] >= cut)
    near += (near < sizes[owner]) & (middles[np.minimum(offsets[owner] + near, len(middles) - 1)] < cut)
    inner = (near > 0) & (near < sizes[owner])
    place, cut = (first[owner] + near)[inner], cut[inner]
    times = edges.copy()
    order = np.argsort(-np.abs(cut - edges[place]), kind="stable")  # the nearest is written last
    times[place[order]] = cut[order]
    clear = [
        first[at] + 1 + np.flatnonzero(clear_changes(rows[offsets[at] : offsets[at + 1]]) >= CLEAR_CHANGE)
        for at in np.flatnonzero(sizes >= MIN_CLIPS_FOR_CHANGES).tolist()
    ]
    changes = np.unique(np.concatenate([place, *clear]))
    parts = np.split(changes, np.searchsorted(changes, first[1:]))
    return [
        Layout(times[a : b + 1], middles[c : c + b - a], part - a)
        for a, b, c, part in zip(first.tolist(), last.tolist(), offsets.tolist(), parts, strict=False)
    ]


def usual_level(curve: Curve) -> tuple[float, float]:
    """Median and spread of the query's scores in the library; without a background, of the lower half of the curve.

    >>> base, spread = usual_level(Curve.regular([0.2], 1.5, background=Background.of(range(101))))
    >>> base, round(spread, 2)
    (50.0, 37.07)
    """
    if (usual := curve.background) is None:
        usual = Background.of(np.sort(curve.scores)[: max(1, (len(curve) + 1) // 2)])
    return level_of(usual)


def level_of(usual: Background) -> tuple[float, float]:
    """Median and spread of a background."""
    low, middle, high = usual.quartiles
    return middle, max(middle - low, high - middle, MIN_SPREAD) / NORMAL_QUARTILE


def edge_costs(count: int, edges: Positions) -> FloatArray:
    """(T + 1,) cost of a moment's edge at each boundary of clips; the ends of the video cost nothing.

    >>> edge_costs(4, np.array([2])).tolist()
    [0.0, 4.0, 1.0, 4.0, 0.0]
    """
    costs = np.full(count + 1, EDGE_COST)
    costs[edges] = CUT_COST
    costs[[0, -1]] = 0.0
    return costs


def likeliest_states(gains: FloatArray, costs: FloatArray) -> list[bool]:
    """Whether each clip belongs to a moment, in the sequence of states that maximises the sum of gains minus costs.

    >>> likeliest_states(np.array([-2.0, 5.0, -1.0, 5.0, -9.0]), np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0]))
    [False, True, True, True, False]
    """
    outside, inside = 0.0, float(gains[0])
    came: list[tuple[bool, bool]] = []
    for gain, cost in zip(gains.tolist()[1:], costs.tolist()[1:-1], strict=True):
        leaves, enters = inside - cost > outside, outside - cost > inside
        came.append((leaves, not enters))
        outside, inside = max(outside, inside - cost), max(inside, outside - cost) + gain
    states = [inside > outside]
    for from_inside in reversed(came):
        states.append(from_inside[states[-1]])
    return states[::-1]


def stretch(states: list[bool], peak: int) -> tuple[int, int]:
    """First and last clip (exclusive) of the stretch of moment clips around the peak.

    >>> stretch([True, False, True, True, False], 3)
    (2, 4)
    """
    first, last = peak, peak + 1
    while first > 0 and states[first - 1]:
        first -= 1
    while last < len(states) and states[last]:
        last += 1
    return first, last
