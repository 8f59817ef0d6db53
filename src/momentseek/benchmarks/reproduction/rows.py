"""What a table asks to be trained: a task per row and seed, in a folder named after its settings and data.

The name of a task's folder has a fingerprint of all that decides its weights: settings, data, and the rows it goes on
from. So tables share what they have in common, what is finished is not trained again, and other settings never meet.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from momentseek import __version__
from momentseek.benchmarks.baselines import BASELINES, BaselineSettings
from momentseek.benchmarks.reproduction.paper_table import PaperTable, TableColumn, TableRow
from momentseek.core.atomic import make_folder, write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.run import Run
from momentseek.core.registry import did_you_mean
from momentseek.core.reports import to_plain
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.measures import parse_all
from momentseek.measuring.result import labels_of
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import find_checkpoint
from momentseek.models.training.prediction import predict_split
from momentseek.models.training.presets import configure, preset_table
from momentseek.models.training.setup import check_training, resolve_config, used_splits

WITHOUT_EFFECT = ("device", "threads", "cache_mb", "prefetch", "save_minutes")
"""Settings that do not decide what is learnt."""


@dataclass(frozen=True)
class Budget:
    """How much is trained: seeds, steps (None: as the table or the preset says), and settings on top of all others."""

    seeds: int = 3
    steps: int | None = None
    settings: Sequence[str] = ()


@dataclass(frozen=True)
class RowTask:
    """One row with one seed: to be trained in ``folder``, or a checkpoint that exists already."""

    row: TableRow
    seed: int
    folder: Path
    fingerprint: str
    config: TrainConfig | None = None
    needs: Mapping[str, RowTask] = field(default_factory=dict)
    """The tasks this one goes on from, by the row's name."""

    @property
    def checkpoint(self) -> Path:
        """The folder of the training run that answers for this row."""
        return self.needs[self.row.of].checkpoint if self.row.of else self.folder


def row_tasks(
    table: PaperTable,
    rows: Sequence[TableRow],
    data: Data,
    out: Path,
    budget: Budget,
    finished: Mapping[str, Sequence[Path]],
) -> dict[str, list[RowTask]]:
    """The tasks of every row, seed by seed, all settings checked; baselines have none. Nothing is trained yet."""
    found: dict[str, list[RowTask]] = {}
    for row in rows:
        if row.baseline:
            continue
        given = finished.get(row.name)
        count = len(given) if given else min([budget.seeds, *(len(found[need]) for need in row.needs)])
        found[row.name] = [
            RowTask(row, seed, given[seed], "given")
            if given
            else _task(table, row, data, out, budget, seed, {need: found[need][seed] for need in row.needs})
            for seed in range(count)
        ]
    return found


def check_tasks(tasks: Mapping[str, Sequence[RowTask]], data: Data) -> None:
    """Refuse what could not be trained, before anything is: names of settings, features, lengths, splits."""
    for row in tasks.values():
        first = row[0]
        if first.config is not None:
            try:
                check_training(first.config, data, stages=not first.needs)
            except MomentseekError as e:
                raise MomentseekError(f"row {first.row.name}: {e}") from None


def training_config(table: PaperTable, row: TableRow, data: Data, budget: Budget) -> TrainConfig:
    """The settings of a row on real or simulated data, before seeds and the rows it goes on from."""
    simulation = table.simulation
    name = simulation.get("preset", "simulation") if data.simulated else (row.preset or table.preset)
    settings: dict[str, Any] = {**table.settings, **row.settings}
    if data.simulated:
        groups = simulation.get("settings", {})
        for group in ("all", *row.use):
            settings |= groups.get(group, {})
        settings |= row.simulated
    steps = budget.steps or (simulation.get("steps") if data.simulated else None)
    if steps is not None and "training.steps" not in settings:
        settings["training.steps"] = steps = max(1, round(steps * row.share))
        settings["training.validate_every"] = max(1, steps // int(simulation.get("validations", 10)))
    settings |= {"data.test": None, "training.report": []}
    sections = preset_table(name) if name else {}
    config = configure(sections, row.model, settings, f"table {table.name}, row {row.name}")
    config = config.with_changes(budget.settings) if budget.settings else config
    return replace(config, data=replace(config.data, path=data.location))


def _task(
    table: PaperTable, row: TableRow, data: Data, out: Path, budget: Budget, number: int, needs: Mapping[str, RowTask]
) -> RowTask:
    if row.of:
        source = needs[row.of]
        return RowTask(row, source.seed, source.folder, source.fingerprint, needs=needs)
    config = training_config(table, row, data, budget)
    seed = config.training.seed + number
    stages = {"begin": row.begin, "first_stage": row.first_stage}
    paths = {key: str(needs[name].checkpoint) for key, name in stages.items() if name}
    config = replace(config, training=replace(config.training, seed=seed), data=replace(config.data, **paths))
    print_ = _fingerprint(config, data, needs)
    return RowTask(row, seed, out / "runs" / f"{row.model}-{seed}-{print_}", print_, config, needs)


def _fingerprint(config: TrainConfig, data: Data, needs: Mapping[str, RowTask]) -> str:
    sections = resolve_config(config).table()
    for name in WITHOUT_EFFECT:
        sections["training"].pop(name)
    for name in ("path", "begin", "first_stage", "lists"):
        sections["data"].pop(name)
    stages = {name: (task.fingerprint, str(task.folder) if task.config is None else "") for name, task in needs.items()}
    seen = json.dumps([sections, data.fingerprint_of(used_splits(config)), stages], sort_keys=True)
    return hashlib.sha256(seen.encode()).hexdigest()[:10]


def task_scores(table: PaperTable, task: RowTask, data: Data, out: Path) -> list[FloatArray]:
    """The values of every column's queries, for a trained row with one seed."""
    row = task.row
    videos = find_checkpoint(task.needs[row.videos].checkpoint) if row.videos else None
    checkpoint = find_checkpoint(task.checkpoint)
    files = [_digest(checkpoint), _digest(videos) if videos else "", row.first]

    def predict(split: str, depth: int) -> Run:
        return predict_split(checkpoint, data, split, task=table.task, top=depth, videos=videos, first=row.first).run

    return _column_values(table, data, out, predict, files)


def baseline_scores(table: PaperTable, row: TableRow, seed: int, train: str, data: Data, out: Path) -> list[FloatArray]:
    """The same of a blind baseline with one seed."""
    name = row.baseline or ""
    if name not in BASELINES:
        raise MomentseekError(f"row {row.name}: there is no baseline {name!r}; {did_you_mean(name, BASELINES)}")

    def predict(split: str, depth: int) -> Run:
        settings = BaselineSettings(seed=seed, top=depth)
        return BASELINES[name].predict(data.split(train).timed_truth, data.split(split).timed_truth, settings)

    return _column_values(table, data, out, predict, [name, seed, train, data.fingerprint_of([train])])


def _column_values(table: PaperTable, data: Data, out: Path, predict: Any, files: Sequence[Any]) -> list[FloatArray]:
    values: dict[str, dict[str, list[float | None]]] = {}
    for split in dict.fromkeys(column.split for column in table.columns):
        names = list(dict.fromkeys(c.measure for c in table.columns if c.split == split))
        asked = [table.task, table.protocol, split, names, data.fingerprint_of([split]), __version__, *files]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
        file = out / "scores" / f"{digest}.json"
        known = _read(file)
        if known is None:
            # Ten predictions at least, so that suppression has something to choose from.
            run = predict(split, max([10, *(measure.max_rank or 0 for measure in parse_all(names))]))
            truth = data.split(split).timed_truth
            columns = evaluate(run, truth, names, protocol=table.protocol, missing="zero").values.T
            known = dict(zip(names, to_plain(columns), strict=True))
            make_folder(file.parent)
            write_bytes(file, (json.dumps({"asked": asked, "values": known}) + "\n").encode())
        values[split] = known
    return [_of_group(column, values[column.split][column.measure], data) for column in table.columns]


def _of_group(column: TableColumn, values: Sequence[float | None], data: Data) -> FloatArray:
    """The values of the queries that a column is about; those that do not count are NaN."""
    found = np.array([math.nan if value is None else value for value in values])
    for name, label in column.group.items():
        found = np.where(labels_of(data.split(column.split).truth, name) == label, found, math.nan)
    return found


def _read(file: Path) -> dict[str, list[float | None]] | None:
    try:
        values: dict[str, list[float | None]] = json.loads(file.read_text(encoding="utf-8"))["values"]
    except (OSError, ValueError, KeyError, TypeError):  # computing again does no harm
        return None
    return values


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
