"""What models over a map of candidate moments cost: training, searching a video, searching MVMR's pools, pooling.

    python bench/map.py [train] [pairs] [pools] [pooling] [--quick] [--size small|middle|paper] [--json FILE]

train: pairs per second of the processor for 2D-TAN, MDD, MMN, CroCs, CET and BET on videos of 16, 64 and 128 clips,
with forward, backward and Adam's step. pairs: milliseconds per query and video once videos are encoded; models that
read query and video together run through their layers for every pair, the others multiply vectors, and what the
encoding takes per video stands beside it. pools: as many queries, videos and pools as MVMR's Charades-STA has (3,716
queries, pools of 50 of 1,334 videos, 136 moments in two spaces of 256 columns): encoding, predicting 50 moments with
suppression, measuring by both protocols, and the largest memory; beside it loops over queries, videos and moments on
some queries, multiplied. Both find the same moments, which is checked. pooling: the maximum over all candidates from
the maxima of the length before, and by a table of running maxima.

Features are random: times do not depend on what the clips show. Seconds are the processor's, one thread unless
--threads says otherwise, so that a busy machine does not stretch them. The pools' encodings come from a small network
that writes as many numbers as the paper's; encoding with the paper's is timed on a few videos and multiplied.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Dims
from momentseek.models.inference.encode import EncodedCorpus, encode_corpus, encode_queries
from momentseek.models.inference.prediction import predict
from momentseek.models.inference.second_stage import spans_of
from momentseek.models.layers.moment_map import Cells, cells, max_over
from momentseek.models.model import CorpusModel
from momentseek.models.registry import MODELS as REGISTERED
from momentseek.models.registry import build
from record import Record

MODELS = ("tan2d", "mdd", "mmn", "crocs", "cet", "bet")
LENGTHS = (16, 64, 128)
DIMS = Dims(query=300, video=500, subtitle=None)
SIZES: dict[str, dict[str, int]] = {
    "small": {"hidden": 16, "space": 16, "map_layers": 2, "kernel": 3, "text_layers": 1, "layers": 2, "heads": 4},
    "middle": {"hidden": 64, "space": 64, "map_layers": 4, "kernel": 5, "text_layers": 1, "layers": 3, "heads": 4},
    "paper": {"hidden": 512, "space": 256, "map_layers": 8, "kernel": 5, "text_layers": 3, "layers": 6, "heads": 8},
}
"""Settings of the models; the paper's are those for Charades-STA (MDD: four layers)."""
MVMR = {"queries": 3716, "videos": 1334, "pool": 50}
ASKING, SEEN = 40, 4
"""Queries and videos of which pairs are scored; four queries where each pair costs a run through the layers."""
NMS = 0.5
TOP = 50


@dataclass
class Table:
    """Random features, kept."""

    tables: dict[str, NDArray[np.float32]]

    def rows(self, name: str) -> int:
        return len(self.tables[name])

    def read(self, name: str) -> NDArray[np.float32]:
        return self.tables[name]


@dataclass
class World:
    """Data and split in one."""

    video: Table
    query: Table
    truth: Judgements
    corpus: tuple[str, ...]
    durations: dict[str, float]
    subtitle: Table | None = None
    clip_seconds: float = 1.0

    def rows(self, name: str) -> int:
        return self.video.rows(name)


@dataclass
class Stage:
    """What a stage took: of the processor, by the clock, and the bytes it held beyond those at its beginning."""

    cpu: float = 0.0
    seconds: float = 0.0
    peak: float = 0.0


@contextmanager
def measured() -> Iterator[Stage]:
    stage = Stage()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    held, begun, worked = memory("VmRSS"), time.perf_counter(), time.process_time()
    yield stage
    stage.cpu, stage.seconds = time.process_time() - worked, time.perf_counter() - begun
    stage.peak = max(0.0, memory("VmHWM") - held)


def memory(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return float(line.split()[1]) * 1024
    return float("nan")


def timed(work: Callable[[], object], least: float) -> float:
    """Seconds of the processor per call, after a first one, from as many calls as take ``least`` seconds."""
    work()
    calls, begun = 0, time.process_time()
    while not calls or time.process_time() - begun < least:
        work()
        calls += 1
    return (time.process_time() - begun) / calls


def made(name: str, clips: int, size: str) -> CorpusModel:
    """The model at a size; settings it does not have are left out."""
    torch.manual_seed(0)
    wanted: dict[str, Any] = {**SIZES[size], "max_clips": clips, "longest": clips, "fit": "stretch", "stride": 1}
    if name == "mdd" and size == "paper":
        wanted["map_layers"] = 4
    allowed = {f.name for f in fields(REGISTERED[name].config)}
    return build(name, {k: v for k, v in wanted.items() if k in allowed}, DIMS)


def batch_of(pairs: int, clips: int) -> Batch:
    """As many queries as videos, each video with one query."""
    rng = torch.Generator().manual_seed(0)
    words = Words(torch.randn(pairs, 8, DIMS.query, generator=rng), torch.ones(pairs, 8, dtype=torch.bool))
    video = torch.randn(pairs, clips, DIMS.video or 0, generator=rng)
    start = torch.randint(0, clips // 2, (pairs,), generator=rng)
    end = start + torch.randint(1, clips // 2, (pairs,), generator=rng)
    times = torch.stack([start / clips, (end + 1) / clips], 1)
    each = torch.arange(pairs)
    shown = Clips(video, None, torch.ones(pairs, clips, dtype=torch.bool))
    return Batch(words, shown, BatchPairs(each, each, start, end, torch.ones(pairs), torch.eye(pairs).bool(), times))


def train_part(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Pairs per second of the processor."""
    found = []
    for clips in given.lengths:
        together = max(2, min(given.batch, 16 * given.batch // clips))
        for name in MODELS:
            model = made(name, clips, given.size).train()
            optimiser = torch.optim.Adam(model.parameters(), 1e-4)
            batch = batch_of(together, clips)

            def step(model: CorpusModel = model, optimiser: Any = optimiser, batch: Batch = batch) -> None:
                optimiser.zero_grad()
                torch.stack(list(model.loss(batch, 0, torch.Generator()).values())).sum().backward()
                optimiser.step()

            spent = timed(step, given.least)
            found.append({"model": name, "clips": clips, "batch": together, "pairs per s": together / spent})
    title = f"Training, {sizes(given.size)}, {16 * given.batch} clips a step: pairs per second of the processor"
    table(title, found, "model", "clips", lambda row: f"{row['pairs per s']:,.1f}")
    return found


def pairs_part(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Milliseconds per pair of encoded query and video, and per video encoded."""
    found = []
    for clips in given.lengths:
        world = random_world(ASKING, SEEN, SEEN, 2 * clips)
        for name in MODELS:
            model = made(name, clips, given.size)
            with measured() as encoding:
                corpus = encode_corpus(model, world, world.corpus)
            queries = encode_queries(model, world, world.truth.query_ids)
            asked = np.arange(ASKING if model.retrieves else 4)
            everything = np.tile(np.arange(SEEN), (len(asked), 1))
            score = partial(spans_of, model, queries, corpus, asked, everything, None)
            spent = timed(score, given.least)
            kind = "vectors" if model.retrieves else "layers"
            row = {"model": name, "clips": clips, "per pair": kind, "ms per pair": 1e3 * spent / everything.size}
            found.append(row | {"ms per video": 1e3 * encoding.cpu / SEEN})
    title = f"Searching, {sizes(given.size)}: milliseconds of the processor per query and video (per video encoded)"
    table(title, found, "model", "clips", lambda row: f"{row['ms per pair']:.3f} ({row['ms per video']:.1f})")
    for clips in given.lengths:
        each = {row["model"]: row["ms per pair"] for row in found if row["clips"] == clips}
        maps, edges = each["tan2d"] / each["mmn"], each["cet"] / each["bet"]
        say(f"{clips} clips: 2D-TAN takes {maps:,.0f} times as long per pair as MMN, CET {edges:,.0f} times BET's")
    return found


def random_world(queries: int, videos: int, pool: int, clips: int) -> World:
    """Random features; each query has a moment in one video, and that one and others for its pool."""
    rng = np.random.default_rng(0)
    names = tuple(f"v{i}" for i in range(videos))
    asked = [f"q{i}" for i in range(queries)]
    shown = {n: rng.standard_normal((clips, DIMS.video or 0), dtype=np.float32) for n in names}
    words = {q: rng.standard_normal((8, DIMS.query), dtype=np.float32) for q in asked}
    pools = [rng.choice(videos, pool, replace=False) for _ in asked]
    start = rng.uniform(0, 0.7 * clips, queries)
    truth = Judgements.from_groups(
        asked,
        [1] * queries,
        [names[p[0]] for p in pools],
        start,
        start + rng.uniform(0.1, 0.3, queries) * clips,
        durations=dict.fromkeys(names, float(clips)),
        pools=([pool] * queries, [names[v] for p in pools for v in p]),
    )
    return World(Table(shown), Table(words), truth, names, dict.fromkeys(names, float(clips)))


def pools_part(given: argparse.Namespace) -> dict[str, Any]:
    """MVMR's size, or a tenth of it."""
    queries, videos, pool = (max(20, n // given.share) for n in MVMR.values())
    world = random_world(queries, videos, pool, 32)
    moments = len(cells(16))
    say(
        f"\n## Pools: {queries:,} queries, pools of {pool} of {videos:,} videos, {moments} moments of 2 x 256 columns\n"
    )
    stages: dict[str, Stage] = {}
    torch.manual_seed(0)
    little = {"hidden": 16, "map_layers": 1, "kernel": 3, "space": SIZES["paper"]["space"]}
    model = build("mmn", little, DIMS)
    with measured() as stages["videos encoded, small network"]:
        corpus = encode_corpus(model, world, world.corpus)
    real = made("mmn", 16, given.encoder)
    some = world.corpus[: given.encoded]
    with measured() as few:
        encode_corpus(real, world, some)
    each = few.cpu / len(some)
    say(f"encoding at {sizes(given.encoder)}: {1e3 * each:.0f} ms a video, {each * videos:,.0f} s for all\n")
    with measured() as stages["predicted, 50 moments per query"]:
        run = predict(model, world, world, k=TOP, nms=NMS, encoded=corpus)  # type: ignore[arg-type]
    measures = "R@{1,5,20,50}[IoU>={0.3,0.5,0.7}]"
    for protocol in ("mvmr", "mvmr-all"):
        with measured() as stages[f"measured, {protocol}"]:
            evaluate(run, world.truth, measures, protocol=protocol)
    with measured() as looped:
        slow = loops(model, world, corpus, given.loops)
    same(run, slow)
    say("| | processor s | clock s | MB beyond what was held |")
    say("|---|---|---|---|")
    for name, stage in stages.items():
        say(f"| {name} | {stage.cpu:.2f} | {stage.seconds:.2f} | {stage.peak / 1e6:,.0f} |")
    ours = stages["predicted, 50 moments per query"].cpu
    theirs = looped.cpu / given.loops * queries
    say(f"| predicted by loops over videos and moments (from {given.loops} queries) | {theirs:,.0f} | | |")
    say(f"\nloops take {theirs / ours:,.0f} times as long; both find the same moments")
    say(f"encodings {corpus.nbytes / 1e6:,.0f} MB; the whole process at most {peak_of_all() / 1e6:,.0f} MB")
    kept = {name: vars(stage) for name, stage in stages.items()}
    about = {"queries": queries, "videos": videos, "pool": pool, "stages": kept, "loops s": theirs}
    return about | {
        "ratio": theirs / ours,
        "encoding ms per video": 1e3 * few.cpu / len(some),
        "encoder": given.encoder,
    }


def peak_of_all() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def loops(model: CorpusModel, world: World, corpus: EncodedCorpus, few: int) -> dict[str, list[tuple[Any, ...]]]:
    """One query after another, one video of its pool after another, one moment after another."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    queries = encode_queries(model, world, world.truth.query_ids[:few])
    pools = world.truth.pools
    assert pools is not None
    with torch.inference_mode():
        for i, query in enumerate(world.truth.query_ids[:few]):
            asked = queries.take(np.array([i]))
            rows = []
            for code in pools.video[pools.offsets[i] : pools.offsets[i + 1]].tolist():
                name = world.truth.videos[code]
                grid = model.spans(asked, corpus.take(np.array([corpus.position[name]])))[0]
                first, length = torch.nonzero(grid > -torch.inf, as_tuple=True)
                score = grid[first, length]
                order = torch.argsort(score, descending=True, stable=True)
                each = world.durations[name] / grid.shape[0]
                start, end = (first * each)[order], ((first + length + 1) * each)[order]
                dropped = torch.zeros(len(order), dtype=torch.bool)
                for j in range(len(order)):
                    if dropped[j]:
                        continue
                    shared = (torch.minimum(end[j], end[j + 1 :]) - torch.maximum(start[j], start[j + 1 :])).clamp(
                        min=0
                    )
                    union = torch.maximum(end[j], end[j + 1 :]) - torch.minimum(start[j], start[j + 1 :])
                    dropped[j + 1 :] |= shared / union > NMS
                    rows.append((float(score[order[j]]), name, float(start[j]), float(end[j])))
            found[query] = sorted(rows, key=lambda row: -row[0])[:TOP]
    return found


def same(run: Run, slow: dict[str, list[tuple[Any, ...]]]) -> None:
    """Stop if the two disagree by more than single precision does."""
    for query, rows in slow.items():
        mine = run.score[run.rows(query)]
        np.testing.assert_allclose(mine, [row[0] for row in rows], rtol=1e-4, atol=1e-5)
        named = {(m.video, round(m.start, 2), round(m.end, 2)) for m in run.moments(query)}
        others = {(v, round(a, 2), round(b, 2)) for _, v, a, b in rows}
        if len(named & others) < 0.96 * len(others):  # the last places may tie in single precision
            raise SystemExit(f"{query}: loops find other moments")


def by_table(clips: Tensor, candidates: Cells) -> Tensor:
    """The maximum over each candidate by two look-ups in a table of running maxima over powers of two."""
    tables = [clips]
    while 2 ** len(tables) <= candidates.clips:
        step = 2 ** (len(tables) - 1)
        tables.append(torch.maximum(tables[-1][:, :-step], tables[-1][:, step:]))
    level = torch.floor(torch.log2(candidates.length.double() + 0.5)).long()
    pieces = []
    for power, running in enumerate(tables):
        first = candidates.start[level == power]
        last = first + candidates.length[level == power] - 2**power
        pieces.append(torch.maximum(running[:, first], running[:, last]))
    return torch.cat(pieces, dim=1)  # candidates ascend in length, so levels ascend too


def backward(work: Callable[[Tensor, Cells], Tensor], x: Tensor, candidates: Cells) -> None:
    work(x, candidates).sum().backward()  # type: ignore[no-untyped-call]


def pooling_part(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Forward alone, and forward and backward."""
    found = []
    for clips in given.lengths:
        candidates = cells(clips)
        x = torch.randn(8, clips, SIZES[given.size]["hidden"], requires_grad=True)
        if not torch.equal(by_table(x, candidates), max_over(x, candidates)):
            raise SystemExit(f"{clips} clips: the two maxima differ")
        for name, work in (("length by length (ours)", max_over), ("table of running maxima", by_table)):
            with torch.no_grad():
                forward = timed(partial(work, x, candidates), given.least)
            both = timed(partial(backward, work, x, candidates), given.least)
            found.append({"way": name, "clips": clips, "ms": 1e3 * forward, "ms with backward": 1e3 * both})
    title = f"Pooling, 8 videos of {SIZES[given.size]['hidden']} columns: milliseconds (with backward)"
    table(title, found, "way", "clips", lambda row: f"{row['ms']:.2f} ({row['ms with backward']:.2f})")
    return found


def sizes(size: str) -> str:
    s = SIZES[size]
    return f"{size} size (hidden {s['hidden']}, {s['map_layers']} layers of {s['kernel']} x {s['kernel']})"


def table(
    title: str, found: list[dict[str, Any]], down: str, across: str, show: Callable[[dict[str, Any]], str]
) -> None:
    """Print rows as a table in Markdown."""
    columns = list(dict.fromkeys(row[across] for row in found))
    say(f"\n## {title}\n")
    say(f"| | {' | '.join(f'{c} {across}' for c in columns)} |")
    say("|---" * (1 + len(columns)) + "|")
    for name in dict.fromkeys(row[down] for row in found):
        line = {row[across]: show(row) for row in found if row[down] == name}
        say(f"| {name} | {' | '.join(line[c] for c in columns)} |")
    say("")


def say(line: str) -> None:
    print(line, flush=True)


def keep_figures(found: dict[str, Any], size: str) -> None:
    """Put what compares two ways into the record."""
    record = Record("map")
    for clips in dict.fromkeys(row["clips"] for row in found.get("pairs", [])):
        each = {row["model"]: row["ms per pair"] / 1e3 for row in found["pairs"] if row["clips"] == clips}
        for ours, peer in (("mmn", "tan2d"), ("bet", "cet")):
            record.ratio(f"{ours}, a query and video of {clips} clips, {size} size", [each[ours]], peer, [each[peer]])
    for clips in dict.fromkeys(row["clips"] for row in found.get("pooling", [])):
        ours, peer = (row["ms"] / 1e3 for row in found["pooling"] if row["clips"] == clips)
        record.ratio(f"maxima over {clips} clips, length by length", [ours], "table of running maxima", [peer])
    if pools := found.get("pools"):
        spent = pools["stages"]["predicted, 50 moments per query"]["cpu"]
        name = f"pools, {pools['queries']:,} queries of {pools['pool']} videos"
        record.ratio(name, [spent], "loops over videos and moments", [pools["loops s"]])
    for row in found.get("train", []):
        name = f"training {row['model']}, {row['clips']} clips, {size} size"
        record.figure(name, [row["pairs per s"]], "pairs a second", "more")
    record.save()


PARTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "train": train_part,
    "pairs": pairs_part,
    "pools": pools_part,
    "pooling": pooling_part,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small models, 16 and 64 clips, a tenth of the pools")
    parser.add_argument("--size", choices=SIZES, default="middle", help="of the models (default: middle)")
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS), help="clips of a video")
    parser.add_argument("--batch", type=int, default=16, help="pairs of a training step")
    parser.add_argument("--least", type=float, default=2.0, help="seconds each figure is measured for, at least")
    parser.add_argument("--loops", type=int, default=20, help="queries that are searched by loops")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    given = parser.parse_args()
    unknown = [p for p in given.parts if p not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; parts are {', '.join(PARTS)}")
    given.share, given.encoder, given.encoded = 1, "paper", 8
    if given.quick:
        given.size, given.lengths, given.least, given.loops = "small", [16, 64], 0.1, 5
        given.share, given.encoder, given.encoded = 10, "middle", 16
    torch.set_num_threads(given.threads)
    threads = "1 thread" if given.threads == 1 else f"{given.threads} threads"
    say(f"torch {torch.__version__}, {threads} of {os.cpu_count()} processors")
    found = {name: PARTS[name](given) for name in given.parts or PARTS}
    keep_figures(found, given.size)
    if given.json:
        given.json.write_text(json.dumps({"size": given.size, "threads": given.threads} | found, indent=2) + "\n")


if __name__ == "__main__":
    main()
