"""Training runs as tasks of a cluster; each leaves its folder as training here would, so whoever asks next reads it."""

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
    """A training run that is to be in a folder."""

    name: str
    config: TrainConfig
    folder: Path


def training_tasks(runs: Sequence[WantedRun], data: Data) -> list[ClusterTask]:
    """A task per training run; one whose earlier stage is another's folder goes on from that."""
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
    """Call a function with the data of a folder, computing with as many threads as whoever asked."""
    use_threads(threads)
    with Data.open(data) as opened:
        return work(opened, *arguments)


def train_run(data: Data, config: TrainConfig, folder: Path) -> None:
    """Train what is not trained yet."""
    report, _ = train_or_read(config, data, folder)
    if not report:
        raise MomentseekError("it was stopped and saved; the same command continues")


def _stages(run: WantedRun, earlier: Sequence[WantedRun]) -> tuple[int, ...]:
    """Places of the training runs whose checkpoints a run begins from or is measured with."""
    data = run.config.data
    named = [Path(path).absolute() for path in (data.begin, data.first_stage, data.lists) if path]
    folders = [each.folder.absolute() for each in earlier]
    return tuple(
        place for place, folder in enumerate(folders) if any(folder == path or folder in path.parents for path in named)
    )
