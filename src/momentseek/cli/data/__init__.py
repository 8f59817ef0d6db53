"""``momentseek data``: the papers' dataset protocols, one verb each."""

from __future__ import annotations

import click

from momentseek.cli.verbs import Verbs

VERBS = {
    "statistics": "Count and check any dataset.",
    "consensus": "Turn several annotators' labels into one per pair.",
    "candidates": "Choose which moments to have judged for a query.",
    "label-studio": "Write annotation tasks, and read the annotators' labels back.",
    "imprecise": "Replace characters' names by general words.",
    "pseudo-train": "Make a training set from caption similarity.",
    "resplit": "Split so that test moments lie where training moments do not.",
    "massive": "Make every query search many videos, with reliable negatives.",
}


@click.group(cls=Verbs, package=__name__, verbs=VERBS)
def command() -> None:
    """Build datasets as the papers do, from anybody's annotations.

    Every verb takes a seed, writes its files whole or not at all, and can report every decision: what was
    kept, what was dropped, and why (--report FILE, --json).
    """
