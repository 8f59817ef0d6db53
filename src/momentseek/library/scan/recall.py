"""Measures how much of the exact answer a plan finds in a library, and tunes its limits to a target recall.

Queries are made from the library: a clip's vector with noise, so that its cosine to the clip lies between 0.1, as that
of a sentence, and 0.9, as that of a similar picture. For each, the k best videos of the exact search are the truth, and
recall is the share of them the plan finds.

For tuning, one pass over the whole list finds the margins that each query needs to find each of its best videos; the
margins are set so that only a few videos are missed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.coarse import Reach, list_near
from momentseek.library.scan.exact import BestVideos, open_videos
from momentseek.library.scan.kernels import MIN_PLANNED_ROWS, has_kernels, quantise_queries
from momentseek.library.scan.plan import Depths, Plan, build_plan, open_plan, set_depths
from momentseek.library.scan.scan import Scan, first_videos, ranked_videos
from momentseek.library.segments import MAX_JOINED_ROWS, Segment

SAMPLE_QUERIES = 64
COSINES = 0.1, 0.9
"""Smallest and largest cosine of a sampled query with its clip."""
TARGET_RECALL = 0.99
LOSS_SHARES = (1 / 3, 1 / 6, 1 / 12, 0.0)
"""Shares of the allowed misses that each of three steps may use, tried in order until the target is reached."""
MIN_DIFFERENCE = 1e-4
"""Difference of the best and the last score below which the videos that a query finds are copies of each other."""
MAX_COARSE, MAX_FINE = 50_000, 10_000
"""Largest numbers of means and videos for a query if margins decide."""


@dataclass(frozen=True)
class RecallReport:
    """The recall of planned search compared with exact search, and its cost."""

    videos: int
    clips: int
    queries: int
    k: int
    planned: bool
    """Whether a plan is used at all; if not, searches are exact and recall is 1."""
    recall: float
    worst: float
    """Recall of the worst query."""
    coarse: int
    fine: int
    share: float
    """Share of the coarse list that may be read; margins may end a query earlier."""
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
            f"at most {self.coarse:,} / {self.fine:,} looked at, {self.share:.0%} of the coarse list"
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
    cosine = rng.uniform(*COSINES, (count, 1))
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
    """Tune the limits of the plan with sampled queries, so that it reaches the target, and store them with the plan.

    It aims two thirds of the way from the target to 1, because a sample is small, and hard queries do worse than
    others. If nothing suffices, the widest limits are used; the recall stored with the depths says what they reach.
    """

    plan = scan.plan
    if plan is None:
        raise ValueError("there is no plan to tune")
    queries = sample_queries(scan, sample, seed=1)
    away = np.asarray(gone, np.int64)
    truths = [scan.search(query, ranked_videos(k), gone=away, exact=True) for query in queries]
    pairs = [pair for pair in zip(queries, truths, strict=True) if np.ptp(pair[1].scores) > MIN_DIFFERENCE]
    if 2 * len(pairs) < len(queries):  # the best are all the same: nothing can be told about other queries
        pairs = []
    needs = [needs_of(scan, plan, query, truth, away) for query, truth in pairs]
    aim = target + (1 - target) * 2 / 3
    best = Depths()
    for share in LOSS_SHARES:
        best = depths_for(needs, (1 - aim) * share)
        scan.plan = replace(plan, depths=best)
        found = [
            share_found(scan.search(query, k, gone=away), truth.first(k))
            for query, truth in zip(queries, truths, strict=True)
        ]
        reached = float(np.mean(found)) if found else 1.0
        best = replace(best, recall=reached)
        if reached >= aim:
            break
    scan.plan = set_depths(plan, best)
    return best


@dataclass(frozen=True, eq=False)
class QueryNeeds:
    """The limits that a query needs to find each of its best videos, one entry per video that the plan covers.

    All are in spreads of the query's products with all scene means.
    """

    coarse_margin: NDArray[np.float64]
    fine_margin: NDArray[np.float64]
    product: NDArray[np.float64]
    """How far the product of the video's group with the query is below the compared estimate."""
    spread: NDArray[np.float64]
    """Spread of that group, in the same unit."""


def needs_of(
    scan: Scan, plan: Plan, query: NDArray[np.float32], truth: BestVideos, gone: NDArray[np.int64]
) -> QueryNeeds:
    """The limits that a query needs to find the videos of an exact search, from one pass over the whole list.

    The exact search must have ranked as many videos as a planned one does.
    """

    covered = scan.coverage(plan)
    is_open = covered.open_numbers(open_videos(scan.segments, None, gone))
    ready = quantise_queries(query, plan.means.dim)
    mine, numbers = covered.numbers(truth)
    k = truth.ids.shape[1]
    near = list_near(plan.listed, plan.means.owner, is_open, ready.vectors[0], Reach(first_videos(k), plan.means.rows))
    owner = plan.means.owner[near.numbers]
    wanted = np.flatnonzero(np.isin(owner, numbers[mine]))
    wanted = wanted[np.lexsort((-near.estimates[wanted], owner[wanted]))]
    wanted = wanted[np.flatnonzero(np.diff(owner[wanted], prepend=-1))]  # the best mean of each video
    means = near.numbers[wanted]
    videos, bounds = plan.means.videos(means, ready)
    order = np.argsort(videos)
    group = plan.listed.group_of(means)
    least = truth.scores[0, -1] if k else 0.0
    needs = (
        near.compared - near.estimates[wanted],
        least - bounds[order],
        near.compared - plan.listed.groups[group] @ ready.vectors[0],
        plan.listed.spreads[group],
    )
    return QueryNeeds(*(np.asarray(need, np.float64) / max(near.spread, 1e-12) for need in needs))


def depths_for(needs: Sequence[QueryNeeds], loss: float) -> Depths:
    """The smallest margins with which each step misses at most this share of the videos."""
    coarse, fine, product, spread = (
        np.concatenate([getattr(need, name) for need in needs] or [np.zeros(0)])
        for name in ("coarse_margin", "fine_margin", "product", "spread")
    )
    if not len(coarse):
        return Depths()
    margin = max(0.0, float(np.quantile(coarse, 1 - loss, method="higher")))
    hope = np.where(spread > 0, (product - margin) / np.maximum(spread, 1e-9), 0)
    return Depths(
        MAX_COARSE, MAX_FINE, 1.0, None,
        max(0.0, float(np.quantile(hope, 1 - loss, method="higher"))), margin,
        max(0.0, float(np.quantile(fine, 1 - loss, method="higher"))),
    )  # fmt: skip


def recall_report(scan: Scan, target: float = TARGET_RECALL, *, k: int = 100, gone: Sequence[int] = ()) -> RecallReport:
    """Tune the plan, if there is one, to a target, and measure it on queries other than those of the tuning."""
    if scan.plan is not None:
        tune(scan, target, k=k, gone=gone)
    return measure_recall(scan, k=k, gone=gone)


def normalise(vectors: NDArray[Any]) -> NDArray[Any]:
    """Vectors scaled to length 1, row by row; zero stays zero."""
    lengths: NDArray[Any] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))


MIN_SEGMENT_SHARE = 0.05
"""A segment with this share of all rows is worth planning for; smaller ones are soon joined, and scanned meanwhile."""
MAX_UNPLANNED_SHARE = 0.2
"""Share of rows outside the plan above which it is built again."""


def refresh_plan(segments: Sequence[Segment], folder: Path, *, spans: bool = False) -> bool:
    """Build and tune the plan of a library if it is large enough and has no usable plan; returns whether it did.

    The caller holds the library's lock. Without the compiled kernels nothing is built, and searches stay exact.
    """
    rows = sum(segment.rows for segment in segments)
    if rows < MIN_PLANNED_ROWS or not has_kernels():
        return False

    plan = open_plan(folder, segments)
    if plan is not None:
        left = sum(segment.rows for segment in segments if segment.name not in plan.covers)
        if left <= MAX_UNPLANNED_SHARE * rows:
            return False
    planned = worth_planning(segments)
    tune(Scan(planned, build_plan(planned, folder, spans=spans)))
    return True


def worth_planning(segments: Sequence[Segment]) -> list[Segment]:
    """The segments that will stay for a while, because joining a covered segment with others invalidates the plan.

    All of them, if too many rows would be left without a plan.
    """
    total = sum(segment.rows for segment in segments)
    large = [segment for segment in segments if segment.rows >= min(MIN_SEGMENT_SHARE * total, MAX_JOINED_ROWS)]
    left = total - sum(segment.rows for segment in large)
    return large if left <= MAX_UNPLANNED_SHARE * total else list(segments)
