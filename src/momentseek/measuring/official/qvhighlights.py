"""QVHighlights' evaluator: moment retrieval by length range, highlights by level, and a brief, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures.mean_average_precision import THRESHOLDS
from momentseek.measuring.result import Evaluation, Missing

RANGES = ("full", "long", "middle", "short")
LEVELS = {"Fair": "fair", "Good": "good", "VeryGood": "verygood"}


def render(runs: Sequence[Run], truth: Judgements, missing: Missing) -> str:
    """The metrics file, with the parts the submission has: windows, saliency or both."""
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
        f"{measure}[IoU>={t},length={length}]" for measure in ("mAP", "R@1") for t in THRESHOLDS for length in RANGES
    ]
    result = evaluate(run, truth, names, protocol="qvhighlights", missing=missing)
    table: dict[str, Any] = {}
    for length in RANGES:
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
    names = [f"{measure}[level={level}]" for measure in ("SaliencyAP", "HIT@1") for level in LEVELS.values()]
    result: Evaluation = evaluate(run, truth, names, protocol="qvhighlights", missing=missing)
    return {
        f"HL-min-{title}": {
            "HL-mAP": _percent(result.mean(f"SaliencyAP[level={level}]")),
            "HL-Hit1": _percent(result.mean(f"HIT@1[level={level}]")),
        }
        for title, level in LEVELS.items()
    }


def _percent(value: float) -> float:
    return float(f"{100 * value:.2f}")
