"""``momentseek diagnose``: question the measures and the data."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import click

from momentseek.cli import options
from momentseek.cli.options import short_labels
from momentseek.core.errors import MomentseekError
from momentseek.core.figures import check_folder
from momentseek.core.moments.table import Policy
from momentseek.measuring.compare import unique_labels
from momentseek.measuring.diagnose.diagnosis import diagnose
from momentseek.measuring.diagnose.plots import draw
from momentseek.measuring.formats import read_corpus, read_runs, read_truth
from momentseek.measuring.measures import PROTOCOLS, parse_all
from momentseek.measuring.result import Missing


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option(
    "--truth",
    "-t",
    "truths",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Ground truth, in any known format. Twice for a split: first the usual test set (iid), then the other (ood).",
)
@options.measures
@options.protocol
@options.missing
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(["axioms", "ties", "noise", "location"]),
    help="Only this part; may be given several times.",
)
@click.option(
    "--annotators",
    "annotations",
    multiple=True,
    metavar="FILE",
    help="Re-annotations of the truth's queries (CSV with HITId, times in percent): score by each annotator in turn.",
)
@click.option(
    "--noise",
    "gammas",
    multiple=True,
    type=click.FloatRange(0, 1, min_open=True),
    metavar="GAMMA",
    help="Standard deviation of the noise on IoUs; may be given several times. Default: 0.05, 0.1 and 0.2.",
)
@click.option("--clip-noise", is_flag=True, help="Keep noisy IoUs within 0 and 1 (the paper does not).")
@options.videos
@options.invalid
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For everything random.")
@click.option("--plots", "folder", metavar="DIR", help="Also draw the figures, as PNG and SVG, into this folder.")
@options.as_json
def command(
    runs: tuple[str, ...],
    truths: tuple[str, ...],
    measures: tuple[str, ...],
    protocol: str | None,
    missing: str,
    only: tuple[str, ...],
    annotations: tuple[str, ...],
    gammas: tuple[float, ...],
    clip_noise: bool,
    videos: str | None,
    invalid: str | None,
    seed: int,
    folder: str | None,
    as_json: bool,
) -> None:
    """Ask whether the figures of RUNs can be trusted: what the measures miss, and what the data gives away.

    \b
    axioms     which measures move when they should not, or stay when they should move, by example
    ties       on how many queries the runs cannot be told apart
    noise      how far the figures move if the true moments are unsure
    location   whether runs find moments, or places where moments usually are

    \b
    Everything about two systems, with figures:
      momentseek diagnose ours.json theirs.json --truth test.json --plots figures
    Only the axioms, for two measures:
      momentseek diagnose run.json -t test.json --only axioms -m 'AP@5[IoU>0.5]' -m AxIoU@5
    What five other annotators would say:
      momentseek diagnose run.json -t charades_test.json --only noise --annotators test_00.csv
    A split by location, each system's runs in the same order:
      momentseek diagnose iid.json ood.json -t test_iid.json -t test_ood.json --only location

    Without -m every part takes the measures that its paper questions. Parts that lack something (a second run,
    durations) are left out and say why.
    """
    if not runs:
        raise MomentseekError("there is nothing to diagnose: momentseek diagnose RUN… --truth FILE")
    rules = PROTOCOLS[protocol or "paper"]  # names are checked before large files are read
    parse_all(measures, rules.options)
    if folder:
        check_folder(folder)
    policy = cast(Policy, invalid or "error")
    with patience("reading"):
        corpus = read_corpus(videos) if videos else None
        judgements = [read_truth(path, corpus=corpus, invalid=policy) for path in truths]
        chosen = []
        for path, label in zip(runs, unique_labels(short_labels(runs)), strict=True):
            lists = [r for r in read_runs(path, corpus=corpus, invalid=policy) if r.task != "VR"]
            if not lists:
                raise MomentseekError(f"{path}: ranks videos only, and there are no moments to question")
            chosen.append((label, next((r for r in lists if r.task == "VCMR"), lists[0])))
        people = [read_truth(path, format="hidden-challenges", invalid=policy) for path in annotations]
    found = diagnose(
        chosen,
        judgements,
        measures,
        protocol=rules.name,
        missing=cast(Missing, missing),
        annotators=people,
        gammas=gammas,
        only=only,
        clip_noise=clip_noise,
        seed=seed,
        patience=patience,
    )
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        click.echo(found.as_text())
        for table in (*judgements, *(run for _, run in chosen), *people):
            for finding in table.findings:
                options.say(f"note: {table.source}: {finding}")
    if folder:
        with patience("drawing"):
            written = draw(found, folder)
        for figure in written:
            options.say(f"wrote {figure}")
        if not written:
            options.say(f"note: nothing was drawn into {folder}, because no part that was run has a figure")


@contextmanager
def patience(doing: str) -> Iterator[None]:
    """Say what is being done, on stderr, if it takes longer than a second."""
    timer = threading.Timer(1.0, options.say, [f"{doing} …"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
