"""Simulated short films with one person and known moments, whose places follow habits that a test set breaks.

They serve the questions of the debiasing and the massive-video papers: a model that only learns where moments usually
lie does well on ``test_iid`` and badly on ``test_ood``; ``mvmr`` searches pools of videos for moments that other
queries describe too.
"""

from momentseek.simulation.grounding.settings import GroundingSettings
from momentseek.simulation.grounding.simulation import simulate_grounding

__all__ = ["GroundingSettings", "simulate_grounding"]
