"""Evaluate, compare and question: per-query values, significance, reports, diagnoses."""

from momentseek.evaluation.evaluate import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
