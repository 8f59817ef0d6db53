"""Trackers of training runs: ``wandb`` and ``mlflow`` where these are installed, ``json-lines`` everywhere.

    momentseek train xml --data simulation --set 'trackers=["json-lines", "wandb"]'

Weights & Biases and MLflow take their server, project and user from the environment, as they always do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.models.training.folder import TrainingOutcome
from momentseek.models.training.trackers import TRACKERS, TrackedRun


class JsonLines:
    """One JSON object per step in ``track.jsonl`` of the training run's folder."""

    def __init__(self, run: TrackedRun) -> None:
        self.path = run.folder / "track.jsonl"
        lines = self.path.read_text().splitlines() if run.step and self.path.is_file() else []
        kept = [line for line in lines if json.loads(line)["step"] <= run.step]
        self.path.write_text("".join(f"{line}\n" for line in kept))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append a line."""
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")

    def finish(self, outcome: TrainingOutcome | None) -> None:
        """Nothing is open."""


class WeightsAndBiases:
    """A run of Weights & Biases; one that is continued goes on under its name."""

    def __init__(self, run: TrackedRun) -> None:
        self.run: Any = _package("wandb").init(name=run.name, config=dict(run.config), resume="allow")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Send the figures of a step."""
        self.run.log(dict(values), step=step)

    def finish(self, outcome: TrainingOutcome | None) -> None:
        """Send the scores, and say whether training failed."""
        if outcome is not None:
            self.run.summary.update(_scores(outcome))
        self.run.finish(exit_code=1 if outcome is None else 0)


class MlFlow:
    """A run of MLflow."""

    def __init__(self, run: TrackedRun) -> None:
        self.mlflow = _package("mlflow")
        self.mlflow.start_run(run_name=run.name)
        flat = {f"{section}.{name}": value for section, values in run.config.items() for name, value in values.items()}
        self.mlflow.log_params(flat)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Send the figures of a step, without the characters that MLflow refuses."""
        self.mlflow.log_metrics({_plain(name): value for name, value in values.items()}, step=step)

    def finish(self, outcome: TrainingOutcome | None) -> None:
        """Send the scores, and say whether training failed."""
        if outcome is not None:
            self.mlflow.log_metrics({_plain(name): value for name, value in _scores(outcome).items()})
        self.mlflow.end_run("FAILED" if outcome is None else "FINISHED")


def _scores(outcome: TrainingOutcome) -> dict[str, float]:
    scores = outcome.report.get("scores", {})
    return {f"{split}/{name}": value for split, values in scores.items() for name, value in values.items()}


def _plain(name: str) -> str:
    """A name in MLflow's alphabet.

    >>> _plain("val/R@1[IoU>=0.5]")
    'val/R_1 IoU ge 0.5'
    """
    return name.replace(">=", " ge ").replace(">", " gt ").replace("@", "_").replace("[", " ").replace("]", "")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MomentseekError(f"the tracker {name} needs the package {name}; pip install {name}") from None


TRACKERS.add("json-lines", JsonLines)
TRACKERS.add("wandb", WeightsAndBiases)
TRACKERS.add("mlflow", MlFlow)
