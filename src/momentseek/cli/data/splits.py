"""``momentseek data statistics`` and ``resplit``: count, check and re-split datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from momentseek.benchmarks.datasets.resplit import RECIPES, SPLIT_NAMES, build_resplit, change_recipe, split_of_file
from momentseek.benchmarks.datasets.resplit_figures import FIGURE_FILES
from momentseek.benchmarks.datasets.statistics_figures import STATISTICS_FIGURES
from momentseek.benchmarks.datasets.statistics_report import build_statistics
from momentseek.cli import options
from momentseek.cli.data import finish
from momentseek.core.errors import MomentseekError
from momentseek.core.figures import check_folder
from momentseek.measuring.result import short_labels

FRACTION = options.Number(0, 1)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@options.videos
@click.option("--subtitles", metavar="FILE", help="Find queries copied from these subtitles (TVR's JSON Lines).")
@click.option(
    "--min-words",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="Report queries with fewer words than this (TVR's rule).",
)
@click.option("--labels", metavar="FILE", help="Manual labels of queries: CSV with query_id and columns of integers.")
@click.option("--report", metavar="FILE", help="Write every finding, one JSON object per line.")
@click.option(
    "--plots", metavar="DIR", help="Draw lengths, locations and types of moments and queries into DIR, as PNG and SVG."
)
@options.force
@options.as_json
def statistics(files: tuple[str, ...], force: bool, as_json: bool, **given: Any) -> None:
    """Count queries, moments, videos and words of FILEs (truths in any format), and check them for errors.

    Several files are treated as the splits of one dataset: each has a column, a total follows, and videos in two of
    them are reported. Invalid entries do not stop the command; it reports them.

    \b
    The tables of the TVR and TVR-Ranking papers for any dataset:
      momentseek data statistics train.json val.json test.json
    Charades-STA, whose durations are in another file:
      momentseek data statistics charades_sta_train.txt charades_sta_test.txt --videos durations.json
    With all figures, and your own labels of how many actions and people queries mention:
      momentseek data statistics tvr_train.jsonl --labels actions-and-people.csv --plots figures
    """
    plots = given["plots"]
    figures = [str(Path(plots) / f"{n}.{kind}") for n in STATISTICS_FIGURES for kind in ("png", "svg")] if plots else []
    inputs = [*files, given["videos"], given["subtitles"], given["labels"]]
    seen: set[Path] = set()
    for path in map(Path, files):
        if path.resolve() in seen:
            raise MomentseekError(f"{path}: is given twice, so everything in it would count twice; name each file once")
        seen.add(path.resolve())
    named = dict(zip(short_labels(files), files, strict=True))
    if plots:
        check_folder(plots)
    with options.new_folders(plots):
        options.check_targets(inputs, [given["report"], *figures], force)
        finish(build_statistics(named, **given), as_json)


@click.command()
@click.argument("annotations", metavar="ANNOTATIONS...", nargs=-1, required=True)
@click.option(
    "--preset",
    type=click.Choice(["charades-cd", "activitynet-cd", "paper"]),
    required=True,
    help="Preset to start from; the options below change single settings.",
)
@click.option("--out", "folder", required=True, metavar="DIR", help="Folder for the four files.")
@click.option("--bandwidth", metavar="H", help="Bandwidth of the density, as a share of the video's length; or scott.")
@click.option("--share", type=FRACTION, help="Share of the pairs that count as rare: those with the lowest density.")
@click.option(
    "--ties",
    type=click.Choice(["ood", "train"]),
    help="Split for a video with exactly half of its pairs rare.",
)
@click.option(
    "--long-moments",
    metavar="SHARE",
    help="Keep videos with a moment of this share of their length (0.5 or '>=0.5', or '>0.5') out of test-ood; or off.",
)
@click.option("--swap/--no-swap", default=None, help="Swap the times of moments that end before they start.")
@click.option("--clip/--no-clip", default=None, help="Clip times to the video before measuring densities.")
@click.option("--val-share", type=FRACTION, help="Share of all videos in val.")
@click.option("--iid-share", type=FRACTION, help="Share of all videos in test-iid.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed for drawing val and test-iid. Default: 0.")
@click.option("--durations", metavar="FILE", help="Read the videos' durations from FILE instead of the annotations.")
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="FILE",
    help="Compare with a published split: a file such as …test_ood.json, or test_ood=FILE; repeatable.",
)
@click.option("--report", metavar="FILE", help="Write every video's split and the reason, as JSON Lines.")
@click.option(
    "--plots", metavar="DIR", help="Also draw the locations of each split's moments, and its verbs, into DIR."
)
@options.force
@options.as_json
def resplit(
    annotations: tuple[str, ...],
    preset: str,
    folder: str,
    durations: str | None,
    references: tuple[str, ...],
    report: str | None,
    plots: str | None,
    force: bool,
    as_json: bool,
    **changes: Any,
) -> None:
    """Split ANNOTATIONS (all files of a dataset) into train, val, test-iid and test-ood.

    Videos whose moments mostly lie where the dataset has few moments form test-ood. The presets charades-cd and
    activitynet-cd reproduce the published test-ood sets exactly; --seed determines the random choice of val and
    test-iid.

    \b
    Charades-CD from Charades-STA:
      momentseek data resplit charades_sta_train.txt charades_sta_test.txt --preset charades-cd \\
        --durations decoded_durations.json --out charades-cd
    ActivityNet-CD, checked against the published file:
      momentseek data resplit train.json val_1.json val_2.json --preset activitynet-cd --out activitynet-cd \\
        --reference anet_test_ood.json --report decisions.jsonl

    The output is train.json, val.json, test_iid.json and test_ood.json; with the preset charades-cd in Charades-CD's
    format.
    """
    recipe = change_recipe(RECIPES[preset], **changes)
    published = [split_of_file(text) for text in references]
    if plots:
        check_folder(plots)
    figures = [str(Path(plots) / name) for name in FIGURE_FILES] if plots else []
    targets = [str(Path(folder) / f"{name}.json") for name in SPLIT_NAMES]
    with options.new_folders(folder, plots):
        inputs = [*annotations, *(path for _, path in published), durations]
        options.check_targets(inputs, [*targets, report, *figures], force)
        built = build_resplit(
            annotations,
            folder,
            preset,
            recipe,
            durations=durations,
            references=published,
            report=report,
            plots=plots,
        )
        finish(built, as_json)
