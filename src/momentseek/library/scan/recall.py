"""How much of the exact answer the plan gives on one's own library, and how far it must look to give enough.

Queries are made from the library: a clip's vector with noise, so that its cosine to the clip lies between 0.45 and 0.9,
as those of descriptions and of similar pictures do. For each, the k best videos of the exact search are the truth, and
recall is the share of them the plan finds.

For tuning, one deep pass gives each true video its rank in the coarse list and its score by the finer means; whether it
would be found at smaller depths follows from these by counting, so the whole grid of depths costs one pass.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.exact import BestVideos, open_videos
from momentseek.library.scan.means import best_of_videos
from momentseek.library.scan.plan import Depths, Plan, set_depths
from momentseek.library.scan.queries import quantise_queries
from momentseek.library.scan.scan import Scan

SAMPLE_QUERIES = 64
TARGET_RECALL = 0.99
COARSE_DEPTHS = (1_000, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 20_000, 30_000, 50_000, 75_000, 100_000)
SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
LIST_COST = 0.3
"""What reading a byte of the coarse list costs beside a byte at a place of its own."""
FINE_DEPTHS = (250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 20_000, 40_000)


@dataclass(frozen=True)
class RecallReport:
    """What planned search finds of the exact answer, and what it costs."""

    videos: int
    clips: int
    queries: int
    k: int
    planned: bool
    """Whether a plan is used at all; if not, searches are exact and recall is 1."""
    recall: float
    worst: float
    """Recall of the query that does worst."""
    coarse: int
    fine: int
    share: float
    """Share of the coarse list that was read."""
    milliseconds: float
    """Median time of one planned query."""
    exact_milliseconds: float

    def __str__(self) -> str:
        size = f"{self.videos:,} videos, {self.clips:,} clips"
        if not self.planned:
            return f"recall 1 by definition: searches are exact here ({size}, {self.milliseconds:.1f} ms each)"
        return (
            f"recall@{self.k} {self.recall:.4f} (worst query {self.worst:.2f}) of {self.queries} queries over {size}: "
            f"{self.milliseconds:.1f} ms each, exact {self.exact_milliseconds:.1f} ms; "
            f"depths {self.coarse:,} / {self.fine:,}, {self.share:.0%} of the coarse list"
        )


def sample_queries(scan: Scan, count: int = SAMPLE_QUERIES, seed: int = 0) -> NDArray[np.float32]:
    """Unit vectors near clips of the library, drawn evenly over its clips."""
    rng = np.random.default_rng(seed)
    sizes = np.array([segment.rows for segment in scan.segments])
    if sizes.sum() == 0:
        return np.zeros((0, scan.segments[0].dim if scan.segments else 1), np.float32)
    ends = np.cumsum(sizes)
    rows = np.sort(rng.integers(0, ends[-1], count))
    owner = np.searchsorted(ends, rows, side="right")
    clips = np.stack(
        [scan.segments[i].half[r - (ends[i] - sizes[i])].astype(np.float32) for i, r in zip(owner, rows, strict=True)]
    )
    clips = normalise(np.nan_to_num(clips))
    cosine = rng.uniform(0.45, 0.9, (count, 1))
    noise = normalise(rng.normal(size=clips.shape))
    return normalise(cosine * clips + np.sqrt(1 - cosine**2) * noise).astype(np.float32)


def measure_recall(
    scan: Scan,
    queries: NDArray[np.float32] | None = None,
    *,
    sample: int = SAMPLE_QUERIES,
    k: int = 100,
    gone: Sequence[int] = (),
) -> RecallReport:
    """Compare planned with exact search on some queries, by default sampled from the library itself."""
    asked_for = sample_queries(scan, sample) if queries is None else queries
    away = np.asarray(gone, np.int64)
    plan = scan.plan
    shares, quick, slow = [], [], []
    for query in asked_for:
        begun = time.perf_counter()
        found = scan.search(query, k, gone=away)
        middle = time.perf_counter()
        truth = scan.search(query, k, gone=away, exact=True) if plan is not None else found
        quick.append(middle - begun)
        slow.append(time.perf_counter() - middle if plan is not None else quick[-1])
        shares.append(share_found(found, truth))
    return RecallReport(
        videos=scan.videos,
        clips=scan.rows,
        queries=len(asked_for),
        k=k,
        planned=plan is not None,
        recall=float(np.mean(shares)) if shares else 1.0,
        worst=float(np.min(shares)) if shares else 1.0,
        coarse=plan.depths.coarse if plan is not None else 0,
        fine=plan.depths.fine if plan is not None else 0,
        share=plan.depths.share if plan is not None else 1.0,
        milliseconds=1000 * float(np.median(quick)) if quick else 0.0,
        exact_milliseconds=1000 * float(np.median(slow)) if slow else 0.0,
    )


def share_found(found: BestVideos, truth: BestVideos) -> float:
    """The share of the true videos that were found; 1 if there are none."""
    if truth.ids.size == 0:
        return 1.0
    return float(np.mean([np.isin(t, f).mean() for t, f in zip(truth.ids, found.ids, strict=True)]))


def tune(
    scan: Scan, target: float = TARGET_RECALL, *, sample: int = SAMPLE_QUERIES, k: int = 100, gone: Sequence[int] = ()
) -> Depths:
    """Set the plan's depths to the cheapest that reach the target on sampled queries, and store them with the plan.

    It aims two thirds of the way from the target to 1: a sample is small, and hard queries do worse than others. If
    no depth suffices, the deepest is taken; the recall stored with the depths says what it gives.
    """
    plan = scan.plan
    if plan is None:
        raise ValueError("there is no plan to tune")
    queries = sample_queries(scan, sample, seed=1)
    grid = recall_by_depth(scan, plan, queries, k, np.asarray(gone, np.int64))
    aim = target + (1 - target) * 2 / 3
    enough = [d for d in grid if d.recall is not None and d.recall >= aim]
    best = min(enough, key=lambda d: bytes_read(plan, d)) if enough else max(grid, key=lambda d: d.recall or 0)
    scan.plan = set_depths(plan, best)
    return best


def recall_by_depth(
    scan: Scan, plan: Plan, queries: NDArray[np.float32], k: int, gone: NDArray[np.int64]
) -> list[Depths]:
    """Recall for every pair of depths of the grid, from one deep pass."""
    from momentseek.library.scan.coarse import rank_all
    from momentseek.library.scan.planned import PlanCoverage

    segments = scan.segments
    layout = PlanCoverage(segments, open_videos(segments, None, gone), plan)
    deepest = [c for c in COARSE_DEPTHS if c < plan.means.rows] + [plan.means.rows]
    deepest = deepest[: len(COARSE_DEPTHS)]
    kept = np.zeros((len(SHARES), len(deepest), len(FINE_DEPTHS)))
    total = 0
    for query in queries:
        ready = quantise_queries(query, plan.means.dim)
        truth = scan.search(query, k, gone=gone, exact=True)
        mine, numbers = layout.numbers(truth)
        total += len(mine)
        kept += np.count_nonzero(~mine)  # found anyway: their segments are scanned whole
        true = numbers[mine]
        order, reach = rank_all(plan.listed, ready.vectors[0])
        listed = [order[reach < share][: deepest[-1]] for share in SHARES]
        every = np.unique(np.concatenate(listed))
        bounds = np.full(plan.means.rows, -np.inf, np.float32)
        bounds[every] = np.where(layout.is_open(plan.means.owner[every]), plan.means.bounds(every, ready), -np.inf)
        for at, some in enumerate(listed):
            for row, depth in enumerate(deepest):
                found = _places_among(plan, bounds, some[:depth], true)
                kept[at, row] += [np.count_nonzero(found < max(fine, k)) for fine in FINE_DEPTHS]
    recall = kept / max(total, 1)
    return [
        Depths(coarse, fine, share, float(recall[n, i, j]))
        for n, share in enumerate(SHARES)
        for i, coarse in enumerate(deepest)
        for j, fine in enumerate(FINE_DEPTHS)
        if fine <= coarse
    ] or [replace(plan.depths, recall=float(recall[-1, -1, -1]))]


def _places_among(
    plan: Plan, bounds: NDArray[np.float32], numbers: NDArray[np.int32], true: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many videos of some means come before each of those that are wanted and among them."""
    videos, best = best_of_videos(plan.means.owner[numbers], bounds[numbers])
    there = best[np.isin(videos, true)]
    others = np.sort(best[best > there.min(initial=np.inf)])
    return np.asarray(len(others) - np.searchsorted(others, there, side="right"))


def bytes_read(plan: Plan, depths: Depths) -> float:
    """Bytes read at these depths: of the coarse list, the int8 means it keeps, and int8 clips of the videos left."""
    places = (depths.coarse + depths.fine * plan.clips) * plan.means.dim
    return places + LIST_COST * depths.share * plan.listed.blocks.size


def recall_report(scan: Scan, target: float = TARGET_RECALL, *, k: int = 100, gone: Sequence[int] = ()) -> RecallReport:
    """Tune the plan to a target, if there is a plan, and measure it on other queries than it was tuned on."""
    if scan.plan is not None:
        tune(scan, target, k=k, gone=gone)
    return measure_recall(scan, k=k, gone=gone)


def normalise(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors scaled to length 1, row by row; zero stays zero."""
    lengths: NDArray[Any] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))
