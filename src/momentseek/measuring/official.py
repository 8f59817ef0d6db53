"""Reproduce the output of the official evaluators byte for byte: same keys, same order, same rounding."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import TASKS, Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures import PROTOCOLS
from momentseek.measuring.measures.mean_average_precision import THRESHOLDS
from momentseek.measuring.measures.ndcg import NDCG
from momentseek.measuring.result import Missing

QV_RANGES = ("full", "long", "middle", "short")
QV_LEVELS = {"Fair": "fair", "Good": "good", "VeryGood": "verygood"}
TVR_CUTOFFS = (1, 5, 10, 100)
TVR_THRESHOLDS = (0.5, 0.7)
TVR_TYPES = ("v", "t", "vt")
TVC_KEYS = {
    "BLEU@1": "Bleu_1",
    "BLEU@2": "Bleu_2",
    "BLEU@3": "Bleu_3",
    "BLEU@4": "Bleu_4",
    "METEOR": "METEOR",
    "ROUGE-L": "ROUGE_L",
    "CIDEr-D": "CIDEr",
}
"""Measure → its name in the output of TVC's evaluator, in that evaluator's order."""


def render(
    protocol: str,
    runs: Sequence[Run] | CaptionTable,
    truth: Judgements | CaptionTable,
    missing: Missing = "error",
) -> str:
    """Return the official output for runs or captions, without a final newline, like the official files."""
    if protocol not in PRINTERS:
        raise MomentseekError(
            f"protocol {protocol} has no official printed form; there are {', '.join(PRINTERS)}; or leave "
            f"out {parameter('official')}"
        )
    if PROTOCOLS[protocol].captions != isinstance(runs, CaptionTable):
        table, holds = (runs, "captions") if isinstance(runs, CaptionTable) else (runs[0], "ranked moments")
        raise MomentseekError(
            f"{table.source}: holds {holds}, which the evaluator of {protocol} does not measure; name another "
            f"({parameter('protocol')})"
        )
    return PRINTERS[protocol](runs, truth, missing)


def _render_tvr(runs: Sequence[Run], truth: Judgements, missing: Missing) -> str:
    """Return the metrics file: tasks in order, then tasks by query type (left out if the truth has no types)."""
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
    cells = (
        [(None, k) for k in TVR_CUTOFFS] if run.task == "VR" else [(t, k) for t in TVR_THRESHOLDS for k in TVR_CUTOFFS]
    )
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
        f"{t}-{key}": percentage(values[types == t]) for t in TVR_TYPES for key, values in hits.items()
    }
    shares = [f"{t} {percentage((types[counted] == t).astype(np.float64))}" for t in TVR_TYPES]
    table["desc_type_ratio"] = " ".join(shares)
    return table


def percentage(hits: FloatArray) -> float:
    """Return the mean × 100, rounded as NumPy does (1.115 → 1.12; Python gives 1.11); NaN for no queries.

    >>> percentage(np.array([1.0, 0.0, 0.0]))
    33.33
    """
    counted = hits[~np.isnan(hits)]
    return float(np.round(np.mean(counted) * 100, 2)) if len(counted) else float("nan")


def _render_tvr_ranking(runs: Sequence[Run], truth: Judgements, missing: Missing) -> str:
    """Return lines like ``VAL NDCG@10, IoU=0.3: 0.135657`` (TEST if the truth is recognised as the test set)."""
    split = "TEST" if truth.variant and "test" in truth.variant else "VAL"
    result = evaluate(runs[0], truth, protocol="tvr-ranking", missing=missing)
    cells = [m for m in result.measures if isinstance(m, NDCG)]
    return "\n".join(f"{split} NDCG@{m.k}, IoU={m.iou}: {result.mean(m.name):.6f}" for m in cells)


def _render_qvhighlights(runs: Sequence[Run], truth: Judgements, missing: Missing) -> str:
    """Return the metrics file, with the parts the submission has: windows, saliency or both."""
    run = runs[0]
    has_windows, has_saliency = len(run.video) > 0, run.saliency is not None and truth.saliency is not None
    if not has_windows and not has_saliency:
        raise MomentseekError(f"{run.source}: has neither windows nor saliency scores to evaluate")
    brief: dict[str, float] = {}
    parts: dict[str, Any] = {}
    if has_windows:
        parts.update(_moments(run, truth, missing))
        brief.update(_moments_brief(parts))
    if has_saliency:
        highlights = _highlights(run, truth, missing)
        parts.update(highlights)
        brief.update({f"{k}-{name.removeprefix('HL-')}": v for k, row in highlights.items() for name, v in row.items()})
    return json.dumps({"brief": brief, **dict(sorted(parts.items()))}, indent=4)


def _moments(run: Run, truth: Judgements, missing: Missing) -> dict[str, Any]:
    names = [
        f"{measure}[IoU>={t},length={length}]" for measure in ("mAP", "R@1") for t in THRESHOLDS for length in QV_RANGES
    ]
    result = evaluate(run, truth, names, protocol="qvhighlights", missing=missing)
    table: dict[str, Any] = {}
    for length in QV_RANGES:
        precision = [result.mean(f"mAP[IoU>={t},length={length}]") for t in THRESHOLDS]
        table[length] = {
            "MR-mAP": {str(t): _percent(p) for t, p in zip(THRESHOLDS, precision, strict=True)}
            | {"average": _percent(float(np.mean(precision)))},
            "MR-R1": {str(t): _percent(result.mean(f"R@1[IoU>={t},length={length}]")) for t in THRESHOLDS},
        }
    return table


def _moments_brief(parts: dict[str, Any]) -> dict[str, float]:
    brief = {
        "MR-full-mAP": parts["full"]["MR-mAP"]["average"],
        **{f"MR-full-mAP@{t}": parts["full"]["MR-mAP"][t] for t in ("0.5", "0.75")},
        **{f"MR-{length}-mAP": parts[length]["MR-mAP"]["average"] for length in ("short", "middle", "long")},
        **{f"MR-full-R1@{t}": parts["full"]["MR-R1"][t] for t in ("0.5", "0.7")},
    }
    return dict(sorted(brief.items()))


def _highlights(run: Run, truth: Judgements, missing: Missing) -> dict[str, dict[str, float]]:
    names = [f"{measure}[level={level}]" for measure in ("SaliencyAP", "HIT@1") for level in QV_LEVELS.values()]
    result = evaluate(run, truth, names, protocol="qvhighlights", missing=missing)
    return {
        f"HL-min-{title}": {
            "HL-mAP": _percent(result.mean(f"SaliencyAP[level={level}]")),
            "HL-Hit1": _percent(result.mean(f"HIT@1[level={level}]")),
        }
        for title, level in QV_LEVELS.items()
    }


def _percent(value: float) -> float:
    return float(f"{100 * value:.2f}")


def _render_tvc(run: CaptionTable, truth: CaptionTable, missing: Missing) -> str:
    """Return the metrics file; it includes METEOR, which needs Java."""
    result = evaluate(run, truth, TVC_KEYS, protocol="tvc", missing=missing)
    return json.dumps({key: result.mean(name) * 100 for name, key in TVC_KEYS.items()}, indent=4)


PRINTERS: dict[str, Callable[[Any, Any, Missing], str]] = {
    "tvr": _render_tvr,
    "qvhighlights": _render_qvhighlights,
    "tvr-ranking": _render_tvr_ranking,
    "tvc": _render_tvc,
}
"""Protocol → the function that prints like its official evaluator."""
