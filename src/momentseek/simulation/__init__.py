"""Seeded corpora with known ground truth: TVR-like statistics, the community's files, any size.

Everything here is a simulation. It tests learning, ranking and measuring where the real features cannot be had; its
numbers say nothing about real videos.
"""

from momentseek.simulation.report import SimulationReport
from momentseek.simulation.settings import Difficulty, SimulationSettings
from momentseek.simulation.simulation import simulate

__all__ = ["Difficulty", "SimulationReport", "SimulationSettings", "simulate"]
