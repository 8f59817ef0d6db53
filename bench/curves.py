"""Curves with known truth, from four worlds that have little in common; bench/localise.py runs on them.

Each world makes a video of T clips of 1.5 s from a seed: the true intervals in seconds (their ends anywhere, not on
the clips' grid), what the middle frame of each clip scores, the clips' vectors and the times of the cuts.

- plateaus: the score is high inside, with soft edges of up to three clips; noise that lingers (AR(1)); vectors follow
  hidden scenes to which the intervals keep only roughly.
- bursts:   inside, only some clips score, each by another amount; outside there are lone spikes; skewed noise.
- scenes:   a video is a chain of unlike scenes, each with its vector; a clip is its scene plus jitter; the query is a
  direction near one topic, behind a modality gap; other scenes share part of the topic. The score is the plain dot.
- wander:   the camera never cuts: vectors walk about on the sphere; the truth is where the walk stays near the query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from momentseek.search.localise.localiser import Curve

CLIP = 1.5
DIM = 64


@dataclass(frozen=True)
class World:
    """What a condition varies."""

    clips: int = 100
    noise: float = 0.5
    """Standard deviation of the clips' noise, in units of the step from background to moment."""
    drift: float = 0.0
    """Height of a slow swell over the video, in the same unit."""
    intervals: int = 1
    skew: float = 0.0
    """0: normal noise; 1: that of an exponential, one-sided as CLIP's."""
    cuts: bool = True
    vectors: bool = True
    height: float = 1.0
    """Of the moment; below 1 it is a decoy: something like what was asked for."""
    offset: float = 0.0
    """By how much this video resembles the query throughout."""


@dataclass(frozen=True)
class Made:
    """A curve and where the moments are."""

    curve: Curve
    truth: list[tuple[float, float]]


Maker = Callable[[np.random.Generator, World], Made]


def places(rng: np.random.Generator, clips: int, count: int, low: float = 4.0, share: float = 0.3) -> np.ndarray:
    """Disjoint intervals, in clips, three clips apart or more: lengths log-uniform from ``low`` to ``share`` of all."""
    high = max(low + 1, share * clips / count)
    for _ in range(1000):
        length = np.exp(rng.uniform(np.log(low), np.log(high), count))
        start = np.sort(rng.uniform(0, clips - length.max(), count))
        if (start[1:] > start[:-1] + length[:-1] + 3).all() and (start + length <= clips).all():
            return np.stack((start, start + length), axis=1)
    raise ValueError("no room for so many intervals")


def noise(rng: np.random.Generator, n: int, world: World, linger: float = 0.4) -> np.ndarray:
    """AR(1) noise of the asked size and skew."""
    fresh = rng.normal(size=n)
    fresh = (1 - world.skew) * fresh + world.skew * (rng.exponential(size=n) - 1)
    fresh /= np.hypot(1 - world.skew, world.skew)
    for i in range(1, n):
        fresh[i] = linger * fresh[i - 1] + np.sqrt(1 - linger**2) * fresh[i]
    return world.noise * fresh


def swell(rng: np.random.Generator, n: int, world: World) -> np.ndarray:
    """A slope and a slow wave."""
    t = np.linspace(0, 1, n)
    slope, wave = rng.uniform(-1, 1), np.sin(2 * np.pi * (rng.uniform(0.5, 1.5) * t + rng.random()))
    return world.drift * (slope * (t - 0.5) + 0.5 * wave)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(x / 2)


def finish(score: np.ndarray, vectors: np.ndarray, cuts: np.ndarray, truth: np.ndarray, world: World) -> Made:
    """CLIP-like cosines (a step of 0.04 above 0.2) as a curve, without what the condition withholds."""
    curve = Curve.regular(
        0.2 + 0.04 * (score + world.offset),
        CLIP,
        features=vectors.astype(np.float32) if world.vectors else None,
        shots=np.sort(cuts) * CLIP if world.cuts else (),
    )
    return Made(curve, [(float(a * CLIP), float(b * CLIP)) for a, b in truth])


def hidden_scenes(rng: np.random.Generator, n: int, edges: np.ndarray) -> np.ndarray:
    """Vectors of a video whose scenes change at ``edges``: 0.6 alike across scenes, as frames of one film are."""
    common = unit(rng.normal(size=DIM))
    scene = np.searchsorted(np.sort(edges), np.arange(n) + 0.5)
    own = unit(rng.normal(size=(len(edges) + 1, DIM)))
    return unit(0.75 * common + 0.6 * own[scene] + 0.35 * unit(rng.normal(size=(n, DIM))))


def plateaus(rng: np.random.Generator, world: World) -> Made:
    n = world.clips
    truth = places(rng, n, world.intervals)
    mid = np.arange(n) + 0.5
    score = np.zeros(n)
    for a, b in truth:
        ramp = rng.uniform(0.05, 0.75, 2)
        score += world.height * (0.8 + 0.4 * rng.random()) * sigmoid((mid - a) / ramp[0]) * sigmoid((b - mid) / ramp[1])
    score += noise(rng, n, world) + swell(rng, n, world)
    others = rng.uniform(0, n, rng.poisson(n / 15))
    others = others[(np.abs(others[:, None] - truth.ravel()) > 2).all(1)]
    edges = np.concatenate((truth.ravel(), others))
    loose = truth.ravel() + rng.normal(0, 0.7, truth.size)
    vectors = hidden_scenes(rng, n, np.concatenate((loose, others)))
    seen = edges[rng.random(len(edges)) < 0.85]
    return finish(score, vectors, seen, truth, world)


def bursts(rng: np.random.Generator, world: World) -> Made:
    n = world.clips
    truth = places(rng, n, world.intervals)
    mid = np.arange(n) + 0.5
    inside = np.zeros(n, dtype=bool)
    for a, b in truth:
        inside |= (mid >= a) & (mid <= b)
    score = np.where(inside, np.where(rng.random(n) < 0.7, rng.gamma(4, 0.35, n), rng.uniform(0, 0.5, n)), 0.0)
    score *= world.height
    score += np.where(~inside & (rng.random(n) < 0.04), rng.gamma(4, 0.3, n), 0.0)
    score += noise(rng, n, replace(world, noise=0.6 * world.noise), linger=0.2) + swell(rng, n, world)
    others = rng.uniform(0, n, rng.poisson(n / 8))
    loose = truth.ravel() + rng.normal(0, 1.0, truth.size)
    vectors = hidden_scenes(rng, n, np.concatenate((loose, others)))
    edges = np.concatenate((truth.ravel()[rng.random(truth.size) < 0.6], others))
    return finish(score, vectors, edges, truth, world)


def scenes(rng: np.random.Generator, world: World) -> Made:
    n = world.clips
    lengths = np.maximum(2.5, rng.lognormal(np.log(7), 0.6, n))
    edges = np.cumsum(lengths)
    edges = edges[edges < n - 2.5]
    bounds = np.concatenate(([0.0], edges, [n]))
    count = len(bounds) - 1
    topic = unit(rng.normal(size=DIM))
    share = np.clip(rng.normal(0.05, 0.15, count), -0.2, 0.4)
    truth = []
    free = np.ones(count, dtype=bool)
    for _ in range(world.intervals):
        run = int(rng.choice([1, 1, 2, 3]))
        room = [i for i in range(count - run + 1) if free[max(0, i - 1) : i + run + 1].all()]
        if not room:
            break
        i = int(rng.choice(room))
        share[i : i + run] = world.height * rng.uniform(0.85, 1.15, run)
        free[max(0, i - 1) : i + run + 1] = False
        truth.append((bounds[i], bounds[i + run]))
    common = unit(rng.normal(size=DIM))
    own = unit(rng.normal(size=(count, DIM)))
    scene = np.searchsorted(edges, np.arange(n) + 0.5)
    jitter = 0.25 * unit(rng.normal(size=(n, DIM)))
    vectors = unit(0.7 * common + 0.55 * own[scene] + 0.35 * share[scene, None] * topic + jitter)
    query = unit(0.6 * topic + unit(rng.normal(size=DIM)))
    plain = vectors @ query
    step = 0.35 * 0.5 / np.linalg.norm(0.7 * common + 0.55 * own[0])
    score = (plain - np.median(plain)) / step + noise(rng, n, replace(world, noise=0.7 * world.noise))
    score += swell(rng, n, world)
    inner = rng.uniform(0, n, rng.poisson(n / 10))  # cuts within scenes
    seen = np.concatenate((edges[rng.random(len(edges)) < 0.9], inner))
    return finish(score, vectors, seen, np.array(sorted(truth)), world)


def wander(rng: np.random.Generator, world: World) -> Made:
    n = world.clips
    truth = places(rng, n, world.intervals, low=5.0)
    mid = np.arange(n) + 0.5
    near = np.zeros(n)
    for a, b in truth:
        ramp = rng.uniform(0.3, 1.5)
        near += np.clip(np.minimum(mid - a, b - mid) / ramp * 0.5 + 0.5, 0, 1) * rng.uniform(0.8, 1.2) * world.height
    walk = np.cumsum(rng.normal(size=(n, DIM)) / np.sqrt(DIM), axis=0)
    walk -= np.linspace(0, 1, n)[:, None] * walk[-1]
    topic = unit(rng.normal(size=DIM))
    vectors = unit(unit(rng.normal(size=DIM)) + 0.15 * walk + 0.6 * near[:, None] * topic)
    score = near + noise(rng, n, replace(world, noise=0.8 * world.noise), linger=0.6) + swell(rng, n, world)
    return finish(score, vectors, np.empty(0), truth, world)


def collection(rng: np.random.Generator, maker: Maker, world: World, videos: int = 60, holding: int = 3) -> list[Made]:
    """Videos of 20 to 160 clips, some more like the query throughout; few hold the moment, the others a decoy at most.

    Truth is empty for those that do not hold it.
    """
    made = []
    for i in range(videos):
        height = 1.0 if i < holding else rng.uniform(0.0, 0.6)
        clips = int(np.exp(rng.uniform(np.log(20), np.log(160))))
        one = maker(rng, replace(world, clips=clips, height=height, offset=rng.normal(0.0, 0.3)))
        made.append(one if i < holding else Made(one.curve, []))
    return made


WORLDS: dict[str, Maker] = {"plateaus": plateaus, "bursts": bursts, "scenes": scenes, "wander": wander}
