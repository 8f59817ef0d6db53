"""One library in one process against the same videos in shards, each in a process of its own on a Ray cluster.

    python bench/cluster.py [--videos 100000] [--shards 2] [--on local] [--queries 100] [--folder DIR]

Generated films of 20 clips × 256 (bench/scan_corpus.py, in blocks) are written as one library and split. The same
queries go to both sides in turns: how many of the best 20 videos agree, the time of single queries, queries per second
of 1, 8 and 32 clients, memory of each process. Above 150,000 clips both sides search by a plan, as people's would.
Last, merging the answers of 1 to 1,000 simulated shards. A million videos need 16 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import numpy as np

from merge import print_merges
from momentseek.cluster.connection import join_cluster
from momentseek.cluster.manifest import read_manifest
from momentseek.cluster.searching import RayShards
from momentseek.cluster.shards.making import split_library
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.scan.recall import refresh_plan
from momentseek.library.segments import build_segment, write_segment
from momentseek.library.store import LibraryStore
from momentseek.library.video import Video
from momentseek.search.engine import Engine
from momentseek.search.hit import Results
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from scan_corpus import CHUNK, CLIPS, DIM, Floats, chunks, unit
from stand_in import open_reader

SECONDS = 1.5
OPTIONS = SearchOptions(k=20, streams=("vision",), group="video", all=True)
CLIENTS = (1, 8, 32)


class NumberedQueries:
    """An encoder for which the text ``query 7`` is the seventh of some vectors."""

    name, dim, fingerprint, short_side = "numbered", DIM, "numbered-1", 8

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors

    def encode(self, texts: list[str]) -> Floats:
        """One row per text."""
        return np.stack([self._vectors[int(text.split()[-1])] for text in texts])


def make_corpus(folder: Path, videos: int, queries: int) -> Floats:
    """Write a library block by block, and give vectors of queries near some of its clips."""
    (folder / "segments").mkdir(parents=True)
    rng = np.random.default_rng(3)
    catalog = Catalog(folder, create=True)
    asked = []
    with catalog.changes():
        catalog.set("clip_seconds", SECONDS)
        for first, rows in chunks("scenes", videos):
            ids = list(range(first + 1, first + 1 + len(rows)))
            for id in ids:
                name = f"{id}.mp4"
                catalog.insert_video(
                    Video(
                        0, folder / name, name, 1, id, f"content {id}", CLIPS * SECONDS, 640, 360, Fraction(25), "h264",
                        CLIPS, 2, (), 0.0,
                    ),
                    [],
                )  # fmt: skip
            name = write_segment(folder / "segments", build_segment("vision", ids, list(rows)))
            catalog.insert_segment(SegmentRow(name, "vision", len(ids), len(ids) * CLIPS, ids[0]))
            wanted = -(-queries * len(rows) // videos)
            clips = rows.reshape(-1, DIM)[rng.integers(0, len(rows) * CLIPS, wanted)]
            noise = unit(rng.standard_normal(clips.shape).astype(np.float32))
            asked.append(unit(0.8 * clips + 0.6 * noise))
    catalog.close()
    with LibraryStore.open(folder, create=False) as library:
        refresh_plan(library.snapshot().vision, library.paths.plan)
    return np.concatenate(asked)[:queries]


def resident(process: int | str = "self") -> float:
    """Megabytes of a process that are its own; what it maps of files is shared with the system's cache."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":" in line
    )
    return int(fields["RssAnon"].split()[0]) / 1024


def time_queries(search: Callable[[int], Results], numbers: Sequence[int]) -> list[float]:
    """Seconds of each of some queries, one after another."""
    took = []
    for number in numbers:
        begun = time.perf_counter()
        search(number)
        took.append(time.perf_counter() - begun)
    return took


def rate(make: Callable[[], Callable[[int], Results]], clients: int, queries: int) -> float:
    """Queries per second of so many clients at a time, each with a search of its own."""
    searches = [make() for _ in range(clients)]
    for search in searches:
        search(0)
    each = max(2, queries // clients)
    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda search: time_queries(search, range(each)), searches))
    return clients * each / (time.perf_counter() - begun)


def spent(process: int | str = "self") -> float:
    """Seconds of a processor that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=10 * CHUNK)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--on", default="local")
    parser.add_argument("--folder", type=Path, help="where the libraries are written, and kept to be used again")
    parser.add_argument("--clients", default=",".join(map(str, CLIENTS)))
    args = parser.parse_args()
    with ExitStack() as stack:
        made = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder, target = made / "one", made / "shards"
        if not (made / "queries.npy").exists():
            vectors = make_corpus(folder, args.videos, args.queries)
            split_library(folder, target, args.shards)
            np.save(made / "queries.npy", vectors)
        vectors = np.load(made / "queries.npy")[: args.queries]
        manifest = read_manifest(target)
        encoder = NumberedQueries(vectors)
        cluster = stack.enter_context(join_cluster(args.on))
        with LibraryStore.open(folder, create=False) as opened:
            videos = len(opened.catalog.ids())
        print(f"{videos:,} videos × {CLIPS} clips × {DIM}, {len(manifest.shards)} shards, {len(vectors)} queries")
        shard_client = RayShards(cluster, target, seconds=120)
        shard_client.wait()

        def make_single() -> Callable[[int], Results]:
            engine = Engine(open_reader(folder, encoder))
            return lambda number: engine.search(Query.parse(f"query {number}"), OPTIONS)

        def make_sharded() -> Callable[[int], Results]:
            engine = Engine(open_reader(manifest.folders(target)[0], encoder), shard_client)
            return lambda number: engine.search(Query.parse(f"query {number}"), OPTIONS)

        before = resident()
        one, many = make_single(), make_sharded()
        found = [({hit.video_id for hit in one(n)}, {hit.video_id for hit in many(n)}) for n in range(len(vectors))]
        agree = np.mean([len(a & b) / max(1, len(a)) for a, b in found])
        print(f"of the best {OPTIONS.k} videos, {agree:.4f} agree; {resident() - before:.0f} MB for one library")
        parts = [cluster.ray.get(actor.process.remote()) for row in shard_client.actors for actor in row]
        print(f"memory of each shard's process: {', '.join(f'{resident(part):.0f} MB' for part in parts)}")
        single, sharded = [], []
        worked = dict.fromkeys(("one process", "asking", *parts), 0.0)
        for n in range(len(vectors)):  # in turns, so that both meet the same machine
            begun = spent()
            single += time_queries(one, [n])
            worked["one process"] += spent() - begun
            begun, before_parts = spent(), {part: spent(part) for part in parts}
            sharded += time_queries(many, [n])
            worked["asking"] += spent() - begun
            for part in parts:
                worked[part] += spent(part) - before_parts[part]
        for name, took in (("one process", single), (f"{len(parts)} shards", sharded)):
            low, high = 1000 * np.quantile(took, [0.5, 0.99])
            print(f"{name}: p50 {low:.1f} ms, p99 {high:.1f} ms, at best {1000 * min(took):.1f}")
        print(f"p50 of shards / one process: {np.median(sharded) / np.median(single):.2f}")
        alone, asking, *each = (1000 * value / len(vectors) for value in worked.values())
        listed = ", ".join(f"{value:.0f}" for value in each)
        print(
            f"processor time a query: {alone:.0f} ms in one process; {asking:.0f} ms to ask shards, which take {listed}"
            f" ms: on a free processor each, {(asking + max(each)) / alone:.2f} of one process"
        )
        for clients in map(int, args.clients.split(",")):
            rates = rate(make_single, clients, args.queries), rate(make_sharded, clients, args.queries)
            print(f"{clients} clients: {rates[0]:.1f} queries/s in one process, {rates[1]:.1f} on {len(parts)} shards")
        shard_client.close()
    print_merges([1, 4, 16, 64, 256, 1000])


if __name__ == "__main__":
    main()
