"""How fast and how completely the best videos are found, beside FAISS and numpy, in one run.

    python bench/scan.py [--videos 10k,100k,1M] [--corpus smooth,scenes] [--quick]
                         [--peers flat,numpy,ivf,hnsw,usearch,hnswlib,lancedb,qdrant,milvus] [--folder DIR] [--keep]

Generated corpora (scan_corpus.py): videos of 20 clips × 256 columns. Queries are noisy copies of clips (cosine .8;
"hard" .55). Recall is the share of the 100 best videos of an exact float32 search that is found, and the share of the
100 best moments (windows of 2 to 16 clips by their mean score) that the found videos give. Latencies are medians over
single queries, taken in turns with the peers', and the least, which a busy machine disturbs less; "reading the codes"
is numpy's maximum over the bytes that the exact scan reads, "reading what the plan reads" over as many as a planned
query does, one after another. 100 queries are one call, three of each in turns. Files
stay in the page cache. A library of 1M videos takes 17 GB in --folder (default: the system's temporary folder) and is
deleted at the end, or with --keep stays there and is used again by the next run that is given the same folder, with
its plan and the depths that were found.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.library.merging import MAX_JOINED_ROWS
from momentseek.library.scan.coarse import Reach, list_near
from momentseek.library.scan.exact import BestVideos, best_among
from momentseek.library.scan.kernels import Kernel, NumpyKernel, best_kernel, quantise_queries
from momentseek.library.scan.plan import build_plan, open_plan
from momentseek.library.scan.recall import tune
from momentseek.library.scan.scan import Scan, first_videos
from momentseek.library.segments import Segment, quantise, read_segment, write_joined
from record import Record, rounds
from scan_corpus import CHUNK, CLIPS, DIM, KINDS, Floats, chunks, queries
from scan_peers import BLOCKED, FLAT, PEERS, Found, K, make_peers

READING, READING_PLAN = "reading the codes", "reading what the plan reads"
MAX_BRISK_SECONDS = 0.25
"""Seconds of one query above which nobody is asked a hundred at once."""


@dataclass(frozen=True)
class Corpus:
    """What is known of a library that was written."""

    names: list[str]
    """Of its segments."""
    truth: Found
    """The exact float32 answer to the queries."""
    writing: float
    """Seconds that quantising and writing took."""


def stored(kind: str, videos: int, folder: Path, asked: Floats) -> Corpus:
    """The library of a folder, which is written if it is not there."""
    known = folder / "corpus.json"
    if known.exists():
        kept = json.loads(known.read_text())
        if np.array_equal(np.load(folder / "asked.npy"), asked):
            return Corpus(kept["names"], np.load(folder / "truth.npy"), kept["writing"])
        sys.exit(f"{folder}: was made for other queries; delete it or run as it was made")
    corpus = generate(kind, videos, folder, asked)
    np.save(folder / "asked.npy", asked)
    np.save(folder / "truth.npy", corpus.truth)
    known.write_text(json.dumps({"names": corpus.names, "writing": corpus.writing}))
    return corpus


def all_clips(kind: str, videos: int) -> Floats:
    """The clips of all videos as float32, for peers."""
    kept = np.empty((videos * CLIPS, DIM), np.float32)
    for first, clips in chunks(kind, videos):
        kept[first * CLIPS : (first + len(clips)) * CLIPS] = clips.reshape(-1, DIM)
    return kept


def generate(kind: str, videos: int, folder: Path, asked: Floats) -> Corpus:
    """Write the segments, and find the exact float32 answer."""
    names, found, scores, writing = [], [], [], 0.0
    waiting: list[Segment] = []
    for first, clips in chunks(kind, videos):
        rows = clips.reshape(-1, DIM)
        best = np.concatenate(
            [
                (rows[i : i + 40_000] @ asked.T).reshape(-1, CLIPS, len(asked)).max(axis=1)
                for i in range(0, len(rows), 40_000)
            ]
        ).T
        top = np.argpartition(-best, min(K, best.shape[1] - 1), axis=1)[:, :K]
        found.append(top + first)
        scores.append(np.take_along_axis(best, top, axis=1))
        begun = time.perf_counter()
        offsets = np.arange(0, len(rows) + 1, CLIPS)
        ids = np.arange(first, first + len(clips))
        waiting.append(Segment("", "vision", ids, offsets, *quantise(rows), rows.astype(np.float16)))
        if len(waiting) * CHUNK * CLIPS >= MAX_JOINED_ROWS or first + CHUNK >= videos:
            names.append(write_joined(folder, "vision", waiting))
            waiting.clear()
        writing += time.perf_counter() - begun
    order = np.argsort(-np.concatenate(scores, axis=1), axis=1)[:, :K]
    return Corpus(names, np.take_along_axis(np.concatenate(found, axis=1), order, axis=1), writing)


def moments(curves: Floats, videos: Found) -> set[tuple[int, int, int]]:
    """The best windows of some videos as (video, first clip, clips)."""
    sums = np.concatenate([np.zeros((len(curves), 1)), np.cumsum(curves, axis=1)], axis=1)
    rows = []
    for length in range(2, 17):
        score = (sums[:, length:] - sums[:, :-length]) / length
        video, start = np.indices(score.shape)
        rows.append(np.stack([score.ravel(), videos[video.ravel()], start.ravel(), np.full(score.size, length)]))
    best = np.concatenate(rows, axis=1)
    order = np.argsort(-best[0], kind="stable")[:K]
    return {(int(v), int(s), int(n)) for v, s, n in best[1:, order].T}


def curves_of(segments: list[Segment], videos: Found, query: Floats) -> Floats:
    size = len(segments[0].ids)
    rows = np.stack([segments[v // size].half[v % size * CLIPS : (v % size + 1) * CLIPS] for v in videos])
    return rows.astype(np.float32) @ query


def recalls(segments: list[Segment], asked: Floats, truth: Found, found: list[Found]) -> tuple[float, float]:
    """Recall of videos and of moments."""
    videos = [np.isin(t, f).mean() for t, f in zip(truth, found, strict=True)]
    spans = []
    for query, t, f in zip(asked, truth, found, strict=True):
        true = moments(curves_of(segments, t, query), t)
        spans.append(len(true & moments(curves_of(segments, f, query), f)) / len(true))
    return float(np.mean(videos)), float(np.mean(spans))


def in_turns(searches: dict[str, Callable[[Floats], object]], asked: Floats) -> dict[str, list[float]]:
    """Seconds of single queries, taken in turns so that a busy machine is unfair to all."""
    times: dict[str, list[float]] = {name: [] for name in searches}
    for query in asked:
        for name, search in searches.items():
            search(query[None])  # each runs with what it left in the caches
            begun = time.perf_counter()
            search(query[None])
            times[name].append(time.perf_counter() - begun)
    return times


def read_codes(segments: list[Segment]) -> None:
    """Read what the exact scan reads, as quickly as numpy can."""
    for segment in segments:
        np.asarray(segment.codes).reshape(-1).view(np.int64).max()


def bytes_of_query(scan: Scan, asked: Floats) -> int:
    """Bytes that a planned query reads, about: of the coarse list, of int8 means and clips, of the best in float16."""
    plan = scan.plan
    assert plan is not None
    depths, dim, bytes_read = plan.depths, plan.means.dim, []
    reach = Reach(first_videos(K), depths.coarse, depths.share, depths.hope, depths.coarse_margin)
    for query in asked:
        near = list_near(plan.listed, plan.means.owner, None, query, reach)
        ready = quantise_queries(query, dim)
        _, bounds = plan.means.videos(near.numbers, ready)
        best = scan.search(query, K).scores[0, -1]
        looked_at = min(depths.fine, np.count_nonzero(bounds >= best - (depths.fine_margin or np.inf)))
        rows = len(near.numbers) + (looked_at + 2 * 2 * K) * CLIPS
        bytes_read.append(near.share * plan.listed.blocks.size + rows * dim)
    return int(np.mean(bytes_read))


class PlainReading:
    """Reads so many bytes of the codes, each time the next, so that they come from memory and not from a cache."""

    def __init__(self, segments: list[Segment], size: int) -> None:
        self._codes = [np.asarray(segment.codes).reshape(-1).view(np.int64) for segment in segments]
        self._size, self._at = size // 8, 0

    def read(self) -> None:
        left = self._size
        while left > 0:
            part = self._codes[self._at // len(self._codes[0]) % len(self._codes)]
            start = self._at % len(self._codes[0])
            part[start : start + left].max(initial=0)
            done = min(left, len(part) - start)
            self._at, left = self._at + done, left - done


def _exact(segments: list[Segment], queries: Floats, kernel: Kernel) -> BestVideos:
    """The best videos by an exact scan with one of the kernels."""
    ready = quantise_queries(queries, segments[0].dim)
    return best_among(segments, ready, K, [None] * len(segments), kernel)


def cold(folder: Path) -> dict[str, float]:
    """In a new process: seconds to import and open, to the first answer, and memory of its own after 100 queries."""
    done = subprocess.run(
        [sys.executable, __file__, "--cold", str(folder)], check=True, capture_output=True, text=True, timeout=900
    )
    return json.loads(done.stdout)


def cold_child(folder: Path) -> None:
    begun = time.perf_counter()
    asked = np.load(folder / "asked.npy")[:100]
    names = json.loads((folder / "corpus.json").read_text())["names"]
    scan = Scan.open([read_segment(folder, name) for name in names], folder / "plan")
    opened = time.perf_counter()
    scan.search(asked[0], K)
    first = time.perf_counter()
    scan.search(asked, K)
    status = Path("/proc/self/status").read_text() if Path("/proc/self/status").exists() else "RssAnon: 0 kB"
    own = next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]
    print(json.dumps({"open": opened - begun, "first": first - opened, "own MB": int(own) / 1024}))


def run(kind: str, videos: int, folder: Path, wanted: list[str], quick: bool, record: Record) -> None:
    count = 20 if quick else 100 if videos <= 200_000 else 50
    asked = np.concatenate([queries(kind, videos, count, level) for level in ("main", "hard")])
    corpus = stored(kind, videos, folder, asked)
    names, truth = corpus.names, corpus.truth
    segments = [read_segment(folder, name) for name in names]
    begun = time.perf_counter()
    plan = open_plan(folder / "plan", segments) or build_plan(segments, folder / "plan")
    planning = time.perf_counter() - begun
    scan = Scan(segments, plan)
    begun = time.perf_counter()
    depths = plan.depths if plan.depths.recall else tune(scan)
    tuning = time.perf_counter() - begun
    rows, title = videos * CLIPS, f"{videos:,} videos, {kind}"
    size = sum((folder / f"{name}.vec").stat().st_size for name in names) / rows
    planned = sum(path.stat().st_size for path in (folder / "plan").iterdir()) / rows
    print(f"\n{videos:,} {kind} videos, {rows:,} clips; {count} queries of each kind")
    print(
        f"  segments: {corpus.writing:.1f} s to quantise and write, {size:.0f} bytes per clip (int8 and float16)\n"
        f"  plan: {planning:.1f} s to build, {planned:.1f} bytes per clip, {plan.means.rows / videos:.2f} means "
        f"per video; tuned in {tuning:.0f} s to {depths.hope or 0:.2f} spreads, margins "
        f"{depths.coarse_margin or 0:.3f} and {depths.fine_margin or 0:.3f}; "
        f"a coarse list of {plan.listed.blocks.size / 1e6:.0f} MB"
    )
    fresh = cold(folder)
    print(
        f"  cold process: {fresh['open']:.2f} s to open, {fresh['first']:.2f} s to the first answer; "
        f"{fresh['own MB']:,.0f} MB of its own after 100 queries (mapped files not counted)"
    )
    ours = {
        "ours, exact": lambda q: list(_exact(segments, q, best_kernel()).ids),
        "ours, planned": lambda q: list(scan.search(q, K).ids),
    }
    if videos <= 100_000 and wanted:
        ours["ours, exact, numpy only"] = lambda q: list(_exact(segments, q, NumpyKernel()).ids)
    others = make_peers(wanted, all_clips(kind, videos), folder, record) if wanted else {}
    searches = {**ours, **{name: peer.search for name, peer in others.items()}}
    slow = videos > 200_000
    reading = PlainReading(segments, bytes_of_query(scan, asked[:10]))
    turns = {**searches, READING: lambda _: read_codes(segments), READING_PLAN: lambda _: reading.read()}
    single = in_turns(turns, asked[: min(count, 10 if slow or quick else 20)])
    batch = np.concatenate([asked[:count]] * (100 // count))
    brisk = {name: search for name, search in searches.items() if statistics.median(single[name]) < MAX_BRISK_SECONDS}
    hundred = rounds({name: lambda search=search: search(batch) for name, search in brisk.items()}, 3)
    base = single.get(FLAT)
    print(
        f"  {'':28}{'recall':>8}{'hard':>8}{'moments':>9}{'ms/query':>10}{'least':>8}{'ms/100':>9}"
        f"{'vs Flat':>9}{'build s':>9}"
    )
    for name, search in searches.items():
        main, spans = recalls(segments, asked[:count], truth[:count], search(asked[:count]))
        hard, _ = recalls(segments, asked[count:], truth[count:], search(asked[count:]))
        median, least = 1000 * statistics.median(single[name]), 1000 * min(single[name])
        ratio = f"{1000 * statistics.median(base) / median:.1f}x" if base else ""
        build = f"{others[name].seconds:.0f}" if name in others else ""
        quality = f"  {name:28}{main:8.4f}{hard:8.4f}{spans:9.4f}"
        together = f"{1000 * min(hundred[name]):.0f}" if name in hundred else ""
        print(f"{quality}{median:10.1f}{least:8.1f}{together:>9}{ratio:>9}{build:>9}", flush=True)
        if name in ("ours, exact", "ours, planned"):
            way = f"{title}, {name.removeprefix('ours, ')}"
            record.figure(f"{way}, one query", [1000 * s for s in single[name]], "ms")
            if name in hundred:
                record.figure(f"{way}, 100 at once", hundred[name], "s")
            record.figure(f"{title}, {name.removeprefix('ours, ')}, recall", [main], "share", "more")
            record.figure(f"{title}, {name.removeprefix('ours, ')}, recall on hard queries", [hard], "share", "more")
        elif name in others and not others[name].is_exact:
            record.figure(f"{title}, {name}, recall on hard queries", [hard], "share", "more")
    fair = {
        "exact": [READING, *(name for name, peer in others.items() if peer.is_exact)],
        "planned": [
            READING,
            READING_PLAN,
            *(name for name, peer in others.items() if name == FLAT or not peer.is_exact),
        ],
    }
    for way, beside in fair.items():
        for peer in beside:
            record.ratio(f"{title}, {way}", single[f"ours, {way}"], peer, single[peer])
        if BLOCKED in hundred and f"ours, {way}" in hundred:
            record.ratio(f"{title}, {way}, 100 at once", hundred[f"ours, {way}"], BLOCKED, hundred[BLOCKED])


def number(text: str) -> int:
    return int(float(text.lower().replace("k", "e3").replace("m", "e6")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", default="10k,100k", help="sizes, as in 10k,100k,1M")
    parser.add_argument("--corpus", default=",".join(KINDS))
    parser.add_argument("--peers", help=f"{', '.join(PEERS)}, or none; default: those that fit the size")
    parser.add_argument("--folder", type=Path, help="where the library is written and deleted again")
    parser.add_argument("--keep", action="store_true", help="leave the library in --folder for the next run")
    parser.add_argument("--quick", action="store_true", help="1,000 and 10,000 videos, few queries")
    parser.add_argument("--cold", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cold:
        cold_child(options.cold)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the library is deleted then too
    record = Record("scan-peers" if options.quick else "scan")
    for size in ["1k", "10k"] if options.quick else options.videos.split(","):
        videos = number(size)
        for kind in options.corpus.split(","):
            fitting = [name for name, peer in PEERS.items() if videos <= peer.max_videos]
            wanted = fitting if options.peers is None else [p for p in options.peers.split(",") if p in PEERS]
            if options.keep and options.folder:
                folder = options.folder / f"{kind}-{videos}"
                folder.mkdir(parents=True, exist_ok=True)
            else:
                folder = Path(tempfile.mkdtemp(prefix="scan-", dir=options.folder))
            try:
                need = videos * CLIPS * DIM * 3.6
                if not (folder / "corpus.json").exists() and shutil.disk_usage(folder).free < need:
                    sys.exit(f"{folder}: {need / 1e9:.0f} GB are needed; choose another place with --folder")
                run(kind, videos, folder, wanted, options.quick, record)
            finally:
                if not options.keep:
                    shutil.rmtree(folder)
    record.save()


if __name__ == "__main__":
    main()
