"""What a file no longer says, found by reading back what was written."""

from __future__ import annotations

import numpy as np

from momentseek.formats.registry import Runs
from momentseek.moments import CaptionTable, Judgements
from momentseek.moments.table import MomentTable

MAX_TIME_ROUNDING_SECONDS = 1e-6


def lost_in_truth(before: Judgements, after: Judgements) -> tuple[str, ...]:
    """What a truth has lost by conversion: in words, all of ``before`` that ``after`` lacks."""
    lost = _lost(before, after)
    if np.isfinite(before.durations).any() and not np.isfinite(after.durations).any():
        lost.append("durations")
    lost += [f"the field {name!r}" for name in before.fields if name not in after.fields]
    lost += [f"the column {name!r}" for name in before.columns if name not in after.columns]
    for name in ("agreement", "saliency", "pools"):
        if getattr(before, name) is not None and getattr(after, name) is None:
            lost.append(name)
    return tuple(lost)


def lost_in_runs(before: Runs, after: Runs) -> tuple[str, ...]:
    """What runs have lost by conversion: in words, all of ``before`` that ``after`` lacks."""
    lost: list[str] = []
    for old, new in zip(before, after, strict=True):
        lost += _lost(old, new)
        if _same_queries(old, new) and not np.allclose(
            old.score, new.score[_order(old, new)], atol=MAX_TIME_ROUNDING_SECONDS
        ):
            lost.append("scores")
        if old.saliency is not None and new.saliency is None:
            lost.append("saliency")
        if old.task != new.task:
            lost.append(f"that the task is {old.task}")
    return tuple(dict.fromkeys(lost))


def lost_in_captions(before: CaptionTable, after: CaptionTable) -> tuple[str, ...]:
    """What captions have lost by conversion: in words, all of ``before`` that ``after`` lacks."""
    if len(before.start) and not len(after.start):
        lost = ["videos and times"]
    else:
        lost = _lost(before, after)
        if np.isfinite(before.durations).any() and not np.isfinite(after.durations).any():
            lost.append("durations")
    lost += [f"the field {name!r}" for name in before.fields if name not in after.fields]
    lost += [f"the column {name!r}" for name in before.columns if name not in after.columns]
    return tuple(lost)


def _lost(before: MomentTable, after: MomentTable) -> list[str]:
    if set(before.query_ids) != set(after.query_ids):
        pairs = zip(before.query_ids, after.query_ids, strict=False)
        old, new = next((p for p in pairs if p[0] != p[1]), (len(before), len(after)))
        return [f"query ids ({old} became {new})"]
    if len(before.start) != len(after.start):
        return [f"moments ({len(before.start):,} became {len(after.start):,})"]
    order = _order(before, after)
    lost = []
    if any(before.queries or ()) and not any(after.queries or ()):
        lost.append("the queries' words")
    times = np.column_stack([before.start, before.end]), np.column_stack([after.start, after.end])[order]
    if not np.allclose(*times, rtol=0, atol=MAX_TIME_ROUNDING_SECONDS):
        lost.append("exact times")
    return lost


def _same_queries(before: MomentTable, after: MomentTable) -> bool:
    return set(before.query_ids) == set(after.query_ids) and len(before.start) == len(after.start)


def _order(before: MomentTable, after: MomentTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each row of ``before``, the row of ``after``; formats may regroup queries by video."""
    place = np.array([after.position[q] for q in before.query_ids], dtype=np.int64)
    within = np.arange(len(before.start)) - before.offsets[before.row_query]
    rows: np.ndarray[tuple[int], np.dtype[np.int64]] = after.offsets[place[before.row_query]] + within
    return rows
