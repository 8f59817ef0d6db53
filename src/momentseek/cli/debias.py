"""``momentseek debias``: test whether models find moments, or only the places where moments usually are."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from momentseek.benchmarks.debias.documents import as_json as to_json
from momentseek.benchmarks.debias.documents import as_text
from momentseek.benchmarks.debias.session import DebiasOptions, compare_systems
from momentseek.cli import options
from momentseek.cli.cluster import run_on
from momentseek.cli.progress import TrainingLine


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1)
@click.option(
    "--run", "runs", multiple=True, metavar="NAME=IID,OOD", help="Two files of predictions that another program made."
)
@click.option("--data", metavar="DIR", help="The data folder: one with a data.toml.")
@click.option("--train", default="train", show_default=True, metavar="SPLIT", help="The training split.")
@click.option(
    "--iid",
    default="test_iid",
    show_default=True,
    metavar="SPLIT",
    help="Test split: moments lie as in training.",
)
@click.option(
    "--ood", default="test_ood", show_default=True, metavar="SPLIT", help="Test split: moments lie elsewhere."
)
@click.option("--truth-iid", metavar="FILE", help="The truth of iid predictions, instead of --data.")
@click.option("--truth-ood", metavar="FILE", help="The truth of ood predictions.")
@click.option(
    "--truth-train",
    metavar="FILE",
    help="The truth of the training set; without it, the report says nothing about where training moments lie.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Seeds to train each MODEL with.",
)
@click.option("--preset", metavar="NAME", help="A paper's settings. Default for simulated data: films.")
@click.option("--config", metavar="FILE", help="Settings from a TOML file instead of a preset.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of all MODELs.")
@click.option("--out", "-o", metavar="FOLDER", help="The folder of the report and of all models.")
@click.option(
    "--verbs", type=click.IntRange(min=0), default=0, metavar="N", help="Also report by verb, for the N most frequent."
)
@click.option(
    "--baseline-seeds",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Number of draws of the random blind baselines; 0 leaves all baselines out.",
)
@click.option("--plots/--no-plots", default=True, help="Draw the figures, as PNG and SVG.")
@options.missing
@options.videos
@options.invalid
@options.on_cluster
@options.as_json
@options.quiet
def command(
    models: tuple[str, ...], runs: tuple[str, ...], on: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Compare MODELs on a test split like the training set (iid) and one whose moments lie elsewhere (ood).

    \b
    A MODEL is
      mdd                        a model, trained with every seed
      'mdd[confounders=L*A]'     a model with settings of its own, written as for --set
      runs/mdd                   the folder of a training run (a path has a slash)
      NAME=IID,OOD               two files of predictions; one may be left empty
      NAME=any of these          the same under another name; several of one name are seeds of one system

    \b
    What debiasing gains, on simulated films:
      momentseek simulate --like charades --out films
      momentseek debias tan2d mdd --data films --out debias
      momentseek debias tan2d mdd --data /mnt/films --out /mnt/debias --on auto
    Which confounders matter (Table 4 of debiased grounding):
      momentseek debias tan2d 'mdd[confounders=L]' 'mdd[confounders=L*A]' mdd --data films --out table4
    Predictions made elsewhere (needs no PyTorch):
      momentseek debias --run ours=iid.jsonl,ood.jsonl --truth-iid test_iid.json --truth-ood test_ood.json \\
        --truth-train train.json

    All others are compared with the first MODEL; blind baselines are reported next to them. FOLDER gets report.md,
    report.json, tables as CSV, figures/ and runs/. The same command continues after an interruption.
    """
    report = compare_systems(
        DebiasOptions(models=[*models, *runs], **given),
        announce=(lambda _: None) if quiet else options.say,
        progress=TrainingLine(quiet=quiet),
        spread=None if on is None else partial(run_on, on, quiet=quiet),
    )
    if report is None:
        options.say("stopped and saved; the same command continues")
        sys.exit(130)
    if as_json:
        options.echo_json(to_json(report))
    else:
        click.echo(as_text(report))
