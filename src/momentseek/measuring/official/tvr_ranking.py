"""TVR-Ranking's evaluator: one log line per cut-off and threshold."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures.ndcg import NDCG
from momentseek.measuring.result import Missing


def render(runs: Sequence[Run], truth: Judgements, missing: Missing) -> str:
    """``VAL NDCG@10, IoU=0.3: 0.135657`` and so on (TEST where the truth is recognised as the test set)."""
    split = "TEST" if truth.variant and "test" in truth.variant else "VAL"
    result = evaluate(runs[0], truth, protocol="tvr-ranking", missing=missing)
    cells = [m for m in result.measures if isinstance(m, NDCG)]
    return "\n".join(f"{split} NDCG@{m.k}, IoU={m.iou}: {result.mean(m.name):.6f}" for m in cells)
