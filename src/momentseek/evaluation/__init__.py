"""Evaluate, compare and question: per-query values, significance, reports, diagnoses."""

from momentseek.evaluation.compare import compare, largest_differences
from momentseek.evaluation.comparison import Comparison
from momentseek.evaluation.evaluate import Evaluation, evaluate

__all__ = ["Comparison", "Evaluation", "compare", "evaluate", "largest_differences"]
