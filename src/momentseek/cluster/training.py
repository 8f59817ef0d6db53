"""Training runs as tasks of a cluster; each writes the same folder as a local training run would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.cluster.tasks import ClusterTask
from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.processes import thread_count, use_threads
from momentseek.models.training.session import train_or_read


@dataclass(frozen=True)
class WantedRun:
    """A training run, and the folder for it."""

    name: str
    config: TrainConfig
    folder: Path


def training_tasks(runs: Sequence[WantedRun], data: Data) -> list[ClusterTask]:
    """A task per training run; a run that starts from the folder of another run depends on it."""
    return [
        ClusterTask(
            run.name,
            in_data,
            (thread_count(run.config), data.location, train_run, run.config, run.folder),
            after=_stages(run, runs[:place]),
            processors=thread_count(run.config),
        )
        for place, run in enumerate(runs)
    ]


def in_data(threads: int, data: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with the data of a folder, using a given number of threads."""
    use_threads(threads)
    with Data.open(data) as opened:
        return work(opened, *arguments)


def train_run(data: Data, config: TrainConfig, folder: Path) -> None:
    """Train a run, unless it is trained already."""
    report, _ = train_or_read(config, data, folder)
    if not report:
        raise MomentseekError("it was stopped and saved; the same command continues")


def _stages(run: WantedRun, earlier: Sequence[WantedRun]) -> tuple[int, ...]:
    """Positions of the training runs whose checkpoints a run starts from or is evaluated with."""
    data = run.config.data
    named = [Path(path).absolute() for path in (data.begin, data.first_stage, data.lists) if path]
    folders = [each.folder.absolute() for each in earlier]
    return tuple(
        place for place, folder in enumerate(folders) if any(folder == path or folder in path.parents for path in named)
    )
