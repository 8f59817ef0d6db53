"""Options that several verbs share, worded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from momentseek.moments import POLICIES

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

truth = click.option("--truth", "-t", required=True, metavar="FILE", help="Ground truth, in any known format.")
measures = click.option(
    "--measure",
    "-m",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="A measure, e.g. 'NDCG@{10,20}[IoU>={0.3,0.5}]'; may be given several times. Default: the protocol's.",
)
protocol = click.option(
    "--protocol",
    "-p",
    metavar="NAME",
    help="Whose rules to follow (`momentseek measures` lists them). Default: what the truth's format is used with.",
)
missing = click.option(
    "--missing",
    type=click.Choice(["error", "zero", "skip"]),
    default="error",
    show_default=True,
    help="What a judged query without predictions is: refused, worth 0, or left out of the mean.",
)
videos = click.option(
    "--videos",
    metavar="FILE",
    help="The collection's videos with durations (and indices): video_corpus.json, Charades' CSV, ….",
)
invalid = click.option(
    "--invalid",
    type=click.Choice(POLICIES),
    help="Moments with impossible times: refuse, drop (a prediction keeps its rank), clip into the video, or keep. "
    "Default: error; with --official, keep, as the official evaluators do.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object with unrounded values.")


def say(text: str) -> None:
    """A note for the person at the terminal: on stderr, so that stdout holds only the result."""
    click.echo(text, err=True)
