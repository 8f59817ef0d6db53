"""``momentseek data``: build datasets as the papers do, one command per step."""

from __future__ import annotations

import click
from click.core import ParameterSource

from momentseek.benchmarks.datasets.common import BuiltDataset
from momentseek.cli.groups import LazyGroup
from momentseek.cli.options import echo_json, say
from momentseek.core.errors import MomentseekError

COMMANDS = {
    "statistics": ("splits:statistics", "Count and check any dataset."),
    "consensus": ("annotation:consensus", "Turn several annotators' labels into one per pair."),
    "candidates": ("annotation:candidates", "Choose the moments that annotators judge for each query."),
    "label-studio": ("annotation:label_studio", "Write annotation tasks, and read the annotators' labels back."),
    "pool": ("annotation:pool", "Pool the first moments of several runs for judging."),
    "judge": ("annotation:judge", "Have a vision model judge the relevance of moments."),
    "calibrate": ("annotation:calibrate", "Compare a model's judgements with people's."),
    "to-hub": ("hub:to_hub", "Write a dataset for Hugging Face's load_dataset."),
    "from-hub": ("hub:from_hub", "Read a Hugging Face dataset on disk."),
    "imprecise": ("queries:imprecise", "Replace characters' names in queries by general words."),
    "pseudo-train": ("queries:pseudo_train", "Make a training set from caption similarity."),
    "resplit": ("splits:resplit", "Split so that test moments lie where training moments do not."),
    "features": ("features:features", "Make, describe and check features to train a model on."),
    "simulated-truth": (
        "annotation:simulated_truth",
        "Write the true relevance of every moment of a simulated corpus.",
    ),
    "related": ("videos:related", "Find other videos that also answer a training query."),
    "massive": ("videos:massive", "Give every query a pool of videos to search, with reliable negatives."),
}


@click.group(cls=LazyGroup, package=__name__, sections={"Commands": COMMANDS})
def command() -> None:
    """Build benchmark datasets from annotations, as the papers do.

    Every command writes all its files or none. --report FILE records every decision: what was kept, what was dropped,
    and why. --json prints the summary as JSON. Commands that use random numbers take a seed.
    """


def refuse_without(needed: str, **ignored: str) -> None:
    """Refuse given options (parameter → flag) that would be ignored; ``needed`` is the reason for the message."""

    context = click.get_current_context()
    default = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    given = [flag for name, flag in ignored.items() if context.get_parameter_source(name) not in default]
    if given:
        raise MomentseekError(f"{' and '.join(given)} would do nothing {needed}; leave {_them(given)} out")


def _them(flags: list[str]) -> str:
    return "it" if len(flags) == 1 else "them"


def vector_file(encoder: str | None) -> str | None:
    """Return the vector file that ``file:FILE`` names, or None for other encoders."""
    return encoder.removeprefix("file:") if encoder and encoder.startswith("file:") else None


def finish(built: BuiltDataset, as_json: bool) -> None:
    """Write all files of a dataset or none, print its summary, and print notes and file names on stderr."""
    built.write()
    if as_json:
        echo_json(built.summary)
    elif built.text:
        click.echo(built.text)
    for note in built.notes:
        say(f"note: {note}")
    for path in built.files:
        about = built.about.get(str(path))
        say(f"wrote {path}: {about}" if about else f"wrote {path}")
