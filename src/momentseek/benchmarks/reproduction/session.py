"""Reproduce a table: prepare data and tasks, train, measure, and build the table."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from momentseek.benchmarks.debias.training import checkpoints
from momentseek.benchmarks.reproduction.paper_table import PaperTable, TableRow, read_table
from momentseek.benchmarks.reproduction.result import (
    ResultRow,
    TableCell,
    TableResult,
    caption_cell,
    row_letters,
    table_cell,
    tie_cell,
)
from momentseek.benchmarks.reproduction.rows import (
    Budget,
    RowScores,
    RowTask,
    baseline_scores,
    check_tasks,
    column_truth,
    paper_differences,
    row_tasks,
    task_scores,
)
from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cluster.tasks import ClusterTask
from momentseek.cluster.training import in_data, train_run
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.registry import did_you_mean
from momentseek.measuring.measures import PROTOCOLS, parse_all
from momentseek.measuring.measures.captions.measure import CaptionMeasure
from momentseek.measuring.replicates import video_clusters
from momentseek.models.features.data import DATA_FILE, Data
from momentseek.models.training.folder import TrainingCallback, TrainingProgress
from momentseek.models.training.prediction import read_report
from momentseek.models.training.processes import thread_count
from momentseek.models.training.session import train_or_read

TRAINED_BY = ("preset", "steps", "validations", "settings")
"""Keys of a table's section ``simulation`` that are about training rather than about the data."""


def data_folder(
    table: PaperTable, asked: str | os.PathLike[str] | None, out: Path, announce: Callable[[str], None]
) -> Path:
    """Return the data folder: the given one or the table's; if it does not exist, simulate data there or in ``out``."""
    given = Path(asked or table.data) if asked or table.data else None
    wanted = {key: value for key, value in table.simulation.items() if key not in TRAINED_BY}
    like = wanted.pop("like", "tvr")
    folder = given or out / "data" / "-".join([like, *(f"{key}{value}" for key, value in sorted(wanted.items()))])
    if (folder / DATA_FILE).is_file() or folder.suffix == ".toml":
        return folder
    if folder.is_dir() and any(folder.iterdir()):
        raise MomentseekError(
            f"{folder}: has no {DATA_FILE}; describe its features there, or name a new folder for a simulation"
        )
    if not table.simulation:
        missing = f"{folder}: has no {DATA_FILE}" if given else "no data are named"
        raise MomentseekError(
            f"{missing}, and {table.file or table.name} has no [simulation] to make instead; give data "
            f"({parameter('data')})"
        )
    announce(f"{folder}: simulating {wanted.get('videos', 2000):,} videos")
    if like == "tvr":
        simulate(folder, SimulationSettings(**wanted))
    else:
        simulate_grounding(folder, GroundingSettings(like=like, **wanted))
    return folder


def row_cluster_tasks(
    table: PaperTable, tasks: Mapping[str, Sequence[RowTask]], shown: Sequence[TableRow], data: Data, out: Path
) -> list[ClusterTask]:
    """Return a cluster task per row and seed; a row that continues from others waits for theirs."""
    found: list[ClusterTask] = []
    places: dict[tuple[str, int], int] = {}
    last: dict[Path, int] = {}
    """The last task so far in each folder: rows with the same settings share one, and must not run at the same time."""
    measured = {row.name for row in shown}
    for name, row in tasks.items():
        for number, task in enumerate(row):
            after = {places[need, number] for need in task.row.needs}
            after |= {last[task.folder]} if task.folder in last else set()
            places[name, number] = last[task.folder] = len(found)
            threads, asked = thread_count(task.config), table if name in measured else None
            label, given = f"{task.row.label}, seed {task.seed}", (threads, data.location, finish_row, asked, task, out)
            found.append(ClusterTask(label, in_data, given, after=tuple(sorted(after)), processors=threads))
    return found


def finish_row(data: Data, table: PaperTable | None, task: RowTask, out: Path) -> None:
    """Train a row with one seed and measure it for a table, unless that is done already."""
    if task.config is not None:
        train_run(data, task.config, task.folder)
    if table is not None:
        task_scores(table, task, data, out)


BASELINE_SEEDS = 5
"""Number of seeds of a random blind baseline; the others are deterministic."""

Announce = Callable[[str], None]
Spread = Callable[[Sequence[ClusterTask]], bool]
"""Runs tasks on a cluster; returns False if they were stopped."""


def reproduce_table(
    table: str | PaperTable,
    *,
    data: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = "reproduction",
    rows: Sequence[str] = (),
    seeds: int | None = None,
    steps: int | None = None,
    settings: Sequence[str] = (),
    protocol: str | None = None,
    finished: Mapping[str, Sequence[str | os.PathLike[str]]] | None = None,
    progress: TrainingCallback | None = None,
    announce: Announce = lambda _: None,
    spread: Spread | None = None,
) -> TableResult | None:
    """Train every row of a table over seeds, measure it, and return our figures next to the paper's.

    ``table`` is a name, or the path of a table's file. ``data`` is a folder with a data.toml (default: the table's). If
    it does not exist, the table's simulation is written there. Training runs and scores are stored in ``out`` and not
    repeated. ``rows`` selects rows; ``seeds``, ``steps`` and ``settings`` change how they are trained; ``protocol``
    names another evaluator than the paper's. ``finished`` has training runs to use for a row instead, one per seed.
    ``spread`` runs tasks on a cluster and returns whether all were finished. Returns None if training was stopped; the
    same call then continues.
    """
    plan = _plan(table, protocol)
    chosen = plan.choose_rows(rows)
    given = _given_checkpoints(plan, finished or {})
    seeds = plan.seeds if seeds is None else seeds
    if seeds < 1:
        raise MomentseekError(f"{seeds} seeds are too few; ask for at least 1 ({parameter('seeds')})")
    folder = data_folder(plan, data, Path(out), announce)
    with Data.open(folder) as opened:
        if plan.file and not plan.preset:
            plan = replace(plan, preset=opened.preset or "")
        budget = Budget(seeds, steps, tuple(settings))
        for column in plan.columns:
            column_truth(plan, opened, column.split)  # raises an error for missing splits
        tasks = row_tasks(plan, chosen, opened, Path(out), budget, given)
        check_tasks(tasks, opened)
        shown = [row for row in chosen if not row.hidden or row.name in rows]
        if spread is not None and not spread(row_cluster_tasks(plan, tasks, shown, opened, Path(out))):
            return None
        if not _train(tasks, opened, progress, announce):
            return None
        return _result(plan, shown, tasks, opened, Path(out), announce)


ESTIMATED_STEPS = 8
"""Number of steps that an estimate trains every row for; the first two are not counted."""


@dataclass(frozen=True)
class RowEstimate:
    """The estimated training time of a row."""

    label: str
    seeds: int
    steps: int
    minutes: float
    """Processor time for all seeds in minutes, including validations."""


def estimate_table(
    table: str | PaperTable,
    *,
    data: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = "reproduction",
    rows: Sequence[str] = (),
    seeds: int | None = None,
    steps: int | None = None,
    settings: Sequence[str] = (),
    announce: Announce = lambda _: None,
) -> list[RowEstimate]:
    """Estimate the processor time of every row not trained yet, from a few steps and one validation of each."""
    plan = _plan(table)
    folder = data_folder(plan, data, Path(out), announce)
    seeds = plan.seeds if seeds is None else seeds
    found = []
    with Data.open(folder) as opened, TemporaryDirectory() as scratch:
        chosen = plan.choose_rows(rows)
        whole = row_tasks(plan, chosen, opened, Path(out), Budget(seeds, steps, tuple(settings)), {})
        short = [*settings, f"steps={ESTIMATED_STEPS}", f"validate_every={ESTIMATED_STEPS}"]
        tried = row_tasks(plan, chosen, opened, Path(scratch), Budget(1, None, tuple(short)), {})
        check_tasks(tried, opened)
        trials: dict[Path, tuple[dict[Any, float], list[TrainingProgress]]] = {}
        for name, (task, *_) in tried.items():
            if task.config is None:
                continue
            announce(f"trying {task.row.label} for {ESTIMATED_STEPS} steps")
            # rows that differ only in their number of steps share one trial
            times, last = trials.setdefault(task.folder, ({}, []))

            def note(progress: TrainingProgress, times: dict[Any, float] = times, last: Any = last) -> None:
                times[progress.step if progress.doing == "training" else progress.doing] = time.process_time()
                last[:] = [progress]

            report, _ = train_or_read(task.config, opened, task.folder, progress=note)
            if not report:
                raise MomentseekError(f"stopped while {task.row.label} was tried; estimate again")
            wanted = whole[name][0].config
            assert wanted is not None
            per_epoch = last[0].step / last[0].epoch
            count = wanted.training.steps or max(1, math.ceil(wanted.training.epochs * per_epoch))
            every = wanted.training.validate_every or max(1, round(per_epoch / wanted.training.validations))
            step = (times[ESTIMATED_STEPS] - times[2]) / (ESTIMATED_STEPS - 2)
            validation = times["validated"] - times["validating"]
            todo = [t for t in whole[name] if t.config is not None and read_report(t.folder) is None]
            seconds = len(todo) * (step * count + validation * (count // every + 1))
            found.append(RowEstimate(task.row.label, len(todo), count, seconds / 60))
    return found


def _plan(table: str | PaperTable, protocol: str | None = None) -> PaperTable:
    plan = read_table(table) if isinstance(table, str) else table
    if protocol is not None and protocol not in PROTOCOLS:
        raise MomentseekError(f"there is no protocol {protocol!r}; {did_you_mean(protocol, PROTOCOLS)}")
    return replace(plan, protocol=protocol) if protocol else plan


def finished_runs(runs: Sequence[str]) -> dict[str, list[str]]:
    """Parse texts such as ``ctrl=runs/ctrl`` into training runs by row, one per seed.

    >>> finished_runs(["ctrl=a", "ctrl=b"])
    {'ctrl': ['a', 'b']}
    """
    found: dict[str, list[str]] = {}
    for text in runs:
        row, sign, path = text.partition("=")
        if not sign or not path:
            raise MomentseekError(f"{text!r} names no training run; write ROW=FOLDER")
        found.setdefault(row.strip(), []).append(path)
    return found


def _given_checkpoints(
    plan: PaperTable, finished: Mapping[str, Sequence[str | os.PathLike[str]]]
) -> dict[str, list[Path]]:
    plan.choose_rows(list(finished))  # raises an error for unknown rows
    for name in finished:
        if of := plan.rows[name].of:
            raise MomentseekError(f"row {name}: is {of} searched in another way; give the run for {of}")
        if plan.rows[name].baseline:
            raise MomentseekError(f"row {name}: is a blind baseline and has no training run; leave it out")
    return {name: [c for path in paths for c in checkpoints(Path(path))] for name, paths in finished.items()}


def _train(
    tasks: Mapping[str, Sequence[RowTask]], data: Data, progress: TrainingCallback | None, announce: Announce
) -> bool:
    """Train the rows that are not trained yet, first stages first; False if training was stopped."""
    todo = [task for row in tasks.values() for task in row if task.config is not None]
    for number, task in enumerate(todo, start=1):
        assert task.config is not None
        announce(f"{number} of {len(todo)}: {task.row.label}, seed {task.seed} ({task.folder.name})")
        report, _ = train_or_read(task.config, data, task.folder, progress=progress)
        if not report:
            return False
    return True


def _result(
    plan: PaperTable,
    shown: Sequence[TableRow],
    tasks: Mapping[str, Sequence[RowTask]],
    data: Data,
    out: Path,
    announce: Announce,
) -> TableResult:
    scores: dict[str, list[RowScores]] = {}
    configs = [task.config for row in tasks.values() for task in row if task.config]
    train = configs[0].data.train if configs else plan.settings.get("train", "train")
    for row in shown:
        announce(f"measuring {row.label}")
        if row.baseline:
            count = BASELINE_SEEDS if row.baseline in ("bias-based", "chance") or plan.task == "VCMR" else 1
            scores[row.name] = [baseline_scores(plan, row, seed, train, data, out) for seed in range(count)]
        else:
            scores[row.name] = [task_scores(plan, task, data, out) for task in tasks[row.name]]
    note, differs = data.name, paper_differences(plan, tasks)
    values = {name: [one.columns for one in seeds] for name, seeds in scores.items()}
    clusters = [video_clusters(column_truth(plan, data, column.split)) for column in plan.columns]
    if plan.kind == "ties":
        return TableResult(plan, ("all tied",), tuple(_tie_rows(plan, values, clusters)), note, data.simulated, differs)
    is_mean = [all(one.parts[i] is None for seeds in scores.values() for one in seeds) for i in range(len(clusters))]
    rows = [_row(plan, row, scores[row.name], tasks.get(row.name, ()), clusters) for row in shown]
    for i, groups in enumerate(clusters):
        if not is_mean[i]:
            continue
        letters = row_letters([[seed[i] for seed in values[row.name]] for row in shown], groups)
        for at, own in enumerate(letters if len(shown) > 1 else []):
            cells = list(rows[at].cells)
            cells[i] = replace(cells[i], letters=own)
            rows[at] = replace(rows[at], cells=tuple(cells))
    labels = tuple(column.label for column in plan.columns)
    return TableResult(plan, labels, tuple(rows), note, data.simulated, differs)


def _row(
    plan: PaperTable,
    row: TableRow,
    scores: Sequence[RowScores],
    tasks: Sequence[RowTask],
    clusters: Sequence[IntArray | None],
) -> ResultRow:
    paper = row.paper or [None] * len(plan.columns)
    cells = tuple(_cell(plan, scores, i, paper[i], clusters[i]) for i in range(len(plan.columns)))
    reports = [read_report(saved.parent if (saved := task.checkpoint).is_file() else saved) or {} for task in tasks]
    best = tuple(int(r["best_step"]) for r in reports if r.get("best_step") is not None)
    steps = max((int(r.get("steps", 0)) for r in reports), default=0)
    searched = [one.seconds for one in scores if one.seconds is not None and not row.baseline]
    seconds = sum(searched) / len(searched) if searched else None
    return ResultRow(row.name, row.label, cells, best, steps, seconds, row.seconds)


def _cell(
    plan: PaperTable, scores: Sequence[RowScores], i: int, paper: float | None, clusters: IntArray | None
) -> TableCell:
    parts = [some for seed in scores if (some := seed.parts[i]) is not None]
    if not parts:
        return table_cell([seed.columns[i] for seed in scores], paper, plan.percent, clusters)
    (measure,) = parse_all([plan.columns[i].measure], PROTOCOLS[plan.protocol].options)
    assert isinstance(measure, CaptionMeasure)
    return caption_cell(parts, measure, paper, plan.percent, clusters)


def _tie_rows(
    plan: PaperTable, values: Mapping[str, Sequence[Sequence[FloatArray]]], clusters: Sequence[IntArray | None]
) -> list[ResultRow]:
    if len(values) < 2:
        raise MomentseekError(f"{plan.name} counts ties between systems; choose at least two rows")
    cells = [
        tie_cell([[seed[i] for seed in each] for each in values.values()], plan.percent, groups)
        for i, groups in enumerate(clusters)
    ]
    return [ResultRow(c.measure, c.label, (cell,)) for c, cell in zip(plan.columns, cells, strict=True)]
