"""``momentseek baseline``: predict without looking at the videos."""

from __future__ import annotations

from pathlib import Path

import click

from momentseek.benchmarks.baselines import BASELINES, BaselineSettings, default_bandwidth
from momentseek.cli import options
from momentseek.cli.options import Number
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count, text_table
from momentseek.measuring.formats import read_corpus, read_truth, write_bytes
from momentseek.measuring.formats.files import writer_for


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
    top: int,
    seed: int,
    samples: int,
    bandwidth: float | None,
    videos: str | None,
    force: bool,
    listing: bool,
    as_json: bool,
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
    import json

    if listing:
        listed = [[b.name, "train" if b.learns else "nothing", b.title] for b in BASELINES.values()]
        click.echo(text_table(["baseline", "learns from", "what it predicts"], listed, align="lll"))
        return
    if name is None or test is None or target is None:
        raise MomentseekError("momentseek baseline NAME --test FILE --out RUN needs all three; --list shows the names")
    baseline = BASELINES[name]
    if baseline.learns and train is None:
        raise MomentseekError(f"{name} learns where moments lie; give the training set (--train FILE)")
    if train is not None and not baseline.learns:
        raise MomentseekError(f"{name} learns nothing, so --train {train} would not be looked at; leave it out")
    if bandwidth is not None and name != "bias-based":
        raise MomentseekError(f"{name} has no density, so --bandwidth would change nothing; leave it out")
    path = Path(target)
    options.check_targets([train, test, videos], [target], force)
    writer = writer_for(to, path, "run")
    corpus = read_corpus(videos) if videos else None
    queries = read_truth(test, corpus=corpus, invalid="keep")
    known = read_truth(train, corpus=corpus, invalid="keep") if train else None
    if name == "bias-based" and bandwidth is None and known is not None:
        bandwidth = default_bandwidth(known)
    run = baseline.predict(known, queries, BaselineSettings(seed, samples, bandwidth, top))
    write_bytes(path, writer.to_bytes((run,), corpus))
    told: dict[str, dict[str, float | None]] = {
        "chance": {"seed": seed},
        "bias-based": {"bandwidth": bandwidth, "samples": samples, "seed": seed},
    }
    used = told.get(name, {})
    if as_json:
        about = {"baseline": name, "train": train if known else None, "test": test, "run": str(path)}
        click.echo(json.dumps({**about, "queries": len(run), "moments": len(run.start), "settings": used}, indent=2))
        return
    words = "".join(f", {key} {value:g}" for key, value in used.items() if value is not None)
    options.say(
        f"wrote {path}: {name}{words}; {count(len(run), 'query', 'queries')}, {count(len(run.start), 'moment')}"
    )
