"""TVR-Ranking's evaluator: one log line per cut-off and threshold."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.evaluation.evaluate import evaluate
from momentseek.evaluation.result import Missing
from momentseek.measures.ndcg import NDCG
from momentseek.moments import Judgements, Run


def render(runs: Sequence[Run], truth: Judgements, missing: Missing) -> str:
    """``VAL NDCG@10, IoU=0.3: 0.135657`` and so on (TEST where the truth is recognised as the test set)."""
    split = "TEST" if truth.variant and "test" in truth.variant else "VAL"
    result = evaluate(runs[0], truth, protocol="tvr-ranking", missing=missing)
    cells = [m for m in result.measures if isinstance(m, NDCG)]
    return "\n".join(f"{split} NDCG@{m.k}, IoU={m.iou}: {result.mean(m.name):.6f}" for m in cells)
