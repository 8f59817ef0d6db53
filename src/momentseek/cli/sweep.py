"""``momentseek sweep``: train many models and compare them in one table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from momentseek.cli import options
from momentseek.cli.cluster import run_on
from momentseek.cli.progress import TrainingLine
from momentseek.models import require_training
from momentseek.models.features.data import Data


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--data", required=True, metavar="DIR", help="The data folder: one with a data.toml.")
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
@click.option("--config", metavar="FILE", help="Settings from a TOML file instead of a preset.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of all models.")
@click.option("--out", "-o", required=True, metavar="DIR", help="The folder of the sweep.")
@click.option(
    "--measure", "-m", "measures", multiple=True, help="Columns of the printed table. Default: training.measure."
)
@options.on_cluster
@options.as_json
@options.quiet
def command(
    models: tuple[str, ...], data: str, out: str, on: str | None, as_json: bool, quiet: bool, **given: Any
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
    require_training()
    from momentseek.cluster.training import WantedRun, training_tasks
    from momentseek.models.training.sweep import markdown_text, plan_sweep, table_rows

    with Data.open(data) as opened:
        sweep = plan_sweep(opened, models, out=Path(out), **given)
        tasks = training_tasks([WantedRun(*run) for run in sweep.runs()], opened) if on is not None else []
        done = []
        if on is None or run_on(on, tasks, quiet=quiet):
            done = sweep.train(TrainingLine(quiet=quiet), None if quiet else options.say)
    if not done or len(done[-1][1]) < sweep.seeds:
        options.say("stopped and saved; the same command continues")
        sys.exit(130)
    if as_json:
        click.echo(json.dumps({"note": sweep.note, "rows": table_rows(done)}, indent=2))
    else:
        click.echo(markdown_text(done, sweep.measures, sweep.note), nl=False)
