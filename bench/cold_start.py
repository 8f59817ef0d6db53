"""Seconds and bytes to the first answer from a library in object storage: with an empty cache, and with a warm one.

    python bench/cold_start.py [--videos 10000] [--shards 2]

Makes a library of generated films (20 clips of 256 columns), sends it to a server that speaks S3 (moto's, see
``s3_storage.py``), and searches it in a process of its own each time: with an empty cache, with what that left, and
from the same library in a folder. What is counted begins when the library is opened and ends with the first answer; the
second answer shows what a search costs then.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from momentseek.cluster.manifest import read_manifest
from momentseek.cluster.replicas.replica import update_replica
from momentseek.cluster.shard_client import LocalShards
from momentseek.cluster.shards.making import make_elsewhere, split_library
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.location import library_folder
from momentseek.library.paths import folder_size
from momentseek.library.reader import LibraryReader
from momentseek.library.segments import build_segment, write_segment
from momentseek.library.video import Video
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.search.engine import Engine
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from s3_storage import serve_s3

DIM, CLIPS, SECONDS = 256, 20, 1.5
SCRATCH = ("-wal", "-shm")
ADDRESS = "s3://bucket/library"


@dataclass(frozen=True)
class ColdStart:
    """What it took until a library answered."""

    opened: float
    """Seconds until the catalogs were here."""
    first: float
    """Seconds until the first answer, with that."""
    second: float
    """Seconds of the second answer alone."""
    fetched: int
    """Bytes that came to the cache."""


class Directions:
    """An encoder for which every text is a direction of its own."""

    name, dim, fingerprint, short_side, model, has_model = "directions", DIM, "directions-1", 8, None, False

    def encode(self, texts: list[str]) -> Vectors:
        """One row per text."""
        rows = np.stack([np.random.default_rng(len(text)).standard_normal(DIM) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def for_queries(self, stream: str) -> Directions:
        """The encoder of queries to a stream."""
        return self

    def forget_others(self, rows: object) -> None:
        """Nothing is loaded, so nothing is let go."""


def make_library(folder: Path, videos: int) -> None:
    """Generated films without words."""
    rng = np.random.default_rng(0)
    (folder / "segments").mkdir(parents=True)
    catalog = Catalog(folder, create=True)
    with catalog.changes():
        catalog.set("clip_seconds", SECONDS)
        for number in range(videos):
            name = f"film {number}.mp4"
            video = Video(
                0, folder / name, name, 1, 10**18, f"content {number}", CLIPS * SECONDS, 640, 360, Fraction(25), "h264",
                CLIPS, 0, (), 0.0,
            )  # fmt: skip
            catalog.insert_video(video, [])
        rows = rng.standard_normal((videos, CLIPS, DIM), np.float32)
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        name = write_segment(folder / "segments", build_segment("vision", range(1, videos + 1), list(rows)))
        catalog.insert_segment(SegmentRow(name, "vision", videos, videos * CLIPS, 1))
    catalog.close()


def cache_size(folder: Path) -> int:
    """Bytes of what was fetched, without what SQLite keeps beside a database."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name[-4:] not in SCRATCH)


def measure_start(place: str) -> ColdStart:
    """Open the library at an address or in a folder, search it twice in this process, and say what that took."""
    cache = Path(os.environ["MOMENTSEEK_CACHE"])
    before = cache_size(cache)
    begun = time.perf_counter()
    folder = library_folder(place)
    update_replica(folder)
    manifest = read_manifest(folder)
    encoders = Directions()
    shards, libraries = {}, []
    for name, path in zip(manifest.shards, manifest.folders(folder), strict=True):
        library = LibraryReader(path, Catalog(path))
        library.encoders = encoders  # type: ignore[assignment]
        libraries.append(library)
        shards[name] = library
    opened = time.perf_counter() - begun
    engine = Engine(libraries[0], LocalShards(shards))
    times = []
    for text in ("a dog", "a dog on the beach"):
        start = time.perf_counter()
        engine.search(Query.parse(text), SearchOptions(streams=("vision",)))
        times.append(time.perf_counter() - start)
    return ColdStart(opened, opened + times[0], times[1], cache_size(cache) - before)


def measure_elsewhere(place: str, cache: Path) -> ColdStart:
    """``measure_start`` in a process of its own, with a folder for its cache."""
    cache.mkdir(exist_ok=True)
    told = subprocess.run(
        [sys.executable, __file__, "--measure", place], check=True, capture_output=True, text=True,
        env={**os.environ, "MOMENTSEEK_CACHE": str(cache)},
    )  # fmt: skip
    return ColdStart(**json.loads(told.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--measure", metavar="PLACE", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(asdict(measure_start(asked.measure))))
        return
    with tempfile.TemporaryDirectory() as name, serve_s3("bucket"):
        place = Path(name)
        os.environ["MOMENTSEEK_CACHE"] = str(place / "sending")
        make_library(place / "one", asked.videos)
        split_library(place / "one", place / "many", asked.shards)
        begun = time.perf_counter()
        make_elsewhere(ADDRESS, lambda into: split_library(place / "one", into, asked.shards))
        size = folder_size(place / "many")
        print(f"{asked.videos:,} videos, {asked.shards} shards, {size / 1e6:.0f} MB; split and sent in "
              f"{time.perf_counter() - begun:.1f} s")  # fmt: skip
        for what, where, cache in (
            ("folder", str(place / "many"), "none"), ("s3, empty cache", ADDRESS, "cache"),
            ("s3, warm cache", ADDRESS, "cache"), ("folder again", str(place / "many"), "none"),
        ):  # fmt: skip
            found = measure_elsewhere(where, place / cache)
            print(
                f"{what:16} opened {found.opened:6.2f} s  first answer {found.first:6.2f} s  "
                f"second {found.second * 1e3:6.1f} ms  fetched {found.fetched / 1e6:7.1f} MB"
            )


if __name__ == "__main__":
    main()
