"""A library in shards against the same videos in one library: are the answers the same?

    python bench/shards.py [--videos 50000] [--queries 200] [--shards 1,2,4,7]

Makes a library of generated films with cues, splits it, and asks both sides queries of every kind that the query
language has; every hit must be equal in every field. bench/merge.py measures what merging costs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from momentseek.cluster.shard_client import LocalShards
from momentseek.cluster.shards.making import split_library
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.segments import build_segment, write_segment
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.search.engine import Engine
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from stand_in import open_reader

DIM, SECONDS, CLIPS = 64, 1.5, 4
WORDS = [f"word{i}" for i in range(400)] + ["dog", "beach", "kitchen", "running", "runs", "lighthouse"]


class RandomWords:
    """An encoder for which every word is a direction of its own."""

    name, dim, fingerprint, short_side = "words", DIM, "words-1", 8

    def encode(self, texts: list[str]) -> Vectors:
        """One row per text."""
        rows = [np.sum([self.direction(word) for word in text.split()], axis=0) for text in texts]
        return np.stack([row / np.linalg.norm(row) for row in rows]).astype(np.float32)

    @staticmethod
    def direction(word: str) -> Vectors:
        """The direction of a word."""
        seed = WORDS.index(word) if word in WORDS else len(word)
        return np.random.default_rng(seed).standard_normal(DIM).astype(np.float32)


def make_library(folder: Path, videos: int, rng: np.random.Generator) -> None:
    """Generated films with two cues each, some of them copies of others."""
    (folder / "segments").mkdir(parents=True)
    chance = 1 / np.arange(1, len(WORDS) + 1)
    chance /= chance.sum()
    catalog = Catalog(folder, create=True)
    directions = np.stack([RandomWords.direction(word) for word in WORDS])
    shown = rng.integers(0, len(WORDS), (videos, CLIPS))
    rows = directions[shown] + 1.5 * rng.standard_normal((videos, CLIPS, DIM))
    rows = (rows / np.linalg.norm(rows, axis=2, keepdims=True)).astype(np.float32)
    said = rng.choice(WORDS, p=chance, size=(videos, 2, 5))
    encoder = RandomWords()
    with catalog.changes():
        catalog.set("clip_seconds", SECONDS)
        for i in range(videos):
            cues = [Cue(2.0 * n, 2.0 * n + 1.5, " ".join(said[i, n][: 2 + (i + n) % 4])) for n in range(2)]
            content = f"content {i // 2 if i % 50 == 1 else i}"
            video = Video(
                0, folder / f"{WORDS[shown[i, 0]]} {i}.mp4", f"{WORDS[shown[i, 0]]} {i}.mp4", 1, int(1e18) + i * 10**13,
                content, CLIPS * SECONDS, 640, 360, Fraction(25), "h264", CLIPS, 2, (), 0.0,
            )  # fmt: skip
            catalog.insert_video(video, cues)
        ids = list(range(1, videos + 1))
        for stream, parts in (("vision", list(rows)), ("speech", None)):
            if parts is None:
                texts = [cue.text for i in ids[: videos // 10] for cue in catalog.cues(i)]
                ids = ids[: videos // 10]
                parts = list(encoder.encode(texts).reshape(len(ids), 2, DIM))
            name = write_segment(folder / "segments", build_segment(stream, ids, parts))
            catalog.insert_segment(SegmentRow(name, stream, len(ids), sum(map(len, parts)), ids[0]))
    catalog.close()


def make_queries(count: int, rng: np.random.Generator) -> list[tuple[str, SearchOptions]]:
    """Queries of every kind: words, weights, what to avoid, phrases, fields and filters."""
    kinds = (
        "{a}", "{a} {b}", "{a} -{b}", "2:{a} {b}", "said:{a}", 'said:"{a} {b}"', '"{a}"', '"{a} {b}"', '{b} "{a}"',
        "name:{a}", "{a} -said:{b}", "in:{a}* {b}", "-in:{a}* {b}", "{a} before:2005", "{a} after:2003", "{a} {b} {c}",
    )  # fmt: skip
    options = (
        SearchOptions(), SearchOptions(k=50, all=True), SearchOptions(group="video"), SearchOptions(fusion="scores"),
        SearchOptions(streams=("speech", "name")), SearchOptions(localiser="contrast", explain=True),
    )  # fmt: skip
    out = []
    for i in range(count):
        a, b, c = rng.choice(WORDS[: 40 if i % 2 else None], 3, replace=False)
        out.append((kinds[i % len(kinds)].format(a=a, b=b, c=c), options[i % len(options)]))
    return out


def main() -> None:
    """Print the figures; exit code 1 if any answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--shards", default="1,2,4,7")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    queries = make_queries(args.queries, rng)
    wrong = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "one"
        make_library(folder, args.videos, rng)
        whole = Engine(open_reader(folder, RandomWords()))
        begun = time.perf_counter()
        expected = [whole.search(Query.parse(text), options) for text, options in queries]
        single = time.perf_counter() - begun
        hits = sum(map(len, expected))
        each = 1000 * single / len(queries)
        print(f"one library: {args.videos:,} videos, {len(queries)} queries, {hits:,} hits, {each:.1f} ms a query")
        for shards in map(int, args.shards.split(",")):
            target = Path(made) / f"of {shards}"
            begun = time.perf_counter()
            manifest = split_library(folder, target, shards)
            split = time.perf_counter() - begun
            libraries = [open_reader(each, RandomWords()) for each in manifest.folders(target)]
            shard_client = LocalShards(dict(zip(manifest.shards, libraries, strict=True)))
            engine = Engine(libraries[0], shard_client)
            begun = time.perf_counter()
            found = [engine.search(Query.parse(text), options) for text, options in queries]
            took = time.perf_counter() - begun
            differing = [
                text
                for (text, _), one, other in zip(queries, expected, found, strict=True)
                if (list(one), one.hidden, one.note) != (list(other), other.hidden, other.note)
            ]
            wrong += len(differing)
            print(
                f"{shards} shards: split in {split:.1f} s, {1000 * took / len(queries):.1f} ms a query in one process "
                f"({took / single:.2f} x), {len(differing)} of {len(queries)} answers differ {differing[:3]}"
            )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
