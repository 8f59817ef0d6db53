"""Predictors that learn nothing, or only where moments lie; each returns a Run."""

from momentseek.baselines.bias_based import bias_based, default_bandwidth
from momentseek.baselines.chance import chance
from momentseek.baselines.moment_frequency import moment_frequency
from momentseek.baselines.predict_all import predict_all
from momentseek.baselines.registry import BASELINES, Baseline, BaselineSettings, baseline_named

__all__ = [
    "BASELINES",
    "Baseline",
    "BaselineSettings",
    "baseline_named",
    "bias_based",
    "chance",
    "default_bandwidth",
    "moment_frequency",
    "predict_all",
]
