"""``momentseek data resplit``: split so that test moments lie where training moments do not."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from momentseek.benchmarks.datasets.common import as_json_lines
from momentseek.benchmarks.datasets.pairs import merge_truths
from momentseek.benchmarks.datasets.resplit import RECIPES, SPLIT_NAMES, as_text, compare_membership, notes, resplit
from momentseek.benchmarks.datasets.resplit import as_json as to_json
from momentseek.benchmarks.datasets.resplit_figures import FIGURE_FILES, draw_resplit
from momentseek.cli import options
from momentseek.cli.options import Number, new_folders
from momentseek.core.errors import MomentseekError
from momentseek.core.figures import check_folder
from momentseek.measuring.formats import FORMATS, read_corpus, read_truth, write_all
from momentseek.measuring.formats.document import open_document
from momentseek.measuring.formats.files import choose, read_document
from momentseek.measuring.formats.registry import Reading

if TYPE_CHECKING:
    from momentseek.benchmarks.datasets.resplit import Recipe
    from momentseek.core.moments.judgements import Corpus, Judgements


FRACTION = Number(0, 1)
SPLIT_WORDS = {"ood": "test_ood", "iid": "test_iid", "val": "val", "train": "train"}


@click.command()
@click.argument("annotations", metavar="ANNOTATIONS...", nargs=-1, required=True)
@click.option(
    "--preset",
    type=click.Choice(["charades-cd", "activitynet-cd", "paper"]),
    required=True,
    help="The choices to start from; the options below change single ones.",
)
@click.option("--out", "folder", required=True, metavar="DIR", help="The folder for the four files.")
@click.option("--bandwidth", metavar="H", help="Bandwidth of the density, as a share of the video's length; or scott.")
@click.option("--share", type=FRACTION, help="Share of the pairs that are rare: those of the lowest density.")
@click.option(
    "--ties",
    type=click.Choice(["ood", "train"]),
    help="The split of a video of which exactly half of the pairs are rare.",
)
@click.option(
    "--long-moments",
    metavar="SHARE",
    help="Keep videos out of test-ood that have a moment of this share (0.5 or '>=0.5', or '>0.5'); or off.",
)
@click.option("--swap/--no-swap", default=None, help="Swap the times of moments that end before they start.")
@click.option("--clip/--no-clip", default=None, help="Move times into the video before measuring densities.")
@click.option("--val-share", type=FRACTION, help="Share of all videos that goes to val.")
@click.option("--iid-share", type=FRACTION, help="Share of all videos that goes to test-iid.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed for drawing val and test-iid. Default: 0.")
@click.option("--durations", metavar="FILE", help="The videos' lengths, instead of the annotations' own.")
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="FILE",
    help="A published split to compare with: …test_ood.json (the name says which), or test_ood=FILE; repeatable.",
)
@click.option("--report", metavar="FILE", help="Write every video's split and the reason, as JSON Lines.")
@click.option("--plots", metavar="DIR", help="Also draw where each split's moments lie, and its verbs.")
@options.force
@options.as_json
def command(
    annotations: tuple[str, ...],
    preset: str,
    folder: str,
    bandwidth: str | None,
    share: float | None,
    ties: str | None,
    long_moments: str | None,
    swap: bool | None,
    clip: bool | None,
    val_share: float | None,
    iid_share: float | None,
    seed: int | None,
    durations: str | None,
    references: tuple[str, ...],
    report: str | None,
    plots: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Split ANNOTATIONS (all files of a dataset) into train, val, test-iid and test-ood.

    Videos become test-ood if most of their moments lie where few moments of the dataset do. The presets charades-cd and
    activitynet-cd give the published test-ood sets exactly; val and test-iid are drawn at random, by --seed.

    \b
    Charades-CD from Charades-STA:
      momentseek data resplit charades_sta_train.txt charades_sta_test.txt --preset charades-cd \\
        --durations decoded_durations.json --out charades-cd
    ActivityNet-CD, checked against the published file:
      momentseek data resplit train.json val_1.json val_2.json --preset activitynet-cd --out activitynet-cd \\
        --reference anet_test_ood.json --report decisions.jsonl

    It writes train.json, val.json, test_iid.json and test_ood.json, all or none; with the preset charades-cd in
    Charades-CD's format.
    """
    import json

    recipe = _change_recipe(
        RECIPES[preset],
        bandwidth,
        long_moments,
        share=share,
        ties=ties,
        swap=swap,
        clip=clip,
        val_share=val_share,
        iid_share=iid_share,
        seed=seed,
    )
    targets = {name: Path(folder) / f"{name}.json" for name in SPLIT_NAMES}
    wanted = [_reference(text) for text in references]
    figures: list[str] = []
    if plots:
        check_folder(plots)
        figures = [str(Path(plots) / name) for name in FIGURE_FILES]
    inputs = [*annotations, *(path for _, path in wanted), durations]
    with new_folders(folder, plots):
        options.check_targets(inputs, [*map(str, targets.values()), report, *figures], force)
        corpus = read_corpus(durations) if durations else None
        truths, form = _read(annotations, corpus)
        pairs = merge_truths(truths, corpus.durations if corpus else None)
        done = resplit(pairs, recipe)
        published = [compare_membership(s, done.splits[s], read_truth(path, invalid="keep")) for s, path in wanted]
        writer = FORMATS["charades-cd" if preset == "charades-cd" else form]
        files: dict[str | PathLike[str], bytes] = {Path(report): as_json_lines(done.decisions)} if report else {}
        files |= {targets[name]: writer.to_bytes(split) for name, split in done.splits.items()}
        if plots:
            drawn = draw_resplit({Path(t.source).name: t for t in truths}, done.splits)
            files |= {Path(plots) / name: data for name, data in drawn.items()}
        write_all(files)
    written = [Path(path) for path in files]
    if as_json:
        click.echo(json.dumps(to_json(preset, done, published, written), indent=2, ensure_ascii=False))
        return
    click.echo(as_text(done, published))
    for line in (*(f"note: {note}" for note in notes(pairs, done)), *(f"wrote {path}" for path in written)):
        options.say(line)


def _change_recipe(recipe: Recipe, bandwidth: str | None, long_moments: str | None, **given: Any) -> Recipe:
    """Change the preset by the options that were given."""
    from dataclasses import replace

    changes = {name: value for name, value in given.items() if value is not None}
    if bandwidth is not None:
        changes["bandwidth"] = "scott" if bandwidth == "scott" else _number(bandwidth)
        if changes["bandwidth"] is None:
            raise MomentseekError(f"--bandwidth {bandwidth}: give a positive number such as 0.034, or scott")
    if long_moments is not None:
        bound = None if long_moments == "off" else _number(long_moments.removeprefix(">").removeprefix("="))
        if bound is None and long_moments != "off":
            raise MomentseekError(f"--long-moments {long_moments}: give a share such as 0.5 or '>0.5', or off")
        changes |= {"long_moments": bound, "long_strict": long_moments.startswith(">") and long_moments[1:2] != "="}
    return replace(recipe, **changes)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def _reference(text: str) -> tuple[str, str]:
    """Which split a published file is, from ``SPLIT=FILE`` or the file's own name."""

    named, mark, path = text.partition("=")
    if mark and named in SPLIT_WORDS.values():
        return named, path
    name = Path(text).name.lower()
    found = [split for word, split in SPLIT_WORDS.items() if word in name]
    if len(found) != 1:
        raise MomentseekError(f"{text}: which split is it? Say so: --reference test_ood={text}")
    return found[0], text


def _read(paths: tuple[str, ...], corpus: Corpus | None) -> tuple[list[Judgements], str]:
    """Read the files, keeping impossible times as the protocol does, and choose the format to write."""

    if len({Path(p).resolve() for p in paths}) < len(paths):
        raise MomentseekError("the same file is given twice; give each part of the dataset once")
    truths, forms = [], set()
    for path in paths:
        document = open_document(path)
        format = choose(document, None, "truth")
        forms.add(format.name)
        truths.append(read_document(document, format, Reading("keep", corpus)))
    return truths, "charades-cd" if forms == {"charades-cd"} else "activitynet"
