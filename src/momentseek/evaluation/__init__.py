"""Evaluate, compare and question: per-query values, significance, reports, diagnoses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from momentseek.evaluation.evaluate import Evaluation, evaluate

if TYPE_CHECKING:
    from momentseek.evaluation.compare import compare, largest_differences
    from momentseek.evaluation.comparison import Comparison

__all__ = ["Comparison", "Evaluation", "compare", "evaluate", "largest_differences"]


def __getattr__(name: str) -> Any:
    # Comparing needs random numbers, which take longer to import than an evaluation takes to compute.
    if name == "Comparison":
        from momentseek.evaluation.comparison import Comparison

        return Comparison
    if name in ("compare", "largest_differences"):
        from importlib import import_module

        return getattr(import_module("momentseek.evaluation.compare"), name)
    raise AttributeError(f"module 'momentseek.evaluation' has no attribute {name!r}")
