"""Corpora for bench/scan.py: clips of a video are alike as in real ones, and chunks come one at a time.

A clip is a mixture of what all pictures share, a topic, what is its video's (or scene's) own, and a slow drift:

    x = √.14 m + √.28 topic + √.28 own + √.30 w,      w a first-order autoregression with coefficient 0.9

which gives cosines of about .97 between neighbouring clips, .80 at a distance of ten, .14 between unrelated videos.
``smooth`` videos have one topic and one own part; ``scenes`` videos have three to six, changing at random cuts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
DIM, CLIPS, TOPICS, CHUNK = 256, 20, 1000, 10_000
KINDS = ("smooth", "scenes")
NOISE = {"main": 0.8, "hard": 0.55}
"""Cosine of a query to the clip it was made from."""


def unit(x: Floats) -> Floats:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@cache
def pool() -> Floats:
    """Steps of the drift: stretches of one long noise, because drawing each anew would take most of the time."""
    noise = np.random.default_rng(11).standard_normal(5 * CHUNK * DIM, dtype=np.float32)
    return noise * np.float32(np.sqrt((1 - 0.9**2) / DIM))


def chunk(kind: str, number: int, videos: int, seed: int = 0) -> Floats:
    """The clips ``(videos, CLIPS, DIM)`` of one chunk; always the same for the same number."""
    shared = np.random.default_rng(seed)
    common = unit(shared.standard_normal(DIM, dtype=np.float32))
    topics = unit(shared.standard_normal((TOPICS, DIM), dtype=np.float32))
    rng = np.random.default_rng([seed, number, KINDS.index(kind)])

    noise = pool()

    def step() -> Floats:
        start = rng.integers(0, len(noise) - videos * DIM)
        return noise[start : start + videos * DIM].reshape(videos, DIM)

    def fresh() -> Floats:
        return rng.standard_normal((videos, DIM), dtype=np.float32) / np.float32(np.sqrt(DIM))

    def subject() -> Floats:
        own = topics[rng.integers(0, TOPICS, videos)] + fresh()
        return np.float32(np.sqrt(0.28)) * own + np.float32(np.sqrt(0.14)) * common

    out = np.empty((videos, CLIPS, DIM), np.float32)
    base, drift = subject(), fresh()
    scenes = np.ones(videos, np.int64) if kind == "smooth" else rng.integers(3, 7, videos)
    order = rng.random((videos, CLIPS - 1)).argsort(axis=1) + 1
    is_cut = np.zeros((videos, CLIPS), bool)
    for n in range(1, 6):
        late = scenes > n
        is_cut[late, order[late, n - 1]] = True
    for t in range(CLIPS):
        drift *= np.float32(0.9)
        drift += step()
        if kind == "scenes" and t:
            new = is_cut[:, t]
            base[new] = subject()[new]
            drift[new] = fresh()[new]
        out[:, t] = base + np.float32(np.sqrt(0.30)) * drift
    out /= np.sqrt(np.einsum("vcd,vcd->vc", out, out))[:, :, None]
    return out


def chunks(kind: str, videos: int) -> Iterator[tuple[int, Floats]]:
    """First video and clips of each chunk."""
    for number in range(-(-videos // CHUNK)):
        yield number * CHUNK, chunk(kind, number, min(CHUNK, videos - number * CHUNK))


def queries(kind: str, videos: int, count: int, level: str) -> Floats:
    """Noisy copies of clips of the first chunk."""
    rng = np.random.default_rng([7, list(NOISE).index(level)])
    clips = chunk(kind, 0, min(CHUNK, videos)).reshape(-1, DIM)
    chosen = clips[rng.integers(0, len(clips), count)]
    cosine = np.float32(NOISE[level])
    noise = unit(rng.standard_normal(chosen.shape, dtype=np.float32))
    return unit(cosine * chosen + np.sqrt(1 - cosine**2) * noise)
