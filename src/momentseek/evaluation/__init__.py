"""Evaluate, compare and question: per-query values, significance, reports, diagnoses."""

from momentseek.evaluation.compare import compare, largest_differences
from momentseek.evaluation.comparison import Comparison
from momentseek.evaluation.evaluate import evaluate
from momentseek.evaluation.result import Evaluation

__all__ = ["Comparison", "Evaluation", "compare", "evaluate", "largest_differences"]
