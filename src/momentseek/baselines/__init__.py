"""Predictors that learn nothing, or only where moments lie: one file each, and each returns a Run."""

from momentseek.baselines.registry import BASELINES, Baseline, BaselineSettings

BASELINES.load()

__all__ = ["BASELINES", "Baseline", "BaselineSettings"]
