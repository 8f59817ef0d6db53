"""What it costs to rank moments with a trained model: time and memory per stage, and the setting of TVR's Table 6.

    python bench/rank.py [corpus] [million] [scan] [slate] [--quick] [--videos N] [--queries N] [--precision float16]
                         [--json FILE] [--tvr-ranking CHECKOUT]
    python bench/rank.py trained --checkpoint RUN --data DIR [--split test]

corpus: ReLoCLNet (hidden 384, at most 128 clips) at TVR-Ranking's sizes, 20,000 videos of about 50 clips and 2,781
queries, 40 moments each. Encoding is timed on a part of the videos, from features that are drawn when they are asked
for (that time is taken off); the encodings that are ranked are drawn (`drawn_encodings`). They are ranked through the
model's tensors and by bounds and compiled loops, in one run, and the lists are compared. The peak of a stage is the
memory of the process at its highest, less what was held when the stage began. Beside it: the public code's way to
rank spans (every start with every end of 128 clips, for all queries at once), timed on a few queries and multiplied.
With a checkout of TVR-Ranking's repository its own functions (mask and best cells, from utils/run_utils.py) are timed
in their place as well; they need what that file imports, its evaluator (evaluation.py) pandas too.

million: Table 6 of TVR: XML, and MEE with MCN, CAL and ExCL (hidden 256, TEF) on videos of 20 clips, spans of up to 14,
queries of 15 words. Encoding is timed on real forwards; the corpus that is searched is generated in the encodings'
place (scan_corpus.py, one set of vectors per modality), because encoding a million videos takes long and changes
nothing about searching them. It passes by in blocks, and all of ``--searched`` videos are searched.

scan: XML's first stage on generated encodings, exactly through ``models.inference``, and through the library's scan
over both modalities' vectors side by side, whose score is the best clip's mean cosine where XML's is the mean of the
best cosines; both lists are compared.

slate: Slate (hidden 256, docs/ranker.md) in both settings: 20,000 videos and 2,781 queries as in `corpus`, encodings
drawn likewise, 40 moments of each query from the 300 videos with the best clips; and ``--searched`` videos of 20 clips
as in `million`, written to ``--folder`` as a library keeps them, searched one query at a time, every answer proved
complete. They are generated, with queries made from their spans (`sample_span_queries`), which is the worst case: all
directions are alike, and no few columns hold most of a clip. With a trained Slate (``--checkpoint``, ``--data``) they
are spread copies of its clips (`spread_clips`), asked by the queries of ``--split``; leading columns rule out most.

Models are not trained in these four: times do not depend on weights. trained: what the other order of mean and maximum
costs a trained model, in overlap of the lists and in NDCG.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from momentseek.core.native.kernels import kernels
from momentseek.library.scan.plan import read_leading, write_leading
from momentseek.library.scan.scan import Scan
from momentseek.library.scan.spans import best_span_videos, sample_span_queries, search_spans, shortlist, span_scores
from momentseek.library.scan.threads import run_together
from momentseek.library.segments import Segment, quantise, read_segment, write_joined
from momentseek.models.features.data import Dims
from momentseek.models.inference import best_clips
from momentseek.models.inference import second_stage as curve_spans
from momentseek.models.inference.encode import EncodedCorpus, TensorShape, encode_corpus, encode_queries
from momentseek.models.inference.first_stage import RankedVideos, retrieve
from momentseek.models.inference.prediction import ClipSpans, MomentArrays, rank_moments
from momentseek.models.inference.second_stage import ClipTimes, spans_of
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.recognition.exported.span_head import SpanCurves, SpanHead, SpanQuery
from public_code import RANKING_FUNCTIONS, RANKING_MODULE, functions_of
from record import Record
from scan_corpus import CHUNK, CLIPS, NOISE, chunk, unit

Floats = NDArray[np.float32]
MB, GB = 1e6, 1e9
K = 40
SYSTEMS = {
    "XML (TEF)": ("xml", {"endpoints": True}, "29 s, 76 GB, 4.5 ms"),
    "MEE + MCN (TEF)": ("mcn", {"moment_endpoints": True}, "131 s, 326 GB, 10.8 ms"),
    "MEE + CAL (TEF)": ("cal", {"moment_endpoints": True}, "841 s, 2,235 GB, 15.2 ms"),
    "MEE + ExCL (TEF)": ("excl", {"endpoints": True}, "no encoding, more than an hour"),
}
"""The systems of Table 6: model, settings, and the paper's encoding, size and 100 queries, on an RTX 2080 Ti."""
SECOND = 20
"""Queries whose second stage is measured: MCN and CAL compute the vectors of all spans of every video."""
BLOCK = 50_000
"""Videos whose encodings are in memory at a time."""


class Drawn:
    """Features that are drawn anew, and always alike, when they are read; counts the processor's time for that."""

    def __init__(self, counts: dict[str, int], columns: int, seed: int) -> None:
        self.counts, self.columns, self.spent = counts, columns, 0.0
        self._noise = np.random.default_rng(seed).standard_normal(1 << 22, dtype=np.float32)

    def rows(self, name: str) -> int:
        return self.counts[name]

    def read(self, name: str) -> Floats:
        begun = time.thread_time()
        size = self.counts[name] * self.columns
        start = hash_of(name) % (len(self._noise) - size)
        rows = self._noise[start : start + size].reshape(-1, self.columns).copy()
        self.spent += time.thread_time() - begun
        return rows


def hash_of(name: str) -> int:
    return int(name[1:]) * 7919 + 13


@dataclass
class World:
    """Data and queries in one."""

    video: Drawn
    subtitle: Drawn
    query: Drawn
    clip_seconds: float = 1.5

    def rows(self, name: str) -> int:
        return self.video.rows(name)

    @property
    def reading(self) -> float:
        return self.video.spent + self.subtitle.spent + self.query.spent


def world(videos: Sequence[int], words: Sequence[int], dims: Dims) -> World:
    clips = {f"v{i}": int(c) for i, c in enumerate(videos)}
    asked = {f"q{i}": int(c) for i, c in enumerate(words)}
    return World(Drawn(clips, dims.video or 0, 1), Drawn(clips, dims.subtitle or 0, 2), Drawn(asked, dims.query, 3))


@dataclass
class Stage:
    """What a stage took."""

    seconds: float = 0.0
    """By the clock."""
    work: float = 0.0
    """Of the processor, all threads together: what a busy machine does not stretch."""
    peak: float = 0.0
    """Bytes beyond what was held at its beginning."""


def memory(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return float(line.split()[1]) * 1024
    return float("nan")


@contextmanager
def measured(data: World | None = None) -> Iterator[Stage]:
    """Time and peak of what happens inside."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    stage, held = Stage(), memory("VmRSS")
    begun, worked, reading = time.perf_counter(), time.process_time(), data.reading if data else 0.0
    yield stage
    drawing = (data.reading - reading) if data else 0.0
    stage.seconds = time.perf_counter() - begun - drawing
    stage.work = time.process_time() - worked - drawing
    stage.peak = memory("VmHWM") - held


def corpus_part(args: argparse.Namespace) -> dict[str, object]:
    """ReLoCLNet over a corpus, by tensors and by bounds and compiled loops; within 2 GB beyond the encoded corpus."""
    rng = np.random.default_rng(0)
    dims = Dims(query=768, video=1024, subtitle=768)
    counts = np.clip(np.rint(rng.normal(51, 10, args.videos)), 12, 128).astype(int)
    sample = min(args.sample, args.videos)
    data = world(counts[:sample].tolist(), rng.integers(6, 24, args.queries).tolist(), dims)
    torch.manual_seed(0)
    model = build("reloclnet", {"shortest": 3, "longest": 16}, dims)
    say(f"ReLoCLNet, {args.videos:,} videos ({counts.sum():,} clips), {args.queries:,} queries, {threads()} threads")
    with measured(data) as encoding:
        encoded = encode_corpus(model, data, tuple(data.video.counts), progress=told(data))
    line("videos encoded", encoding, f"{sample:,} of them, {1e3 * encoding.work / sample:.2f} ms a video")
    with measured(data) as asking:
        encode_queries(model, data, tuple(data.query.counts))
    line("queries encoded", asking, f"{1e3 * asking.seconds / args.queries:.2f} ms a query")
    figures: dict[str, object] = {"bytes per video": encoded.nbytes / sample}
    record = Record("rank")
    for kind in args.encodings:
        queries, corpus = drawn_encodings(kind, counts, args.queries, args.precision)
        figures[kind] = measure_ranking(args, model, queries, corpus, kind, record)
        del queries, corpus
    record.save()
    return figures


def drawn_encodings(
    kind: str,
    counts: NDArray[Any],
    asked: int,
    precision: str,
    parts: Sequence[str] = ("video", "subtitle"),
    dim: int = 384,
) -> tuple[EncodedCorpus, EncodedCorpus]:
    """Encodings of queries and videos as ReLoCLNet keeps them, drawn because encoding 20,000 videos takes minutes.

    ``noise``: all independent, which is what an untrained model gives for noise, and the hardest case. ``structured``:
    half of a clip's variance is its video's own, and eigenvalues fall like those of our offline encoder's vectors of
    real videos and films (1,685 clips: 0.73 of the variance in 8 directions, 0.86 in 16, 0.94 in 32, 0.98 in 64);
    here 1 / (k + 2)², which is 0.76, 0.86, 0.92 and 0.96. Queries are noisy copies of clips.
    """
    rng = np.random.default_rng(5)
    rows = int(counts.sum())
    values: dict[str, NDArray[Any]] = {"mask": np.ones(rows, bool)}
    texts: dict[str, NDArray[Any]] = {}
    starts = np.concatenate([[0], np.cumsum(counts)])
    picked = rng.integers(0, rows, asked)
    scale = (1 / np.arange(3, dim + 3)).astype(np.float32)
    scale /= np.sqrt(np.square(scale).sum())
    for name in parts:
        turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)
        clips = np.empty((rows, dim), precision)
        for low in range(0, len(counts), 1000):
            each = counts[low : low + 1000]
            some = rng.standard_normal((int(each.sum()), dim), dtype=np.float32)
            if kind == "structured":
                own = np.repeat(rng.standard_normal((len(each), dim), dtype=np.float32), each, axis=0)
                some = (np.float32(np.sqrt(0.5)) * scale * (some + own)) @ turn + np.float32(0.6) * turn[0]
            clips[starts[low] : starts[low] + len(some)] = unit(some)
        near = clips[picked].astype(np.float32)
        noise = rng.standard_normal((asked, dim), dtype=np.float32)
        noise = unit(noise if kind == "noise" else (noise * scale) @ turn)
        texts[name] = unit(np.float32(0.6) * near + np.float32(0.8) * noise)
        texts[f"{name}_span"] = 10 * texts[name]
        values[name] = clips
        values[f"{name}_length"] = np.ones(rows, precision)
    names = tuple(f"v{i}" for i in range(len(counts)))
    shapes = {n: TensorShape(0, v.shape[1:], str(v.dtype)) for n, v in values.items()}
    corpus = EncodedCorpus(names, counts.astype(np.int64), shapes, values)
    shapes = {n: TensorShape(None, v.shape[1:], "float32") for n, v in texts.items()}
    return EncodedCorpus(tuple(f"q{i}" for i in range(asked)), np.ones(asked, np.int64), shapes, texts), corpus


@contextmanager
def tensors_alone() -> Iterator[None]:
    """Ranking as it was before bounds and compiled loops."""
    held = best_clips.MIN_PRODUCTS, curve_spans.MIN_PAIRS
    best_clips.MIN_PRODUCTS = curve_spans.MIN_PAIRS = 1 << 62
    yield
    best_clips.MIN_PRODUCTS, curve_spans.MIN_PAIRS = held


def measure_ranking(
    args: argparse.Namespace,
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    kind: str,
    record: Record,
) -> dict[str, object]:
    """First stage, spans and merge in both ways, one after the other, and how many lists differ."""
    seconds = {n: 1.5 * c - 0.7 for n, c in zip(corpus.names, corpus.counts.tolist(), strict=True)}
    clocks = ClipTimes(Counted(corpus), corpus.names, model.config, seconds)
    every = np.arange(len(queries))
    found: dict[str, tuple[RankedVideos, MomentArrays]] = {}
    stages: dict[str, dict[str, Stage]] = {}
    kernels()
    for way in ("tensors", "bounds and loops"):
        with tensors_alone() if way == "tensors" else nullcontext():
            with measured() as first:
                candidates = retrieve(model, queries, corpus, model.config.videos)
            with measured() as second:
                spans = spans_of(model, queries, corpus, every, candidates.video, K, usable=clocks.usable)
        with measured() as merging:
            moments = rank_moments(ClipSpans(spans, clocks, "inclusive"), candidates, model.config.alpha, K, None)
        stages[way] = {"first stage": first, "spans": second, "merge": merging}
        found[way] = candidates, moments
        say(f"  {kind}, by {way}: {show(corpus.nbytes)} held")
        for name, stage in stages[way].items():
            line(f"  {name}", stage)
    old, new = found.values()
    lists = float(np.mean((old[0].video != new[0].video).any(axis=1)))
    differ = np.zeros(len(queries), bool)
    for a, b in zip(old[1][:3], new[1][:3], strict=True):
        differ |= (a != b).any(axis=1)
    sets = np.mean(
        [len(set(a) - set(b)) > 0 for a, b in zip(old[0].video.tolist(), new[0].video.tolist(), strict=True)]
    )
    say(f"  lists of videos that differ: {lists:.2%} (other videos in {sets:.2%}); of moments: {differ.mean():.2%}")
    for name in ("first stage", "spans"):
        ours, before = stages["bounds and loops"][name].work, stages["tensors"][name].work
        record.ratio(f"{kind}, {name}", [ours], "tensors", [before])
    totals = [sum(s.work for s in stages[way].values()) for way in ("bounds and loops", "tensors")]
    record.ratio(f"{kind}, all after encoding", totals[:1], "tensors", totals[1:])
    record.figure(f"{kind}, lists of moments that differ", [float(differ.mean())], "share")
    few = min(args.naive, len(queries))
    naive = public_way(model, queries, corpus, new[0].video, few)
    here = stages["bounds and loops"]
    ours = (here["spans"].work + here["merge"].work) / len(queries)
    record.ratio(f"{kind}, spans and merge of a query", [ours], "every start with every end", [naive.work / few])
    if args.tvr_ranking:
        stage = public_way(model, queries, corpus, new[0].video, few, args.tvr_ranking)
        record.ratio(f"{kind}, spans and merge of a query", [ours], "TVR-Ranking's own code", [stage.work / few])
    return {
        way: {name: {"seconds": s.seconds, "cpu": s.work, "peak bytes": s.peak} for name, s in each.items()}
        for way, each in stages.items()
    } | {"lists that differ": lists, "moments that differ": float(differ.mean())}


class Counted:
    """Clips of encoded videos."""

    clip_seconds = 1.5
    video = subtitle = None

    def __init__(self, corpus: EncodedCorpus) -> None:
        self._counts = dict(zip(corpus.names, corpus.counts.tolist(), strict=True))

    def rows(self, name: str) -> int:
        return self._counts[name]


def public_way(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    videos: NDArray[np.int64],
    few: int,
    checkout: Path | None = None,
) -> Stage:
    """Spans by the outer product of starts and ends over 128 clips, all videos of the queries in one tensor.

    With a checkout of TVR-Ranking its own functions mask the product and take the best cells, query by query.
    """
    theirs = functions_of(checkout, RANKING_MODULE, RANKING_FUNCTIONS) if checkout else []
    allowed = torch.ones(128, 128).triu(2).tril(15)
    with measured() as stage, torch.inference_mode():
        model.eval()
        index = torch.from_numpy(videos[:few].reshape(-1))
        chosen, inverse = np.unique(index.numpy(), return_inverse=True)
        fetched = {k: v[torch.from_numpy(inverse)] for k, v in corpus.take(chosen).items()}
        repeated = queries.take(np.repeat(np.arange(few), videos.shape[1]))
        start, end = model.boundaries(repeated, fetched)  # type: ignore[operator]
        room = 128 - start.shape[1]
        start, end = (torch.nn.functional.pad(x.exp(), (0, room)).view(few, -1, 128) for x in (start, end))
        product = torch.einsum("qvs,qve->qvse", start, end)
        if theirs:
            mask, best = theirs
            product = product * mask(product.shape, min_l=2, max_l=16)
            for scores in product:
                best(scores, K)
        else:
            torch.topk((product * allowed).reshape(few, -1), K)
    return stage


def million_part(args: argparse.Namespace) -> dict[str, object]:
    """Table 6, all systems: encoding measured on some videos, searching on as many as are asked for, none extrapolated.

    The first stage (XML's own, or MEE's) meets every one of ``--searched`` videos, whose encodings come in blocks: of
    the first block the others are turned copies (columns exchanged, signs flipped), and only searching is timed. The
    second stage searches spans of up to 14 clips in 100 videos for each of ``SECOND`` queries, no video twice, with
    encodings of real forwards.
    """
    dims = Dims(query=768, video=3072, subtitle=768)
    data = world([CLIPS - 1, *[CLIPS] * (args.sample - 1)], [15] * 100, dims)
    common = {"hidden": 256, "longest": 14, "max_clips": CLIPS}
    say(f"{args.searched:,} videos of {CLIPS} clips, 100 queries of 15 words, {threads()} threads; processor's seconds")
    found: dict[str, object] = {"videos": args.searched}
    mee = encoded_system("mee", common, data, dims)
    found["MEE"] = mee_cost = first_stage_cost(mee, args.searched)
    say(f"  MEE: {mee.describe()}; first stage {mee_cost.work:.2f} s")
    for name, (kind, settings, paper) in SYSTEMS.items():
        system = encoded_system(kind, common | settings, data, dims)
        first = first_stage_cost(system, args.searched) if kind == "xml" else mee_cost
        candidates = np.arange(100 * SECOND).reshape(SECOND, 100)
        searched = repeated(system.corpus, candidates.size)
        with measured() as second:
            spans = spans_of(system.model, system.queries, searched, np.arange(SECOND), candidates, 100)
        with measured() as merging:
            ranked = RankedVideos(candidates, np.zeros(candidates.shape, np.float32))
            clocks = ClipTimes(Fixed(), searched.names, system.model.config, {})
            rank_moments(ClipSpans(spans, clocks, "inclusive"), ranked, system.model.config.alpha, 100, None)
        stages = {"encode a video": system.encoding, "queries": system.asking, "first": first, "spans": second}
        stages["merge"] = merging
        say(
            f"  {name}: {system.describe()}; 100 queries encoded {system.asking.work:.2f}, first stage "
            f"{first.work:.2f}; {SECOND} queries, spans {second.work:.2f}, merge {merging.work:.2f} (paper: {paper})"
        )
        found[name] = {"kB": system.size / 1e3, **{k: {"cpu": v.work, "seconds": v.seconds} for k, v in stages.items()}}
    found["MEE"] = {"kB": mee.size / 1e3, "first": {"cpu": mee_cost.work, "seconds": mee_cost.seconds}}
    return found


def repeated(corpus: EncodedCorpus, videos: int) -> EncodedCorpus:
    """The encodings of other videos again and again, under names of their own."""
    index = np.arange(videos) % len(corpus)
    counts = corpus.counts[index]
    names = tuple(f"r{i}" for i in range(videos))
    rows = {key: [np.arange(*corpus.offsets[key][i : i + 2]) for i in index.tolist()] for key in corpus.values}
    values = {key: corpus.values[key][np.concatenate(some)] for key, some in rows.items()}
    return EncodedCorpus(names, counts, corpus.shapes, values)


@dataclass
class EncodedSystem:
    """A model, its encodings of some videos and 100 queries, and what making them took."""

    model: CorpusModel
    corpus: EncodedCorpus
    queries: EncodedCorpus
    encoding: Stage
    asking: Stage

    @property
    def size(self) -> float:
        """Bytes of a video in float32."""
        return self.corpus.nbytes / len(self.corpus)

    def describe(self) -> str:
        return f"encoding {1e3 * self.encoding.work / len(self.corpus):.2f} ms and {self.size / 1e3:.1f} kB a video"


def encoded_system(kind: str, settings: dict[str, object], data: World, dims: Dims) -> EncodedSystem:
    torch.manual_seed(0)
    model = build(kind, settings, dims)
    videos = tuple(data.video.counts)
    encode_corpus(model, data, videos[:32])
    with measured(data) as encoding:
        corpus = encode_corpus(model, data, videos, batch=128)
    with measured(data) as asking:
        queries = encode_queries(model, data, tuple(data.query.counts))
    return EncodedSystem(model, corpus, queries, encoding, asking)


def first_stage_cost(system: EncodedSystem, videos: int) -> Stage:
    """What the 100 best of ``videos`` videos take, for all queries: block after block, and merging their lists."""
    block = min(BLOCK, videos)
    clips = {name: np.empty((block * CLIPS, 256), np.float16) for name in SEEDS}
    for name, seed in SEEDS.items():
        for number, first in enumerate(range(0, block, CHUNK)):
            some = chunk("scenes", number, min(CHUNK, block - first), seed)
            clips[name][first * CLIPS : (first + len(some)) * CLIPS] = some.reshape(-1, 256)
    values: dict[str, NDArray[Any]] = dict(clips)
    if "weights" in system.queries.values:  # MEE keeps a vector per video
        values = {
            name: unit(v.reshape(block, CLIPS, 256).mean(1, dtype=np.float32)).astype(np.float16)
            for name, v in clips.items()
        }
        values["there"] = np.ones((block, len(SEEDS)), bool)
    questions = pointed(system.queries, block)
    shapes = {n: TensorShape(None if len(v) == block else 0, v.shape[1:], str(v.dtype)) for n, v in values.items()}
    values["mask"], shapes["mask"] = np.ones(block * CLIPS, bool), TensorShape(0, (), "bool")
    names, counts = tuple(f"v{i}" for i in range(block)), np.full(block, CLIPS, np.int64)
    rng, total, best = np.random.default_rng(1), Stage(), None
    for first in range(0, videos, block):
        turned = values if not first else {n: turn(v, rng) if v.dtype == np.float16 else v for n, v in values.items()}
        part = EncodedCorpus(names, counts, shapes, turned)
        with measured() as stage:
            found = retrieve(system.model, questions, part, 100)
            lists = found.video + first, found.score
            if best is not None:
                lists = tuple(np.concatenate(pair, axis=1) for pair in zip(best, lists, strict=True))
            order = np.argsort(-lists[1], axis=1, kind="stable")[:, :100]
            best = tuple(np.take_along_axis(values_, order, axis=1) for values_ in lists)
        total.seconds, total.work = total.seconds + stage.seconds, total.work + stage.work
    return total


def turn(vectors: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Other vectors with the same lengths and products among each other: columns exchanged, some with other signs."""
    columns = rng.permutation(vectors.shape[1])
    signs = (rng.integers(0, 2, vectors.shape[1]) << 15).astype(np.uint16)
    return (np.take(vectors.view(np.uint16), columns, axis=1) ^ signs).view(np.float16)


def scan_part(args: argparse.Namespace) -> dict[str, object]:
    """XML's first stage by exact products and by the library's scan, over the same generated encodings."""
    dims = Dims(query=768, video=3072, subtitle=768)
    settings = {"endpoints": True, "longest": 14, "max_clips": CLIPS}
    torch.manual_seed(0)
    model = build("xml", settings, dims)
    sample = args.sample
    data = world([CLIPS] * sample, [15] * 100, dims)
    say(f"XML, {CLIPS} clips a video, {threads()} threads")
    encode_corpus(model, data, [f"v{i}" for i in range(min(64, sample))])
    with measured(data) as encoding:
        kept = encode_corpus(model, data, tuple(data.video.counts), batch=128)
    line("videos encoded", encoding, f"{sample:,} of them, {kept.nbytes / sample / 1e3:.1f} kB a video in float32")
    videos = args.searched
    corpus, segment = generated(videos)
    with measured(data) as asking:
        questions = encode_queries(model, data, tuple(data.query.counts))
    questions = pointed(questions, videos)
    with measured() as exact:
        truth = retrieve(model, questions, corpus, 100)
    with measured() as second:
        spans = spans_of(model, questions, corpus, np.arange(100), truth.video, 100)
    clocks = ClipTimes(Fixed(), corpus.names, model.config, {})
    with measured() as merging:
        rank_moments(ClipSpans(spans, clocks, "inclusive"), truth, model.config.alpha, 100, None)
    joined = np.concatenate([questions.values["video"], questions.values["subtitle"]], 1) / np.float32(np.sqrt(2))
    scan = Scan([segment])
    scan.search(joined, 100, exact=True)  # loads the kernel
    with measured() as scanning:
        scan.search(joined, 100, exact=True)
    singles = [timed(partial(scan.search, q, 100, exact=True)) for q in joined[:20]]
    found = scan.search(joined, min(400, videos), exact=True)
    say(f"  {videos:,} videos, 100 queries: by the clock, of the processor, peak beyond the corpus")
    line("queries encoded", asking)
    line("first stage, exact product", exact, f"corpus {show(corpus.nbytes)} in float16")
    line(
        "first stage, the scan",
        scanning,
        f"segment {show(segment_bytes(segment))}; one query {1e3 * np.median(singles):.0f} ms",
    )
    line("spans", second)
    line("merge", merging)
    shares = {d: overlap(truth.video, found.ids[:, :d]) for d in (100, 200, 400)}
    first = float(np.mean(truth.video[:, 0] == found.ids[:, 0]))
    say(
        "  of the 100 videos by the mean of the best cosines, the best mean cosine has "
        + ", ".join(f"{s:.1%} in its first {d}" for d, s in shares.items())
        + f"; the first is the same for {first:.0%}"
    )
    return {
        "bytes per video": kept.nbytes / sample,
        "videos": videos,
        "stages": {
            name: {"seconds": s.seconds, "cpu": s.work, "peak bytes": s.peak}
            for name, s in (
                ("queries", asking),
                ("exact", exact),
                ("scan", scanning),
                ("spans", second),
                ("merge", merging),
            )
        },
        "overlap": shares,
    }


class Fixed:
    """Every video has the same clips."""

    clip_seconds = 1.5
    video = subtitle = None

    def rows(self, name: str) -> int:
        return CLIPS


SEEDS = {"video": 0, "subtitle": 1}


def generated(videos: int) -> tuple[EncodedCorpus, Segment]:
    """Encodings as XML would keep them, in float16, and the library's segment of both modalities side by side."""
    rows, dim = videos * CLIPS, 256
    values: dict[str, NDArray[Any]] = {"mask": np.ones(rows, bool)}
    for name, seed in SEEDS.items():
        values[name] = np.empty((rows, dim), np.float16)
        for number, first in enumerate(range(0, videos, CHUNK)):
            clips = chunk("scenes", number, min(CHUNK, videos - first), seed)
            values[name][first * CLIPS : (first + len(clips)) * CLIPS] = clips.reshape(-1, dim)
        values[f"{name}_span"] = values[name].copy()
    shapes = {n: TensorShape(0, v.shape[1:], str(v.dtype)) for n, v in values.items()}
    counts = np.full(videos, CLIPS, np.int64)
    corpus = EncodedCorpus(tuple(f"v{i}" for i in range(videos)), counts, shapes, values)
    codes, scales = np.empty((rows, 2 * dim), np.int8), np.empty(rows, np.float32)
    half = np.empty((rows, 2 * dim), np.float16)
    for a in range(0, rows, 1 << 16):
        part = np.concatenate([values[name][a : a + (1 << 16)] for name in SEEDS], axis=1)
        wide = part.astype(np.float32) / np.float32(np.sqrt(2))
        codes[a : a + len(wide)], scales[a : a + len(wide)] = quantise(wide)
        half[a : a + len(wide)] = wide
    offsets = np.arange(0, rows + 1, CLIPS)
    return corpus, Segment("", "trained", np.arange(videos), offsets, codes, scales, half)


def pointed(queries: EncodedCorpus, videos: int) -> EncodedCorpus:
    """The queries' vectors replaced by noisy copies of clips: one clip of one video for each, in both modalities."""
    rng = np.random.default_rng(7)
    target = rng.integers(0, min(CHUNK, videos), 100), rng.integers(0, CLIPS, 100)
    values = dict(queries.values)
    cosine = np.float32(NOISE["hard"])
    for name, seed in SEEDS.items():
        near = chunk("scenes", 0, min(CHUNK, videos), seed)[target]
        noise = unit(rng.standard_normal(near.shape, dtype=np.float32))
        values[name] = unit(cosine * near + np.sqrt(1 - cosine**2) * noise)
        values[f"{name}_span"] = 10 * values[name]
    return EncodedCorpus(queries.names, queries.counts, queries.shapes, values)


SCALES = (8.4, 2.5, 2.4)
"""Lengths of what, start and end that a training on a simulation ended with."""
DEEP = 300
"""Videos with the best clips among which Slate's best spans are sought."""


def slate_part(args: argparse.Namespace) -> dict[str, object]:
    """Slate over a corpus of TVR-Ranking's size, and over a generated library."""
    dims = Dims(query=768, video=1024, subtitle=768)
    torch.manual_seed(0)
    model = build("slate", {"hidden": 256, "longest": 14}, dims)
    rng = np.random.default_rng(0)
    counts = np.clip(np.rint(rng.normal(51, 10, args.videos)), 12, 128).astype(int)
    sample = min(args.sample, args.videos)
    data = world(counts[:sample].tolist(), rng.integers(6, 24, args.queries).tolist(), dims)
    say(f"Slate, {args.videos:,} videos ({counts.sum():,} clips), {args.queries:,} queries, {threads()} threads")
    with measured(data) as encoding:
        encoded = encode_corpus(model, data, tuple(data.video.counts))
    line("videos encoded", encoding, f"{sample:,} of them, {1e3 * encoding.work / sample:.2f} ms a video")
    with measured(data) as asking:
        encode_queries(model, data, tuple(data.query.counts))
    line("queries encoded", asking, f"{1e3 * asking.work / args.queries:.2f} ms a query")
    figures: dict[str, object] = {
        "encoding a video, ms": 1e3 * encoding.work / sample,
        "bytes": encoded.nbytes / sample,
    }
    say(f"  {encoded.nbytes / sample / 1e3:.1f} kB a video in float32; a library keeps 772 bytes a clip")
    figures["corpus"] = slate_corpus(args, model, counts)
    figures["library"] = slate_library(args)
    return figures


def slate_corpus(args: argparse.Namespace, model: CorpusModel, counts: NDArray[Any]) -> dict[str, float]:
    """First stage, spans and moments of all queries; drawn as ReLoCLNet's are."""
    both, drawn = drawn_encodings("structured", counts, args.queries, "float32", ("video",), 256)
    clips, what = drawn.values["video"], both.values["video"]
    rng = np.random.default_rng(6)
    vectors = np.stack([what, *(unit(rng.standard_normal(what.shape, dtype=np.float32)) for _ in "se")], 1)
    vectors *= np.float32(SCALES)[:, None]
    del both, drawn
    corpus = EncodedCorpus(
        tuple(f"v{i}" for i in range(len(counts))), counts.astype(np.int64),
        {"mask": TensorShape(0, (), "bool"), "clips": TensorShape(0, (256,), "float32")},
        {"mask": np.ones(len(clips), bool), "clips": clips},
    )  # fmt: skip
    lengths = np.zeros((args.queries, 14), np.float32)
    values = {"clips": vectors[:, 0], "start": vectors[:, 1], "end": vectors[:, 2], "lengths": lengths}
    shapes = {n: TensorShape(None, v.shape[1:], "float32") for n, v in values.items()}
    queries = EncodedCorpus(
        tuple(f"q{i}" for i in range(args.queries)), np.ones(args.queries, np.int64), shapes, values
    )
    codes, scales = quantise(clips)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    segment = Segment("", "vision", np.arange(len(counts)), offsets, codes, scales, clips.astype(np.float16))
    kernels()
    with measured() as first:
        near = retrieve(model, queries, corpus, DEEP)
    asked = [SpanQuery(v, some, 1) for v, some in zip(vectors, lengths, strict=True)]
    best: list[tuple[NDArray[np.int64], Floats]] = [(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(asked)

    def rank(number: int) -> None:
        scores = span_scores([(segment, near.video[number])], asked[number])
        order = np.argsort(-scores, kind="stable")[:K]
        best[number] = near.video[number][order], scores[order]

    with measured() as second:
        run_together([partial(rank, number) for number in range(len(asked))])
    with measured() as third:
        moments = [moments_of(segment, videos, query) for (videos, _), query in zip(best, asked, strict=True)]
    assert all(abs(m[0] - b[1][0]) < 1e-2 for m, b in zip(moments[:50], best, strict=False))
    few = asked[: args.naive]
    scan = Scan([segment])
    with measured() as exact:
        truth = [search_spans(scan, query, K) for query in few]
    whole = np.mean([set(t.ids[0].tolist()) <= set(b[0].tolist()) for t, b in zip(truth, best, strict=False)])
    line("  first stage", first, f"{DEEP} videos by their best clips, exactly")
    line("  spans", second, f"the best of each of them, {K} videos kept")
    line("  moments", third, f"the best {K}")
    line("  proved instead", exact, f"{len(few)} queries, {1e3 * exact.seconds / len(few):.0f} ms each by the clock")
    say(f"  the {K} videos with the best spans are the exact ones for {whole:.0%} of these")
    with tensors_alone(), measured() as tensors:
        spans_of(model, queries, corpus, np.arange(args.naive), near.video[: args.naive], K)
    line("  spans through tensors", tensors, f"{args.naive} queries")
    total = first.work + second.work + third.work
    say(f"  all after encoding: {total:.1f} s of the processor, {1e3 * total / len(asked):.2f} ms a query")
    stages = {"first": first, "spans": second, "moments": third, "exact": exact, "tensors": tensors}
    return {f"{n} {k}": v for n, s in stages.items() for k, v in (("s", s.seconds), ("cpu", s.work), ("peak", s.peak))}


def moments_of(segment: Segment, videos: NDArray[np.int64], query: SpanQuery) -> Floats:
    """Scores of the K best spans of some videos, duplicates included."""
    grids = [SpanCurves.of(query.curves(segment.vectors(at)), query).grid(1, 14).ravel() for at in videos.tolist()]
    scores = np.concatenate(grids)
    return np.sort(-np.partition(-scores, K)[:K])[::-1].astype(np.float32)


def slate_library(args: argparse.Namespace) -> dict[str, object]:
    """Videos as a library keeps them, on disk, one query at a time: reading all bytes, and by leading columns first."""
    if args.checkpoint:
        folder = args.folder / f"spread-{args.searched}"
        drawn, queries = spread_clips(args)
        segments = [read_segment(folder, name) for name in stored_clips(folder, args.searched, drawn)]
        path = folder / "leading"
        with measured() as building:
            basis = write_leading(segments, path)
        raw = np.memmap(path, np.uint8, mode="r") if basis.size else np.zeros(0, np.uint8)
        leading = read_leading(raw, basis, [s.name for s in segments], {s.name: s.rows for s in segments})
        known = [leading[s.name] for s in segments]
        line("leading columns", building, f"{basis.shape[1]} of {basis.shape[0]}")
    else:
        folder, known = args.folder / f"slate-{args.searched}", []
        segments = [read_segment(folder, name) for name in stored_clips(folder, args.searched, generated_clips)]
        queries = sample_span_queries(Scan(segments), SpanHead(256, 1, 14, SCALES, 38), args.asked, seed=3)
    every = [None] * len(segments)
    took: dict[str, list[Stage]] = {"all bytes": [], "leading columns": [], "and the rest": []}
    left = []
    for number, query in enumerate([*queries[:2], *queries]):  # the first two load what is needed
        if known:
            with measured() as first:
                places = shortlist(segments, known, query, 20, every)
            with measured() as second:
                found = best_span_videos(segments, query, 20, places)
            left.append(sum(len(p) for p in places if p is not None))
            took["leading columns"].append(first)
            took["and the rest"].append(second)
        if number < 2 + args.naive:
            with measured() as whole:
                truth = best_span_videos(segments, query, 20, every)
            took["all bytes"].append(whole)
            assert not known or (truth.ids == found.ids).all()
    figures: dict[str, object] = {"videos": args.searched, "left": float(np.median(left or [args.searched]))}
    for name, stages in took.items():
        for what in ("seconds", "work") if stages else ():
            each = 1e3 * np.array([getattr(stage, what) for stage in stages[2:]])
            middle, most, least = np.median(each), np.quantile(each, 0.95), each.min()
            say(f"  {name}, {what}: median {middle:.1f} ms, 95 % within {most:.1f}, least {least:.1f}")
            figures[f"{name}, {what}"] = float(middle)
    say(f"  {args.searched:,} videos, of which {figures['left']:.0f} are left (median); all answers proved")
    return figures


def generated_clips(number: int, videos: int) -> Floats:
    return chunk("scenes", number, videos).reshape(-1, 256)


def spread_clips(args: argparse.Namespace) -> tuple[Callable[[int, int], Floats], list[SpanQuery]]:
    """Clips of a trained Slate, 20 at a time, each video drawn with noise of the clips' own covariance; and queries.

    The noise has about a third of a clip's length for each video and a seventh for each clip.
    """
    from momentseek.models.features.data import Data
    from momentseek.models.training.checkpoint import load_checkpoint

    model = load_checkpoint(args.checkpoint).model
    with Data.open(args.data) as data:
        split = data.split(args.split)
        queries = encode_queries(model, split, split.truth.query_ids[: args.asked]).values
        corpus = encode_corpus(model, data, split.corpus)
    clips, ends = corpus.values["clips"], np.cumsum(corpus.counts)
    each = zip(ends, corpus.counts, strict=True)
    firsts = np.concatenate([np.arange(end - count, end - CLIPS + 1, CLIPS) for end, count in each])
    values, turn = np.linalg.eigh(np.cov(clips[::4].T))
    spread = (turn * np.sqrt(np.maximum(values, 0))).T.astype(np.float32)

    def draw(number: int, videos: int) -> Floats:
        rng = np.random.default_rng([3, number])
        some = clips[rng.choice(firsts, videos)[:, None] + np.arange(CLIPS)]
        own = rng.standard_normal((videos, 1, len(spread)), dtype=np.float32) @ spread
        each = rng.standard_normal((videos, CLIPS, len(spread)), dtype=np.float32) @ spread
        return unit(some + np.float32(0.35) * own + np.float32(0.15) * each).reshape(-1, clips.shape[1])

    vectors = np.stack([queries[name] for name in ("clips", "start", "end")], 1)
    shortest = model.config.shortest
    return draw, [SpanQuery(v, some, shortest) for v, some in zip(vectors, queries["lengths"], strict=True)]


def stored_clips(folder: Path, videos: int, draw: Callable[[int, int], Floats]) -> list[str]:
    """Segments of videos of 20 drawn clips in a folder, made if they are not there."""
    known = folder / "names.json"
    if not known.exists():
        folder.mkdir(parents=True, exist_ok=True)
        names, waiting = [], []
        for number, first in enumerate(range(0, videos, CHUNK)):
            clips = draw(number, min(CHUNK, videos - first))
            codes, scales = quantise(clips)
            ids = np.arange(first, first + len(clips) // CLIPS)
            offsets = np.arange(0, len(clips) + 1, CLIPS)
            waiting.append(Segment("", "vision", ids, offsets, codes, scales, clips.astype(np.float16)))
            if len(waiting) == 10 or first + CHUNK >= videos:
                names.append(write_joined(folder, "vision", waiting))
                waiting = []
                say(f"    {first + CHUNK:,} videos written")
        known.write_text(json.dumps(names))
    return list(json.loads(known.read_text()))


def trained_part(args: argparse.Namespace) -> dict[str, object]:
    """What ranking videos by the best mean cosine, as the scan does, costs a trained XML or ReLoCLNet."""
    from momentseek.measuring.evaluate import evaluate
    from momentseek.models.features.data import Data
    from momentseek.models.inference.prediction import predict
    from momentseek.models.training.checkpoint import load_checkpoint

    checkpoint = load_checkpoint(args.checkpoint)
    model = checkpoint.model
    with Data.open(args.data) as data:
        split = data.split(args.split)
        corpus = encode_corpus(model, data, split.corpus)
        queries = encode_queries(model, split, split.truth.query_ids)
        truth = retrieve(model, queries, corpus, 100)
        sides = np.concatenate([corpus.values[m] for m in SEEDS], axis=1) / 2
        asked = np.concatenate([queries.values[m] for m in SEEDS], axis=1)
        starts = corpus.offsets["video"][:-1]
        scores = np.concatenate(
            [
                np.maximum.reduceat(sides @ part.T, starts, axis=0).T
                for part in np.array_split(asked, 1 + len(asked) // 64)
            ]
        )
        found = np.argsort(-scores, axis=1, kind="stable")
        measure = "NDCG@20[IoU>=0.5]"
        own, other = (
            evaluate(predict(model, data, split, videos=v, encoded=corpus), split.truth, [measure]).means[measure]
            for v in (None, scores)
        )
    shares = {d: overlap(truth.video, found[:, :d]) for d in (100, 200, 400)}
    say(f"{checkpoint.config.model}, split {args.split}, {len(corpus):,} videos, {len(queries):,} queries")
    say(f"  {measure} by the mean of the best cosines {own:.4f}, by the best mean cosine {other:.4f}")
    say(f"  of its 100 videos in the other's first: {', '.join(f'{s:.1%} of {d}' for d, s in shares.items())}")
    return {"own": own, "other": other, "overlap": shares}


def overlap(truth: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    return float(np.mean([np.isin(t, f).mean() for t, f in zip(truth, found, strict=True)]))


def segment_bytes(segment: Segment) -> int:
    return int(segment.codes.nbytes + segment.scales.nbytes + segment.half.nbytes)


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def told(data: World) -> Callable[[str, int, int], None]:
    """A line now and then, because encoding takes minutes."""
    said = [time.monotonic()]

    def tell(stage: str, done: int, total: int) -> None:
        if time.monotonic() - said[0] > 60:
            said[0] = time.monotonic()
            say(f"    {stage}: {done:,} of {total:,}")

    return tell


def threads() -> int:
    return torch.get_num_threads()


def show(count: float) -> str:
    return f"{count / GB:.2f} GB" if count >= GB else f"{count / MB:.0f} MB"


def line(name: str, stage: Stage, more: str = "") -> None:
    say(f"  {name:<28}{stage.seconds:>9.2f} s {stage.work:>9.2f} s {show(max(0.0, stage.peak)):>10}   {more}".rstrip())


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help="corpus, million, scan (all by default), slate, trained")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="for Slate's generated library"
    )
    parser.add_argument("--asked", type=int, default=100, help="queries to Slate's generated library")
    parser.add_argument("--quick", action="store_true", help="500 videos and 100 queries; 2,000 searched")
    parser.add_argument("--videos", type=int, help="of the corpus (20,000)")
    parser.add_argument("--queries", type=int, help="asked of the corpus (2,781)")
    parser.add_argument("--searched", type=int, help="videos of Table 6's setting that are searched (100,000)")
    parser.add_argument("--sample", type=int, help="videos of Table 6's setting that are encoded (2,000)")
    parser.add_argument("--naive", type=int, default=32, help="queries the public way is timed on")
    parser.add_argument("--encodings", nargs="+", default=["structured", "noise"], help="kinds of drawn encodings")
    parser.add_argument("--precision", choices=["float32", "float16"], default="float32", help="of the corpus")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="torch's threads")
    parser.add_argument("--checkpoint", help="of a trained XML or ReLoCLNet with both modalities, or Slate")
    parser.add_argument("--data", help="the data folder for the checkpoint")
    parser.add_argument("--split", default="test", help="of the data")
    parser.add_argument(
        "--tvr-ranking", type=Path, metavar="DIR", help="a checkout of TVR-Ranking, to time its own ranking of spans"
    )
    parser.add_argument("--json", type=Path, help="also write the figures here")
    args = parser.parse_args()
    if args.tvr_ranking:
        functions_of(args.tvr_ranking, RANKING_MODULE, RANKING_FUNCTIONS)  # before the long work
    args.videos = args.videos or (500 if args.quick else 20_000)
    args.queries = args.queries or (100 if args.quick else 2_781)
    args.searched = args.searched or (2_000 if args.quick else 100_000)
    args.sample = args.sample or (200 if args.quick else 2_000)
    torch.set_num_threads(args.threads or 1)
    parts = {"corpus": corpus_part, "million": million_part, "scan": scan_part, "trained": trained_part}
    parts["slate"] = slate_part
    default = ["trained"] if args.checkpoint else ["corpus", "million", "scan"]
    figures = {name: parts[name](args) for name in args.part or default}
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
