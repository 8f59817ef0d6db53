"""``momentseek data candidates``: choose the moments that annotators judge for each query."""

from __future__ import annotations

from typing import Any

import click

from momentseek.benchmarks.datasets.annotation.candidates import build_candidates
from momentseek.cli import options
from momentseek.cli.data import finish, refuse_without
from momentseek.cli.progress import progress_bars


@click.command()
@click.argument("queries", metavar="QUERIES")
@click.argument("captions", metavar="CAPTIONS")
@click.option("--out", required=True, metavar="FILE", help="Write the candidates here (JSON Lines; .gz too).")
@click.option("--batch", type=click.IntRange(min=1), default=20, show_default=True, help="Candidates per batch.")
@click.option(
    "--encoder",
    default="minilm",
    show_default=True,
    metavar="NAME",
    help="The text encoder that compares texts, or file:VECTORS.",
)
@click.option(
    "--labels", metavar="PAIRS", help="The judged first batch (from `data consensus`): write the second batch."
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="With --labels: how many of the first batch's last candidates decide.",
)
@click.option(
    "--still-relevant",
    type=click.FloatRange(0, 4),
    default=2.0,
    show_default=True,
    metavar="LEVEL",
    help="With --labels: write a second batch if the mean level of the last ones is at least this.",
)
@click.option(
    "--identical",
    type=click.Choice(["once", "each"]),
    default="once",
    show_default=True,
    help="Queries with the same words: judge the first one only, or each.",
)
@click.option("--report", metavar="FILE", help="Write the decision about every query, one JSON object per line.")
@options.force
@options.as_json
def command(force: bool, as_json: bool, **given: Any) -> None:
    """Find, for each of QUERIES, the moments of CAPTIONS whose captions are most similar to it.

    Both are truth files in any format; a moment's caption is its query's text. Candidates come in batches of 20. Once
    the first batch is judged, --labels adds the second where the last 5 of the first are still relevant.

    \b
    The first batch, then (when it is judged) the second:
      momentseek data candidates queries.jsonl captions.jsonl --out first.jsonl
      momentseek data candidates queries.jsonl captions.jsonl --labels pairs.csv --out second.jsonl

    OUT is a predictions file that also has each pair's id, rank, batch and caption; `momentseek data label-studio
    write` turns it into annotation tasks.
    """
    inputs = [given["queries"], given["captions"], given["labels"]]
    options.check_targets(inputs, [given["out"], given["report"]], force)
    if not given["labels"]:
        refuse_without("without --labels", last="--last", still_relevant="--still-relevant")
    finish(build_candidates(**given, progress=progress_bars), as_json)
