"""One small corpus that all tests of the simulation read, and the matcher they measure it with."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from momentseek.benchmarks.simulation.corpus import SimulationReport, simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings

_spec = importlib.util.spec_from_file_location("linear_matcher", Path(__file__).parent / "linear_matcher.py")
assert _spec is not None
assert _spec.loader is not None
if "linear_matcher" not in sys.modules:  # tests have no packages, so a helper is loaded by its place
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["linear_matcher"] = _module
    _spec.loader.exec_module(_module)

SMALL = SimulationSettings(videos=50, queries=100, seed=3)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SimulationReport]:
    folder = tmp_path_factory.mktemp("simulated") / "small"
    return folder, simulate(folder, SMALL)
