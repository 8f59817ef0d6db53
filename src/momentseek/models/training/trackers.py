"""Experiment trackers, which log a training run to tools such as TensorBoard or Weights & Biases.

A tracker implements the protocol :class:`TrainingTracker`, and its factory is registered under a name. The setting
``trackers`` of a training run lists the names to use, so sweeps can use them too:

    @TRACKERS.register("mine")
    def follow(run: TrackedRun) -> TrainingTracker:
        return MyTracker(run.name, run.config)

    momentseek train xml --data simulation --set 'trackers=["tensorboard", "mine"]'
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from momentseek.core.registry import Registry
from momentseek.models.training.folder import TrainingLog, TrainingOutcome


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker knows of a training run before its first step."""

    folder: Path
    config: Mapping[str, Mapping[str, Any]]
    """All settings by section: ``model`` (with its name), ``training`` and ``data``."""
    step: int = 0
    """The step that training continues from; 0 for a new run. A tracker should drop what it logged for later steps."""

    @property
    def name(self) -> str:
        """A name for the training run: its folder's, with the parent's in front for a folder of a seed.

        >>> TrackedRun(Path("runs/xml/seed-0"), {}).name, TrackedRun(Path("runs/xml"), {}).name
        ('xml/seed-0', 'xml')
        """
        inner = self.folder.name.startswith("seed-")
        return f"{self.folder.parent.name}/{self.folder.name}" if inner else self.folder.name


class TrainingTracker(Protocol):
    """Follows one training run, in the process that writes its files."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log figures of a step: ``loss``, ``loss/TERM``, ``lr``, ``epoch``, ``minutes``, or ``val/MEASURE``."""

    def finish(self, outcome: TrainingOutcome | None) -> None:
        """End the tracking, also after an early stop; ``outcome`` is None after an error."""


TrackerFactory = Callable[[TrackedRun], "TrainingTracker | None"]
"""Builds the tracker of a training run, or None if its tool is not installed."""
TRACKERS: Registry[TrackerFactory] = Registry("tracker", group="trackers")
"""Name → factory; plug-ins add theirs with ``TRACKERS.register`` (docs/plugins.md)."""


class Trackers:
    """Calls log.csv and all trackers of a training run in turn.

    A tracker that fails (because its server is gone, say) gives a warning and is not called again; training continues.
    """

    def __init__(self, run: TrackedRun, names: Sequence[str]) -> None:
        made = {name: TRACKERS[name](run) for name in names}
        self._table = TrainingLog(run.folder, run.step)
        self._others = {name: tracker for name, tracker in made.items() if tracker is not None}

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Pass the figures of a step to all trackers."""
        self._table.log(step, values)
        self._call_each(f"step {step:,}", lambda tracker: tracker.log(step, values))

    def finish(self, outcome: TrainingOutcome | None) -> None:
        """Pass the outcome of training to all trackers."""
        self._call_each("the end", lambda tracker: tracker.finish(outcome))

    def _call_each(self, when: str, call: Callable[[TrainingTracker], None]) -> None:
        for name, tracker in list(self._others.items()):
            try:
                call(tracker)
            except Exception as e:
                del self._others[name]
                warnings.warn(f"tracker {name} failed at {when} and is not called again: {e}", stacklevel=2)


class TensorBoardTracker:
    """Logs to an event file with TensorBoard's writer."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the figures of a step to the event file."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def finish(self, outcome: TrainingOutcome | None) -> None:
        """Close the event file."""
        self._writer.close()


@TRACKERS.register("tensorboard")
def follow_with_tensorboard(run: TrackedRun) -> TensorBoardTracker | None:
    """Log to an event file in the training run's folder; None if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return TensorBoardTracker(SummaryWriter(str(run.folder), purge_step=run.step or None))
