"""The folder of a training run (its files, settings and log), and the progress and outcome of training."""

from __future__ import annotations

import csv
import io
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from momentseek.core.atomic import write_bytes
from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError, parameter
from momentseek.models.training.config import TrainConfig, refuse_missing_plugin

CONFIG_FILE = "config.toml"
LAST_CHECKPOINT = "last.safetensors"
BEST_CHECKPOINT = "best.safetensors"
REPORT_FILE = "report.json"
LOG_FILE = "log.csv"
MIN_FREE_BYTES = 100e6
"""Minimum number of free bytes on the disk when training starts."""


def find_checkpoint(path: Path) -> Path:
    """Find the checkpoint at a path: the file itself, or the best (else the last) of a training run's folder."""
    if path.is_dir():
        for name in (BEST_CHECKPOINT, LAST_CHECKPOINT):
            if (path / name).is_file():
                return path / name
        raise MomentseekError(f"{path}: holds no checkpoint ({BEST_CHECKPOINT}); is it the folder of a training run?")
    if not path.is_file():
        raise MomentseekError(
            f"{path}: there is no such checkpoint; give a .safetensors file or the folder of a training run"
        )
    return path


def is_checkpoint(path: Path) -> bool:
    """Whether a path names a checkpoint (a training run's folder, or a .safetensors file) rather than a run's file."""
    return path.is_dir() or path.suffix == ".safetensors"


def saved_config(folder: Path) -> TrainConfig:
    """Read the settings of a training run from its folder."""
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise MomentseekError(f"{folder}: holds no training run ({CONFIG_FILE}); check the folder")
    sections = read_toml(file)
    model, about = (section if isinstance(section := sections.get(name), dict) else {} for name in ("model", "about"))
    refuse_missing_plugin(model.get("name"), about.get("plugin"), str(file))
    return TrainConfig.of(sections, str(file))


def prepare_folder(folder: Path, config: TrainConfig, resume: bool, force: bool) -> None:
    """Make the folder of a training run and write its config.toml; ``force`` deletes an earlier training run there."""
    names = (CONFIG_FILE, LAST_CHECKPOINT, BEST_CHECKPOINT, REPORT_FILE, LOG_FILE)
    earlier = [*(folder / name for name in names), *folder.glob("events.out.tfevents.*")]
    if not resume and any(path.exists() for path in earlier):
        if not force:
            raise MomentseekError(
                f"{folder}: already holds a training run; continue it ({parameter('resume')}), choose another "
                f"folder, or overwrite it ({parameter('force', True)})"
            )
        for path in earlier:
            path.unlink(missing_ok=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as e:
        raise MomentseekError(f"{folder}: cannot be created ({e.strerror}); choose another folder") from None
    if free < MIN_FREE_BYTES:
        raise MomentseekError(f"{folder}: the disk has only {free / 1e6:.0f} MB left; free some, or choose another")
    (folder / REPORT_FILE).unlink(missing_ok=True)
    write_bytes(folder / CONFIG_FILE, config.text().encode())


class TrainingLog:
    """Writes log.csv, with a row of figures for each logged step.

    When training continues from a step, the rows after it are dropped.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        self.path = folder / LOG_FILE
        self._rows: list[dict[str, str]] = []
        if step and self.path.is_file():
            with self.path.open(newline="", encoding="utf-8") as f:
                self._rows = [
                    r for r in csv.DictReader(f) if (r.get("step") or "").isdigit() and int(r["step"]) <= step
                ]
        if self._rows:
            self._write()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add the row of a step; columns for which it has no value stay empty."""
        self._rows.append({"step": str(step)} | {name: f"{value:.6g}" for name, value in values.items()})
        self._write()

    def _write(self) -> None:
        columns = list(dict.fromkeys(["step", *(name for row in self._rows for name in row)]))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        write_bytes(self.path, text.getvalue().encode())


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of training: its step, its loss, and its latest validation."""

    step: int
    steps: int
    """Number of steps planned."""
    epoch: float
    terms: Mapping[str, float]
    """The terms of the loss, averaged over the latest steps."""
    value: float | None
    """The measure at the latest validation."""
    best: float | None
    """The measure at the best validation."""
    pairs_per_second: float
    seconds_left: float
    doing: str = "training"
    """``training``, ``validating``, ``validated``, or ``scoring`` (hard negatives, before the first step)."""
    share: float = math.nan
    """The finished share of the scoring, from 0 to 1."""
    measure: str = ""
    """Name of the measure by which the best checkpoint is chosen."""

    @property
    def loss(self) -> float:
        """The loss: the sum of its terms."""
        return sum(self.terms.values())


TrainingCallback = Callable[[TrainingProgress], None]
"""Called after every step, and before and after every validation."""


@dataclass(frozen=True)
class TrainingOutcome:
    """The result of training: why it stopped, its best validation, and its report."""

    folder: Path
    """The folder of the training run."""
    step: int
    """Number of steps taken."""
    steps: int
    """Number of steps planned."""
    best: float | None
    """The measure at the best validation."""
    best_step: int | None
    stopped: str
    """``done``, ``patience``, ``time`` or ``interrupted``."""
    seconds: float
    report: Mapping[str, Any] = field(default_factory=dict)
    """The content of report.json; empty after an interruption, and in processes other than the first."""

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best:.4f} at step {self.best_step:,}"
        return f"<TrainingOutcome in {self.folder}: {self.stopped} after {self.step:,} of {self.steps:,} steps{best}>"
