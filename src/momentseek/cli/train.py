"""``momentseek train`` and ``sweep``: train models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.cli import options
from momentseek.cli.cluster import run_on
from momentseek.cli.progress import TrainingLine, duration
from momentseek.core.errors import MomentseekError
from momentseek.models import require_training
from momentseek.models.features.data import Data

if TYPE_CHECKING:
    from momentseek.models.training.folder import TrainingOutcome
    from momentseek.models.training.session import SeedsOutcome


NOT_RESUMED = ("model", "preset", "config", "seeds", "out", "force")
"""Options that a resumed training run takes from its folder."""


@click.command()
@click.argument("model", metavar="MODEL", required=False)
@click.option("--data", metavar="DIR", help="Data folder (contains a data.toml).")
@click.option(
    "--preset",
    metavar="NAME",
    help="Settings of a paper; --list shows the names. Default: the data's preset, if any.",
)
@click.option("--config", metavar="FILE", help="Read the settings from a TOML file instead of a preset.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting; repeatable.")
@click.option("--out", "-o", metavar="DIR", help="Folder of the training run. Default: runs/MODEL-SPLIT.")
@click.option("--seeds", type=click.IntRange(min=1), help="Number of seeds to train with; reports mean ± sd.")
@click.option("--resume", metavar="DIR", help="Continue the training run in DIR; no other option is needed.")
@options.force
@click.option("--list", "listing", is_flag=True, help="List models, presets and settings.")
@options.as_json
@options.quiet
def train(listing: bool, as_json: bool, quiet: bool, **given: Any) -> None:
    """Train MODEL on a data folder, and keep the best checkpoint.

    \b
    On simulated data, a few minutes on one core:
      momentseek simulate --out simulation
      momentseek train reloclnet --data simulation --out runs/reloclnet
    With a paper's settings, shorter training lists, and three seeds:
      momentseek train --preset tvr-ranking-reloclnet --data tvr-ranking --set train=train_top20 --seeds 3
    With another learning rate, video features only, for half an hour:
      momentseek train xml --data simulation --set lr=5e-4 --set modalities=video --set minutes=30
    The second stage of CroCs, starting from the first stage's weights, with hard negatives:
      momentseek train crocs --data films --set begin=runs/crocs --set lr=1e-4 --set hard_videos=8 \\
        --set hard_queries=16 --out runs/crocs2
    A captioner, which describes moments instead of finding them:
      momentseek train mmt --data simulation --out runs/mmt
    Continue after Ctrl-C, or after a crash:
      momentseek train --resume runs/reloclnet
    With several processes that share the work:
      torchrun --nproc-per-node 2 -m momentseek train reloclnet --data simulation --out runs/two

    The output folder contains config.toml, log.csv (and an event file if TensorBoard is installed), best.safetensors
    (the best by `training.measure` on the validation split), last.safetensors and, at the end, report.json.
    """
    require_training()
    from momentseek.models.training.presets import list_settings
    from momentseek.models.training.session import run_training

    if listing:
        click.echo(list_settings(given["model"]))
        return
    if given["resume"] is not None and any(given[name] for name in NOT_RESUMED):
        raise MomentseekError(
            "--resume continues in the folder itself with the same model and settings; leave out MODEL, --preset, "
            "--config, --seeds, --out and --force"
        )
    if given["model"] and given["data"] and not (given["preset"] or given["config"] or quiet):
        with Data.open(given["data"]) as data:
            if data.preset:
                options.say(f"training with the preset {data.preset}, which the data name (--preset chooses another)")

    def announce(seed: int, folder: Path) -> None:
        if not quiet:
            options.say(f"seed {seed}: {folder}")

    outcome = run_training(**given, progress=TrainingLine(quiet=quiet), announce=announce)
    _print_outcome(outcome, as_json, given["force"])


def _print_outcome(outcome: TrainingOutcome | SeedsOutcome, as_json: bool, force: bool) -> None:
    from momentseek.models.training.session import SeedsOutcome, scores_text

    if not isinstance(outcome, SeedsOutcome):
        if outcome.stopped == "interrupted":
            command = options.command_line(["train", "--resume", str(outcome.folder)])
            options.say(f"stopped at step {outcome.step:,} of {outcome.steps:,} and saved; continue with: {command}")
            sys.exit(130)
        if not outcome.report:  # another process writes
            return
        reports, found = [outcome.report], outcome.report
        if not as_json:
            options.say(_ending(outcome))
    else:
        reports, found = outcome.reports, outcome.as_json()
        if not outcome.complete:
            how = "the same command without --force" if force else "the same command"
            options.say(f"stopped and saved; {how} continues ({len(reports)} of {outcome.wanted} seeds are done)")
            sys.exit(130)
    click.echo(json.dumps(found, indent=2, ensure_ascii=False) if as_json else scores_text(reports))


def _ending(outcome: TrainingOutcome) -> str:
    why = {"done": "done", "patience": "stopped improving", "time": "time is up"}[outcome.stopped]
    best = "none"
    if outcome.best is not None:
        best = f"{outcome.report['measure']} {outcome.best:.4f} at step {outcome.best_step:,}"
    return f"{why} after {outcome.step:,} steps, {duration(outcome.seconds)}; best {best}; wrote {outcome.folder}"


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--data", required=True, metavar="DIR", help="Data folder (contains a data.toml).")
@click.option("--train", "splits", multiple=True, metavar="SPLIT", help="Training split; repeatable.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of seeds for each combination, starting from 0.",
)
@click.option(
    "--vary",
    "varied",
    multiple=True,
    metavar="KEY=A,B",
    help="Try these values of a setting; repeatable, for all combinations.",
)
@click.option("--preset", metavar="NAME", help="Settings of a paper. Default: the data's preset, if any.")
@click.option("--config", metavar="FILE", help="Read the settings from a TOML file instead of a preset.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting for all models; repeatable."
)
@click.option("--out", "-o", required=True, metavar="DIR", help="Folder of the sweep.")
@click.option(
    "--measure", "-m", "measures", multiple=True, help="Measures to print as columns. Default: training.measure."
)
@options.on_cluster
@options.as_json
@options.quiet
def sweep(
    models: tuple[str, ...], data: str, out: str, on: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Train every combination of MODELs, training splits, varied settings and seeds, and print mean ± sd of each.

    \b
    Table 5 of TVR-Ranking, on simulated data:
      momentseek sweep xml reloclnet --data simulation --train train_top01 --train train_top40 --seeds 3 --out sweep
    Table 4 of TVR: what each modality contributes:
      momentseek sweep xml --data simulation --vary modalities=video,subtitle,video+subtitle --out sweep
    On all machines of a cluster, each training run with one thread:
      momentseek sweep xml reloclnet --data /mnt/tvr --seeds 5 --set threads=1 --out /mnt/sweep --on auto

    Each training run is in DIR/MODEL/SPLIT/seed-N. The same command continues a sweep; finished runs are not trained
    again. DIR contains table.csv, table.json and table.md, updated after every row. In settings, {model} and {train}
    stand for the row's model and training split, as in `--set first_stage=DIR/xml/{train}/seed-0`.
    """
    require_training()
    from momentseek.cluster.training import WantedRun, training_tasks
    from momentseek.models.training.sweep import markdown_text, plan_sweep, table_rows

    with Data.open(data) as opened:
        planned = plan_sweep(opened, models, out=Path(out), **given)
        tasks = training_tasks([WantedRun(*run) for run in planned.runs()], opened) if on is not None else []
        done = []
        if on is None or run_on(on, tasks, quiet=quiet):
            done = planned.train(TrainingLine(quiet=quiet), None if quiet else options.say)
    if not done or len(done[-1][1]) < planned.seeds:
        options.say("stopped and saved; the same command continues")
        sys.exit(130)
    if as_json:
        click.echo(json.dumps({"note": planned.note, "rows": table_rows(done)}, indent=2))
    else:
        click.echo(markdown_text(done, planned.measures, planned.note), nl=False)
