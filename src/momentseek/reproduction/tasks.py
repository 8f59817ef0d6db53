"""What a table asks to be trained: a task per row and seed, in a folder named after its settings and data.

The name of a task's folder has a fingerprint of all that decides its weights: settings, data, and the rows it goes on
from. So tables share what they have in common, what is finished is not trained again, and other settings never meet.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.features.data import Data
from momentseek.reproduction.paper_table import PaperTable, TableRow
from momentseek.training.config import TrainConfig
from momentseek.training.presets import configure, preset_table
from momentseek.training.setup import check_training, resolve_config, used_splits

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
    """One row with one seed: to be trained in ``folder``, or a checkpoint that is there already."""

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
            _given_task(row, seed, given[seed])
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


def _given_task(row: TableRow, seed: int, folder: Path) -> RowTask:
    return RowTask(row, seed, folder, "given")


def _fingerprint(config: TrainConfig, data: Data, needs: Mapping[str, RowTask]) -> str:
    sections = resolve_config(config).table()
    for name in WITHOUT_EFFECT:
        sections["training"].pop(name)
    for name in ("path", "begin", "first_stage", "lists"):
        sections["data"].pop(name)
    stages = {name: (task.fingerprint, str(task.folder) if task.config is None else "") for name, task in needs.items()}
    seen = json.dumps([sections, data.fingerprint_of(used_splits(config)), stages], sort_keys=True)
    return hashlib.sha256(seen.encode()).hexdigest()[:10]
