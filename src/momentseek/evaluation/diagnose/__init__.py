"""Question measures and data: axioms, ties, label noise, annotators, location bias."""

from momentseek.evaluation.diagnose.diagnosis import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
