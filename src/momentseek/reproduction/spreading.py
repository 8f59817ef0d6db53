"""The rows of a table as tasks of a cluster: each is trained and measured there, and read here afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from momentseek.cluster.tasks import ClusterTask
from momentseek.cluster.training import in_data, train_run
from momentseek.features.data import Data
from momentseek.reproduction.paper_table import PaperTable, TableRow
from momentseek.reproduction.scores import task_scores
from momentseek.reproduction.tasks import RowTask
from momentseek.training.threads import thread_count


def row_cluster_tasks(
    table: PaperTable, tasks: Mapping[str, Sequence[RowTask]], shown: Sequence[TableRow], data: Data, out: Path
) -> list[ClusterTask]:
    """A task per row and seed; one that goes on from other rows waits for theirs."""
    found: list[ClusterTask] = []
    places: dict[tuple[str, int], int] = {}
    last: dict[Path, int] = {}
    """The last task so far that works in a folder: rows with the same settings share one, and must not meet in it."""
    measured = {row.name for row in shown}
    for name, row in tasks.items():
        for number, task in enumerate(row):
            after = {places[need, number] for need in task.row.needs}
            after |= {last[task.folder]} if task.folder in last else set()
            places[name, number] = last[task.folder] = len(found)
            threads, asked = thread_count(task.config), table if name in measured else None
            found.append(
                ClusterTask(
                    f"{task.row.label}, seed {task.seed}",
                    in_data,
                    (threads, data.location, finish_row, asked, task, out),
                    after=tuple(sorted(after)),
                    processors=threads,
                )
            )
    return found


def finish_row(data: Data, table: PaperTable | None, task: RowTask, out: Path) -> None:
    """Train a row with one seed and measure it for a table, as far as that is not done yet."""
    if task.config is not None:
        train_run(data, task.config, task.folder)
    if table is not None:
        task_scores(table, task, data, out)
