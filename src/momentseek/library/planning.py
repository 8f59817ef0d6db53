"""Keeping the scan's plan in step with the segments of a large library."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.library.merge import LARGE
from momentseek.library.paths import LibraryPaths
from momentseek.library.segments import Segment
from momentseek.library.snapshot import Snapshot

SHARE = 0.05
"""A segment with this share of all rows is worth planning for; smaller ones are soon joined, and scanned meanwhile."""
UNPLANNED = 0.2
"""Share of rows outside the plan from which it is built anew."""


def worth_planning(segments: Sequence[Segment]) -> list[Segment]:
    """The segments that will stay for a while: a plan that names one is void when that is joined with others."""
    total = sum(segment.rows for segment in segments)
    return [segment for segment in segments if segment.rows >= min(SHARE * total, LARGE)]


def refresh_plan(state: Snapshot, place: LibraryPaths) -> bool:
    """Build the plan if the library is large enough to need one and has none that serves; true if it was built.

    For the lock's holder. Without the extra ``large`` searches stay exact.
    """
    from momentseek.library.scan import build_plan, open_plan
    from momentseek.library.scan.choice import available
    from momentseek.library.scan.scan import PLAN_FROM

    rows = sum(segment.rows for segment in state.vision)
    if rows < PLAN_FROM or not (available("numba") and available("faiss")):
        return False
    plan = open_plan(place.plan, state.vision)
    if plan is not None:
        left = sum(segment.rows for segment in state.vision if segment.name not in plan.covers)
        if left <= UNPLANNED * rows:
            return False
    build_plan(worth_planning(state.vision), place.plan)
    return True
