"""Sweeps: train models on several splits, with several seeds and varied settings, and write one table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from momentseek.core.atomic import write_all
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import csv_text, markdown_table
from momentseek.measuring.measures import expand
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig, summed_measures
from momentseek.models.training.folder import TrainingCallback
from momentseek.models.training.presets import configure, settings_table
from momentseek.models.training.session import score_spreads, seeded_runs, train_seeds


@dataclass(frozen=True)
class SweepCell:
    """One row of a sweep's table: settings that are trained with several seeds."""

    labels: Mapping[str, str]
    """What distinguishes this row: model, training split and varied settings, by name."""
    config: TrainConfig
    folder: Path


Rows = list[tuple[SweepCell, Sequence[Mapping[str, Any]]]]
"""Trained rows, each with the reports of its seeds."""


def sweep_cells(
    preset: dict[str, Any],
    models: Sequence[str],
    splits: Sequence[str],
    varied: Sequence[str],
    assignments: Iterable[str],
    out: Path,
    where: str = "config",
) -> list[SweepCell]:
    """List and check every combination of models, splits and varied settings (``key=value,value,...``).

    In settings, ``{model}`` and ``{train}`` stand for the cell's model and training split.
    """
    axes = [_parse_axis(text) for text in varied]
    found = []
    fixed = list(assignments)
    for model, split, *values in itertools.product(models, splits or [""], *(axis[1] for axis in axes)):
        chosen = [f"{key}={value}" for (key, _), value in zip(axes, values, strict=True)]
        settings = [*fixed, *([f"data.train={split}"] if split else []), *chosen]
        settings = [s.replace("{model}", model) for s in settings]
        train = configure(preset, model, [s for s in settings if "{train}" not in s], where).data.train
        config = configure(preset, model, [s.replace("{train}", train) for s in settings], where)
        labels = {"model": model, "train": config.data.train, **{k: v for (k, _), v in zip(axes, values, strict=True)}}
        folder = out.joinpath(model, config.data.train, *(_folder_name(text) for text in chosen))
        found.append(SweepCell(labels, config, folder))
    if len({cell.folder for cell in found}) != len(found):
        raise MomentseekError("the sweep has one combination twice; leave out the repeated model, split or value")
    return found


@dataclass(frozen=True, eq=False)
class Sweep:
    """A planned sweep: its rows, the number of seeds of each, and the measures of its printed table."""

    cells: Sequence[SweepCell]
    data: Data
    out: Path
    seeds: int
    measures: Sequence[str]

    @property
    def note(self) -> str:
        """The note about the data in the tables."""
        return f"{self.data.name}: a simulation, not real videos." if self.data.simulated else self.data.name

    def runs(self) -> list[tuple[str, TrainConfig, Path]]:
        """Name, settings and folder of every training run."""
        return [
            (f"{', '.join(cell.labels.values())}, seed {config.training.seed}", config, folder)
            for cell in self.cells
            for config, folder in seeded_runs(cell.config, cell.folder, self.seeds)
        ]

    def train(self, progress: TrainingCallback | None = None, announce: Callable[[str], None] | None = None) -> Rows:
        """Train the rows that are not finished, write the tables after each, and return the finished rows.

        If training was stopped, the last row has fewer seeds than planned.
        """
        done: Rows = []
        self.out.mkdir(parents=True, exist_ok=True)
        for number, cell in enumerate(self.cells, start=1):
            if announce is not None:
                label = ", ".join(f"{k} {v}" for k, v in cell.labels.items())
                announce(f"{number} of {len(self.cells)}: {label}")
            done.append((cell, train_seeds(cell.config, self.data, cell.folder, self.seeds, progress=progress).reports))
            write_tables(self.out, done, self.measures, self.note)
            if len(done[-1][1]) < self.seeds:
                break
        return done


def plan_sweep(
    data: Data,
    models: Sequence[str],
    *,
    splits: Sequence[str] = (),
    varied: Sequence[str] = (),
    seeds: int = 1,
    preset: str | None = None,
    config: str | None = None,
    settings: Iterable[str] = (),
    out: Path,
    measures: Iterable[str] = (),
) -> Sweep:
    """Plan a sweep with the settings of a preset or file; ``measures`` defaults to training's ``measure``."""
    sections, where = settings_table(preset, config, default=data.preset)
    cells = [
        replace(cell, config=replace(cell.config, data=replace(cell.config.data, path=data.location)))
        for cell in sweep_cells(sections, models, splits, varied, settings, out, where)
    ]
    explicit = [m for each in measures for m in expand(each)]
    chosen_by = [m for cell in cells for m in summed_measures(cell.config.training.measure)]
    return Sweep(cells, data, out, seeds, list(dict.fromkeys(explicit or chosen_by)))


def table_rows(done: Rows) -> list[dict[str, str | float | None]]:
    """One row per cell: labels, number of seeds, minutes per training run, and mean and sd of measures by split."""
    table = []
    for cell, reports in done:
        row: dict[str, str | float | None] = {**cell.labels, "seeds": len(reports)}
        if reports:
            row["minutes"] = round(sum(r["seconds"] for r in reports) / len(reports) / 60, 2)
        for split, scores in score_spreads(reports).items():
            for name, value in scores.items():
                row[f"{split} {name}"] = value.mean
                row[f"{split} {name} sd"] = value.sd if value.count > 1 else None
        table.append(row)
    return table


def markdown_text(done: Rows, measures: Sequence[str], note: str = "") -> str:
    """The table as Markdown, with mean ± sd of ``measures``."""
    labels = list(done[0][0].labels)
    found = [score_spreads(reports) for _, reports in done]
    splits = list(dict.fromkeys(split for each in found for split in each))
    header = [*labels, "seeds", *(f"{split} {m}" for split in splits for m in measures), "minutes per run"]
    lines = []
    for (cell, reports), scores in zip(done, found, strict=True):
        values = [scores.get(split, {}).get(m) for split in splits for m in measures]
        shown = ["" if value is None else str(value) for value in values]
        minutes = f"{sum(r['seconds'] for r in reports) / len(reports) / 60:.1f}" if reports else ""
        lines.append([*cell.labels.values(), str(len(reports)), *shown, minutes])
    table = markdown_table(header, lines, align="l" * len(labels) + "r")
    return f"{note}\n\n{table}\n" if note else f"{table}\n"


def write_tables(out: Path, done: Rows, measures: Sequence[str], note: str) -> None:
    """Write table.csv, table.json and table.md, all three or none."""
    table = table_rows(done)
    write_all(
        {
            out / "table.csv": csv_text(table).encode(),
            out / "table.json": (
                json.dumps({"note": note, "rows": table}, indent=2, ensure_ascii=False) + "\n"
            ).encode(),
            out / "table.md": markdown_text(done, measures, note).encode(),
        }
    )


def _parse_axis(text: str) -> tuple[str, list[str]]:
    key, sign, values = text.partition("=")
    found = [v.strip() for v in values.split(",") if v.strip()]
    if not sign or not found:
        raise MomentseekError(f"{text!r} varies nothing; write key=value,value, such as kernel=1,5")
    return key.strip(), found


def _folder_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "=+-._" else "-" for c in text)
