"""How often levels are right: queries for a planted moment, and queries for what is not in the library.

    python bench/confidence.py [--queries 60]

Libraries of several sizes are drawn as encoders make them: all vectors share a direction (so cosines are high and
close together), scenes belong to topics (so there are near misses), clips of a scene are alike. Three kinds of query:
for a scene that is there; for another scene of a topic that is there (a near miss is all there is); for a topic that
is not there. Printed: the share of queries whose best hit is strong, fair or weak, and for planted ones the share
whose best hit is the right scene. What this does not prove: that your encoder's distributions are like these.
"""

from __future__ import annotations

import argparse
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from momentseek.core.reports import text_table
from momentseek.library.segments import build_segment
from momentseek.library.video import Video
from momentseek.search.localise.localiser import DEFAULT_LOCALISER
from momentseek.search.query import Part
from momentseek.search.stream_index import SampledIndex, StreamIndex
from momentseek.search.streams.span_search import in_order, seek_spans, sort_hits
from momentseek.search.streams.vision import MAX_VIDEOS, ClipSearch, build_vision_query

DIM = 256
SECONDS = 1.5
SCENE = 6
"""Clips of a scene."""
SIZES = [(1, 1), (1, 6), (4, 4), (20, 5), (200, 5), (2000, 5)]
"""Videos, and scenes of each."""
KINDS = ("planted", "near miss", "absent")


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


class World:
    """A library of scenes, and queries about it."""

    def __init__(self, videos: int, scenes: int, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.common = unit(rng.standard_normal(DIM))
        self.topics = unit(rng.standard_normal((60, DIM)))
        self.own = unit(rng.standard_normal((videos, scenes, DIM)))
        self.topic = rng.integers(0, 50, (videos, scenes))
        rows = np.repeat(0.45 * self.common + self.scene(self.topic, self.own), SCENE, axis=1)
        rows = unit(rows + 0.5 * unit(rng.standard_normal(rows.shape)))
        ids = list(range(videos))
        self.vision = StreamIndex(
            (build_segment("vision", ids, list(rows.astype(np.float32))),), np.zeros(0, np.int64), SECONDS
        )
        length = scenes * SCENE
        self.videos = {
            i: Video(i, Path("v"), "v", 1, 0, "", length * SECONDS, 1, 1, Fraction(25), "", length, 0, (), 0.0)
            for i in ids
        }

    def scene(self, topic: np.ndarray, own: np.ndarray) -> np.ndarray:
        return 0.5 * self.topics[topic] + 0.7 * own

    def query(self, kind: str) -> tuple[np.ndarray, tuple[int, int]]:
        """Its vector, and the scene it is for."""
        at = (int(self.rng.integers(len(self.own))), int(self.rng.integers(self.own.shape[1])))
        topic, own = int(self.topic[at]), self.own[at]
        if kind != "planted":
            own = unit(self.rng.standard_normal(DIM))
        if kind == "absent":
            topic = int(self.rng.integers(50, 60))
        vector = 0.3 * self.common + 0.6 * self.scene(np.array(topic), own) + 0.7 * unit(self.rng.standard_normal(DIM))
        return unit(vector).astype(np.float32), at


def best(world: World, vector: np.ndarray) -> tuple[str, int, float]:
    index = SampledIndex.of(world.vision)
    query = build_vision_query(index, [Part("")], [], lambda texts: np.stack([vector] * len(texts)))
    search, state = (
        ClipSearch(query, DEFAULT_LOCALISER),
        SimpleNamespace(vision=world.vision, videos=lambda _: world.videos),
    )
    listed = world.vision.scan.search(search.probes, MAX_VIDEOS, gone=world.vision.gone).ids[0]
    scores = in_order(search.video_scores(state, listed.tolist()))
    hits = seek_spans(scores, search.budget(1), lambda ids: search.spans(state, ids))
    found = sort_hits(hit for some in hits for hit in some)[0]
    return found.level, found.video, found.peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=60, help="of each kind and size")
    queries = parser.parse_args().queries
    rows = []
    for videos, scenes in SIZES:
        for kind in KINDS:
            levels: Counter[str] = Counter()
            right = 0
            worlds = max(1, min(queries, 20_000 // (videos * scenes * SCENE)))
            for n in range(queries):
                if n % -(-queries // worlds) == 0:
                    world = World(videos, scenes, seed=n)
                vector, (video, scene) = world.query(kind)
                level, found, peak = best(world, vector)
                levels[level] += 1
                right += found == video and int(peak / SECONDS / SCENE) == scene
            shares = [f"{levels[name] / queries:.2f}" for name in ("strong", "fair", "weak")]
            rows.append(
                [f"{videos * scenes * SCENE:,}", kind, *shares, f"{right / queries:.2f}" if kind == "planted" else ""]
            )
    print(text_table(["clips", "query", "strong", "fair", "weak", "right scene"], rows, align="rlr"))


if __name__ == "__main__":
    main()
