"""TVR's evaluator: recall per task, overall and by query type, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import TASKS, Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.result import Missing

CUTOFFS = (1, 5, 10, 100)
THRESHOLDS = (0.5, 0.7)
TYPES = ("v", "t", "vt")


def render(runs: Sequence[Run], truth: Judgements, missing: Missing) -> str:
    """The metrics file: tasks in order, then tasks by type (left out where the truth has no types)."""
    submitted = sorted((r for r in runs if r.task in TASKS), key=lambda r: TASKS.index(r.task))
    types = np.array(truth.fields["type"]) if "type" in truth.fields else None
    overall: dict[str, dict[str, float]] = {}
    by_type: dict[str, dict[str, float | str]] = {}
    for run in submitted:
        hits = _hits(run, truth, missing)
        overall[run.task] = {key: percentage(values) for key, values in hits.items()}
        if types is not None:
            counted = ~np.isnan(next(iter(hits.values())))
            by_type[f"{run.task}_by_type"] = _by_type(hits, types, counted)
    return json.dumps({**overall, **by_type}, indent=4)


def _hits(run: Run, truth: Judgements, missing: Missing) -> dict[str, FloatArray]:
    cells = [(None, k) for k in CUTOFFS] if run.task == "VR" else [(t, k) for t in THRESHOLDS for k in CUTOFFS]
    names = {
        f"r{k}" if t is None else f"{t}-r{k}": f"R@{k}[task=VR]" if t is None else f"R@{k}[IoU>={t},task={run.task}]"
        for t, k in cells
    }
    result = evaluate(run, truth, names.values(), protocol="tvr", missing=missing)
    return dict(zip(names, result.values.T, strict=True))


def _by_type(
    hits: dict[str, FloatArray], types: np.ndarray[tuple[int], np.dtype[np.str_]], counted: BoolArray
) -> dict[str, float | str]:
    table: dict[str, float | str] = {
        f"{t}-{key}": percentage(values[types == t]) for t in TYPES for key, values in hits.items()
    }
    shares = [f"{t} {percentage((types[counted] == t).astype(np.float64))}" for t in TYPES]
    table["desc_type_ratio"] = " ".join(shares)
    return table


def percentage(hits: FloatArray) -> float:
    """Mean × 100, rounded as numpy rounds (1.115 → 1.12, where Python's own gives 1.11); NaN for no queries.

    >>> percentage(np.array([1.0, 0.0, 0.0]))
    33.33
    """
    counted = hits[~np.isnan(hits)]
    return float(np.round(np.mean(counted) * 100, 2)) if len(counted) else float("nan")
