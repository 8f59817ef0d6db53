"""The baselines that never see a video, as systems beside the models."""

from __future__ import annotations

from momentseek.baselines import BASELINES, BaselineSettings
from momentseek.evaluation.debias.scores import System
from momentseek.moments import Judgements

BLIND_BASELINES = ("bias-based", "moment-frequency", "predict-all", "chance")
RANDOM_BASELINES = ("bias-based", "chance")


def blind_systems(iid: Judgements, ood: Judgements, train: Judgements | None, seeds: int = 5) -> list[System]:
    """All of them, the random ones with several seeds; those that learn are left out where there is no training set.

    >>> at = dict(durations={"a": 10.0})
    >>> truth = Judgements.from_groups(["q"], [1], ["a"], [2], [5], **at)
    >>> [(s.name, len(s.runs)) for s in blind_systems(truth, truth, None, seeds=3)]
    [('predict-all', 1), ('chance', 3)]
    """
    found = []
    for name in BLIND_BASELINES:
        baseline = BASELINES[name]
        if baseline.learns and train is None:
            continue
        settings = [BaselineSettings(seed=seed, top=1) for seed in range(seeds if name in RANDOM_BASELINES else 1)]
        runs = tuple((baseline.predict(train, iid, s), baseline.predict(train, ood, s)) for s in settings)
        found.append(System(name, runs, blind=True))
    return found
