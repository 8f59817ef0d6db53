"""``momentseek baseline``: predict without looking at the videos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from momentseek.benchmarks.baselines import BASELINES, BaselineSettings, write_baseline
from momentseek.cli import options
from momentseek.cli.options import Number
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count, text_table


@click.command()
@click.argument("name", metavar="NAME", required=False)
@click.option("--train", metavar="FILE", help="Ground truth to learn locations from, in any known format.")
@click.option("--test", metavar="FILE", help="Ground truth whose queries to answer, in any known format.")
@click.option("--out", "-o", "target", metavar="RUN", help="The run to write: .jsonl, .parquet, or what --to says.")
@click.option("--to", metavar="FORMAT", help="The format of RUN. Default: by its ending.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Predictions per query.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For chance and bias-based.")
@click.option(
    "--samples", type=click.IntRange(min=1), default=100, show_default=True, help="Draws per query of bias-based."
)
@click.option(
    "--bandwidth",
    type=Number(0, min_open=True),
    help="Of bias-based's density, as a share of the video. Default: 0.0013 for ActivityNet's videos, otherwise 0.008.",
)
@options.videos
@options.force
@click.option("--list", "listing", is_flag=True, help="List the baselines.")
@options.as_json
def command(
    name: str | None,
    train: str | None,
    test: str | None,
    target: str | None,
    to: str | None,
    videos: str | None,
    force: bool,
    listing: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Answer the queries of --test with the baseline NAME; what it scores is what a system gets for nothing.

    \b
    chance            random stretches of the video
    predict-all       the whole video
    moment-frequency  the most frequent training locations
    bias-based        draws from the density of training locations, densest first

    \b
    How far locations alone lead on Charades-CD:
      momentseek baseline bias-based --train charades_train.json --test charades_test_ood.json --out bias.jsonl
      momentseek evaluate bias.jsonl --truth charades_test_ood.json -m 'dR@1[IoU>={0.5,0.7}]' --invalid keep

    Every query is answered in its own video (or in all videos of its pool), so that videos must have durations.
    """
    if listing:
        rows = [[b.name, "train" if b.learns else "nothing", b.title] for b in BASELINES.values()]
        click.echo(text_table(["baseline", "learns from", "what it predicts"], rows, align="lll"))
        return
    if name is None or test is None or target is None:
        raise MomentseekError("momentseek baseline NAME --test FILE --out RUN needs all three; --list shows the names")
    _check(name, train, settings["bandwidth"])
    options.check_targets([train, test, videos], [target], force)
    used, run = write_baseline(
        name, train=train, test=test, out=target, format=to, videos=videos, settings=BaselineSettings(**settings)
    )
    if as_json:
        about = {"baseline": name, "train": train, "test": test, "run": str(Path(target))}
        options.echo_json({**about, "queries": len(run), "moments": len(run.start), "settings": used})
        return
    words = "".join(f", {key} {value:g}" for key, value in used.items() if value is not None)
    queries, moments = count(len(run), "query", "queries"), count(len(run.start), "moment")
    options.say(f"wrote {Path(target)}: {name}{words}; {queries}, {moments}")


def _check(name: str, train: str | None, bandwidth: float | None) -> None:
    """Refuse a training set or a bandwidth that the baseline lacks or would not use."""
    learns = BASELINES[name].learns
    if learns and train is None:
        raise MomentseekError(f"{name} learns where moments lie; give the training set (--train FILE)")
    if train is not None and not learns:
        raise MomentseekError(f"{name} learns nothing, so --train {train} would not be looked at; leave it out")
    if bandwidth is not None and name != "bias-based":
        raise MomentseekError(f"{name} has no density, so --bandwidth would change nothing; leave it out")
