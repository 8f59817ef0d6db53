"""``momentseek sweep``: train many models and compare them in one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from momentseek.cli import options
from momentseek.cli.clustering import run_on
from momentseek.cli.progress import TrainingLine
from momentseek.core.errors import optional_module
from momentseek.measuring.measures import expand
from momentseek.models.features.data import Data

if TYPE_CHECKING:
    from momentseek.models.training.config import TrainConfig
    from momentseek.models.training.sweep import SweepCell


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--data", "folder", required=True, metavar="DIR", help="The data folder: one with a data.toml.")
@click.option("--train", "splits", multiple=True, metavar="SPLIT", help="A training split; may be given several times.")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Number of seeds of each, from 0 on."
)
@click.option(
    "--vary",
    "varied",
    multiple=True,
    metavar="KEY=A,B",
    help="A setting and its values; several settings are combined in all ways.",
)
@click.option("--preset", metavar="NAME", help="A paper's settings. Default: the preset that the data name.")
@click.option("--config", "file", metavar="FILE", help="Settings from a TOML file instead of a preset.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of all models.")
@click.option("--out", "-o", "target", required=True, metavar="DIR", help="The folder of the sweep.")
@click.option(
    "--measure", "-m", "measures", multiple=True, help="Columns of the printed table. Default: training.measure."
)
@options.on_cluster
@options.as_json
@options.quiet
def command(
    models: tuple[str, ...],
    folder: str,
    splits: tuple[str, ...],
    seeds: int,
    varied: tuple[str, ...],
    preset: str | None,
    file: str | None,
    settings: tuple[str, ...],
    target: str,
    measures: tuple[str, ...],
    on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train every combination of MODELs, training splits, varied settings and seeds; print mean ± sd of each.

    \b
    Table 5 of TVR-Ranking, on simulated data:
      momentseek sweep xml reloclnet --data simulation --train train_top01 --train train_top40 --seeds 3 --out sweep
    Table 4 of TVR, what each modality contributes:
      momentseek sweep xml --data simulation --vary modalities=video,subtitle,video+subtitle --out sweep
    On all machines of a cluster, each training run with one thread:
      momentseek sweep xml reloclnet --data /mnt/tvr --seeds 5 --set threads=1 --out /mnt/sweep --on auto

    Each training run is in DIR/MODEL/SPLIT/seed-N. The same command continues a sweep: what is finished is not trained
    again. DIR gets table.csv, table.json and table.md, updated after every row. In settings, {model} and {train} stand
    for the row's model and training split, as in `--set first_stage=DIR/xml/{train}/seed-0`.
    """
    import json
    import sys

    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
    from momentseek.models.training.config import summed_measures
    from momentseek.models.training.presets import settings_table
    from momentseek.models.training.session import train_seeds
    from momentseek.models.training.sweep import markdown_text, sweep_cells, table_rows, write_tables

    out = Path(target)
    with Data.open(folder) as data:
        sections, where = settings_table(preset, file, default=data.preset)
        todo = sweep_cells(sections, models, splits, varied, settings, out, where)
        out.mkdir(parents=True, exist_ok=True)
        note = f"{data.name}: a simulation, not real videos." if data.simulated else data.name
        explicit = [m for each in measures for m in expand(each)]
        chosen_by = [m for cell in todo for m in summed_measures(cell.config.training.measure)]
        shown = list(dict.fromkeys(explicit or chosen_by))
        if on is not None and not _train_on(on, todo, seeds, data, quiet):
            options.say("stopped and saved; the same command continues")
            sys.exit(130)
        done = []
        for number, cell in enumerate(todo, start=1):
            label = ", ".join(f"{k} {v}" for k, v in cell.labels.items())
            if not quiet:
                options.say(f"{number} of {len(todo)}: {label}")
            config = _at(cell.config, data)
            line = TrainingLine(quiet=quiet)
            reports = train_seeds(config, data, cell.folder, seeds, progress=line).reports
            done.append((cell, reports))
            write_tables(out, done, shown, note)
            if len(reports) < seeds:
                options.say("stopped and saved; the same command continues")
                sys.exit(130)
    click.echo(
        json.dumps({"note": note, "rows": table_rows(done)}, indent=2) if as_json else markdown_text(done, shown, note),
        nl=as_json,
    )


def _train_on(address: str, cells: Sequence[SweepCell], seeds: int, data: Data, quiet: bool) -> bool:
    """Train every cell with every seed on a cluster, each in the folder in which it is looked for afterwards."""
    from momentseek.cluster.training import WantedRun, training_tasks
    from momentseek.models.training.session import seeded_runs

    runs = [
        WantedRun(f"{', '.join(cell.labels.values())}, seed {config.training.seed}", config, folder)
        for cell in cells
        for config, folder in seeded_runs(_at(cell.config, data), cell.folder, seeds)
    ]
    return run_on(address, training_tasks(runs, data), quiet=quiet)


def _at(config: TrainConfig, data: Data) -> TrainConfig:
    """The settings with the place of their data."""
    from dataclasses import replace

    return replace(config, data=replace(config.data, path=data.location))
