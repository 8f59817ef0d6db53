"""Trackers follow a training run by one callback protocol, TensorBoard as one of them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingOutcome
from momentseek.models.training.loop import train
from momentseek.models.training.session import resume_training
from momentseek.models.training.trackers import TRACKERS, TrackedRun, Trackers, follow_with_tensorboard


class Notebook:
    """A tracker that writes down what it is called with."""

    def __init__(self, run: TrackedRun) -> None:
        self.run = run
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.ended: list[TrainingOutcome | None] = []

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.rows.append((step, dict(values)))

    def finish(self, outcome: TrainingOutcome | None) -> None:
        self.ended.append(outcome)


@pytest.fixture
def notebooks() -> Iterator[list[Notebook]]:
    made: list[Notebook] = []

    def follow(run: TrackedRun) -> Notebook:
        made.append(Notebook(run))
        return made[-1]

    TRACKERS.add("notebook", follow)
    yield made
    del TRACKERS["notebook"]


def tracked(config: TrainConfig, **training: Any) -> TrainConfig:
    return replace(config, training=replace(config.training, trackers=("notebook",), **training))


def test_a_tracker_sees_losses_validations_and_the_report(
    config: TrainConfig, corpus: Data, tmp_path: Path, notebooks: list[Notebook]
) -> None:
    train(tracked(config), corpus, tmp_path / "run")
    (seen,) = notebooks
    assert (seen.run.name, seen.run.step, seen.run.config["model"]["name"]) == ("run", 0, "xml")
    losses = [(step, set(values) >= {"loss", "lr", "epoch", "minutes"}) for step, values in seen.rows if "lr" in values]
    assert losses == [(3, True), (6, True)]
    measure = f"val/{config.training.measure}"
    assert [step for step, values in seen.rows if measure in values] == [3, 6]
    (outcome,) = seen.ended
    assert outcome is not None
    assert (outcome.stopped, bool(outcome.report["scores"])) == ("done", True)
    assert not list((tmp_path / "run").glob("events.out*"))  # TensorBoard was not named


def test_training_that_continues_says_from_where(
    config: TrainConfig, corpus: Data, tmp_path: Path, notebooks: list[Notebook]
) -> None:
    train(tracked(config, steps=3), corpus, tmp_path / "run")
    resume_training(tmp_path / "run", data=corpus, settings={"steps": 6})
    assert [seen.run.step for seen in notebooks] == [0, 3]
    assert min(step for step, _ in notebooks[1].rows) > 3


def test_an_error_ends_training_for_the_tracker_too(
    config: TrainConfig, corpus: Data, tmp_path: Path, notebooks: list[Notebook]
) -> None:
    def fail(_: Any) -> None:
        raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        train(tracked(config), corpus, tmp_path / "run", progress=fail)
    assert notebooks[0].ended == [None]


def test_a_tracker_that_fails_is_left_out_and_training_goes_on(
    config: TrainConfig, corpus: Data, tmp_path: Path, notebooks: list[Notebook], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(self: Notebook, step: int, values: Mapping[str, float]) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(Notebook, "log", lose)
    with pytest.warns(UserWarning, match="tracker notebook failed at step 3 .* no route to host"):
        outcome = train(tracked(config), corpus, tmp_path / "run")
    assert outcome.stopped == "done"
    assert notebooks[0].ended == []


def test_an_unknown_tracker_is_refused_before_training(config: TrainConfig, corpus: Data, tmp_path: Path) -> None:
    wrong = replace(config, training=replace(config.training, trackers=("tensorbord",)))
    with pytest.raises(MomentseekError, match="there is no tracker 'tensorbord'; did you mean 'tensorboard'"):
        train(wrong, corpus, tmp_path / "run")


def test_tensorboard_reads_our_events(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    first = Trackers(TrackedRun(tmp_path, {}), ["tensorboard"])
    for step in (1, 2, 300_000):
        first.log(step, {"loss/span": step / 2, "lr": 1e-4})
    first.finish(None)
    second = Trackers(TrackedRun(tmp_path, {}, 2), ["tensorboard"])
    second.log(3, {"loss/span": -7.25})
    second.finish(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = accumulator.EventAccumulator(str(tmp_path))
        found.Reload()
    assert found.Tags()["scalars"] == ["loss/span", "lr"]
    # what was logged from step 2 on is forgotten, as training went on from there
    assert [(e.step, e.value) for e in found.Scalars("loss/span")] == [(1, 0.5), (3, -7.25)]
    assert found.Scalars("lr")[0].value == pytest.approx(1e-4)


def test_without_tensorboard_there_is_a_table_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert follow_with_tensorboard(TrackedRun(tmp_path, {})) is None
    log = Trackers(TrackedRun(tmp_path, {}), ["tensorboard"])
    log.log(1, {"loss": 2.5})
    log.finish(None)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
