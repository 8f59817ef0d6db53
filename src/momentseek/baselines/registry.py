"""The baselines by name, with one signature for the command line and for scripts that run them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from momentseek.baselines.bias_based import DEFAULT_SAMPLES, bias_based
from momentseek.baselines.chance import chance
from momentseek.baselines.moment_frequency import moment_frequency
from momentseek.baselines.places import DEFAULT_TOP
from momentseek.baselines.predict_all import predict_all
from momentseek.errors import MomentseekError
from momentseek.moments import Judgements, Run


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """What a baseline may be told; each takes what concerns it."""

    seed: int = 0
    samples: int = DEFAULT_SAMPLES
    bandwidth: float | None = None
    top: int = DEFAULT_TOP


@dataclass(frozen=True, slots=True)
class Baseline:
    """A name, a line about it, whether it looks at a training set, and the predictor."""

    name: str
    title: str
    learns: bool
    predictor: Callable[[Judgements, Judgements, BaselineSettings], Run]

    def predict(self, train: Judgements | None, test: Judgements, settings: BaselineSettings | None = None) -> Run:
        """Predictions for every query of ``test``; ``train`` may be left out where nothing is learnt."""
        if self.learns and train is None:
            raise MomentseekError(f"{self.name} learns where moments lie; give the training set (`train`)")
        return self.predictor(train if train is not None else test, test, settings or BaselineSettings())


BASELINES: dict[str, Baseline] = {
    b.name: b
    for b in (
        Baseline(
            "chance",
            "random stretches of the video",
            False,
            lambda _, test, s: chance(test, top=s.top, seed=s.seed),
        ),
        Baseline(
            "predict-all",
            "the whole video",
            False,
            lambda _, test, s: predict_all(test, top=s.top),
        ),
        Baseline(
            "moment-frequency",
            "the most frequent training locations",
            True,
            lambda train, test, s: moment_frequency(train, test, top=s.top),
        ),
        Baseline(
            "bias-based",
            "draws from the density of training locations, densest first",
            True,
            lambda train, test, s: bias_based(
                train, test, bandwidth=s.bandwidth, samples=s.samples, top=s.top, seed=s.seed
            ),
        ),
    )
}


def baseline_named(name: str) -> Baseline:
    """The baseline called ``name``.

    >>> baseline_named("predict-all").title
    'the whole video'
    """
    if name not in BASELINES:
        raise MomentseekError(f"no baseline is called {name!r}; there are {', '.join(BASELINES)}")
    return BASELINES[name]
