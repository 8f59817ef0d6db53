"""The upkeep of a library's plan: it is built, and tuned, when there is none that serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from momentseek.library.scan.choice import MIN_PLANNED_ROWS, has_kernels
from momentseek.library.segments import MAX_JOINED_ROWS, Segment

MIN_SEGMENT_SHARE = 0.05
"""A segment with this share of all rows is worth planning for; smaller ones are soon joined, and scanned meanwhile."""
MAX_UNPLANNED_SHARE = 0.2
"""Share of rows outside the plan above which it is built anew."""


def refresh_plan(segments: Sequence[Segment], folder: Path) -> bool:
    """Build and tune the plan of a library that is large enough to need one and has none that serves; true if it was.

    The caller holds the library's lock. Without the compiled kernels nothing is built, and searches stay exact.
    """
    rows = sum(segment.rows for segment in segments)
    if rows < MIN_PLANNED_ROWS or not has_kernels():
        return False
    from momentseek.library.scan.plan import build_plan, open_plan
    from momentseek.library.scan.recall import tune
    from momentseek.library.scan.scan import Scan

    plan = open_plan(folder, segments)
    if plan is not None:
        left = sum(segment.rows for segment in segments if segment.name not in plan.covers)
        if left <= MAX_UNPLANNED_SHARE * rows:
            return False
    planned = worth_planning(segments)
    tune(Scan(planned, build_plan(planned, folder)))
    return True


def worth_planning(segments: Sequence[Segment]) -> list[Segment]:
    """The segments that will stay for a while: a plan that names one is void when that is joined with others.

    All of them, if those would leave more without a plan than it may.
    """
    total = sum(segment.rows for segment in segments)
    large = [segment for segment in segments if segment.rows >= min(MIN_SEGMENT_SHARE * total, MAX_JOINED_ROWS)]
    left = total - sum(segment.rows for segment in large)
    return large if left <= MAX_UNPLANNED_SHARE * total else list(segments)
