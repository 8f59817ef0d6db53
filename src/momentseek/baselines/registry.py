"""What a baseline is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from momentseek.errors import MomentseekError
from momentseek.moments import Judgements, Run
from momentseek.registry import Registry

DEFAULT_TOP = 10
"""Predictions per query, unless another number is asked for."""
DEFAULT_SAMPLES = 100
"""Draws per query of a baseline that draws."""


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """The settings of all baselines; each uses those that concern it."""

    seed: int = 0
    samples: int = DEFAULT_SAMPLES
    bandwidth: float | None = None
    top: int = DEFAULT_TOP


@dataclass(frozen=True, slots=True)
class Baseline:
    """A predictor that never looks at a video: its name, a line about it, and whether it needs a training set."""

    name: str
    title: str
    learns: bool
    predictor: Callable[[Judgements, Judgements, BaselineSettings], Run]

    def predict(self, train: Judgements | None, test: Judgements, settings: BaselineSettings | None = None) -> Run:
        """Predictions for every query of ``test``; ``train`` may be left out where nothing is learnt."""
        if self.learns and train is None:
            raise MomentseekError(f"{self.name} learns where moments lie; give the training set (`train`)")
        return self.predictor(train if train is not None else test, test, settings or BaselineSettings())


BASELINES: Registry[Baseline] = Registry("baseline", package="momentseek.baselines")
"""Name → baseline; every file of this folder that defines one adds it with ``register``."""


def register(baseline: Baseline) -> Baseline:
    """Make a baseline known by its name, which no other may have."""
    BASELINES.add(baseline.name, baseline)
    return baseline
