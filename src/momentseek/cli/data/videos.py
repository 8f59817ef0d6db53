"""Commands that find videos for queries: ``momentseek data massive`` and ``related``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from momentseek.benchmarks.datasets.annotation.label_studio import page_beside
from momentseek.benchmarks.datasets.massive import MassiveSettings
from momentseek.benchmarks.datasets.massive_figures import MASSIVE_FIGURES
from momentseek.benchmarks.datasets.massive_report import build_massive_dataset
from momentseek.benchmarks.datasets.sentences import build_related
from momentseek.cli import options
from momentseek.cli.data import finish, refuse_without, vector_file
from momentseek.cli.progress import progress_bars
from momentseek.cluster.tasks import texts_on
from momentseek.core.figures import check_folder

COUNT = click.IntRange(min=0)
SIMILARITY = options.Number(-1, 1)
SETTINGS = tuple(field.name for field in fields(MassiveSettings))


@click.command()
@click.argument("annotations", metavar="ANNOTATIONS")
@click.option("--out", required=True, metavar="FILE", help="Write the pools here, in MVMR's format.")
@click.option(
    "--pool",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    metavar="N",
    help="Videos to search for each query.",
)
@click.option(
    "--positives",
    type=COUNT,
    default=4,
    show_default=True,
    metavar="K",
    help="Videos that also answer a query, at most.",
)
@click.option(
    "--text-positive",
    type=SIMILARITY,
    default=0.9,
    show_default=True,
    metavar="T",
    help="A video with a sentence at least this similar answers the query.",
)
@click.option(
    "--text-negative",
    type=SIMILARITY,
    default=0.5,
    show_default=True,
    metavar="T",
    help="A video without any sentence this similar is a negative.",
)
@click.option(
    "--candidates",
    type=COUNT,
    default=20,
    show_default=True,
    metavar="C",
    help="Similar videos from which positives are drawn, at most.",
)
@click.option("--seed", type=COUNT, default=0, show_default=True, metavar="S", help="Another seed draws other pools.")
@click.option(
    "--encoder",
    default="minilm",
    show_default=True,
    metavar="NAME",
    help="Text encoder, file:VECTORS or simcse:FOLDER.",
)
@click.option(
    "--features", metavar="FILE", help="Visual scores of (query, video), .npz or .jsonl, as a further filter."
)
@click.option(
    "--frames",
    metavar="FILE",
    help="CLIP's vectors of each video's frames (HDF5), to filter by EMScore, with --clip.",
)
@click.option("--clip", metavar="FOLDER", help="The Hugging Face folder of the CLIP that --frames were made with.")
@click.option("--keep-undistracted", is_flag=True, help="Keep queries whose pool has only videos that answer them.")
@click.option("--reference", metavar="FILE", help="A published MVMR file of the same dataset, to compare with.")
@click.option(
    "--label-studio",
    metavar="FILE",
    help="Write tasks (and the labelling page, .xml) for people to check the pools of 100 queries.",
)
@click.option(
    "--video-url", default="{video}", metavar="URL", help="Where annotators find a video; {video} stands for its name."
)
@options.videos
@options.invalid
@click.option("--report", metavar="FILE", help="Write every query's decision, as JSON Lines.")
@click.option("--plots", metavar="DIR", help="Draw the scores that decide, as PNG and SVG.")
@click.option("--target", metavar="TEXT", help="With --plots: the query that the map of similarities compares with.")
@click.option(
    "--judged-pairs",
    metavar="FILE",
    help="With --plots: pairs of sentences scored by people (CSV).",
)
@options.force
@options.on_cluster
@options.as_json
def massive(annotations: str, out: str, force: bool, on: str | None, as_json: bool, **given: Any) -> None:
    """Give every query a pool of videos: its own, others that also answer it, and reliable negatives.

    A video answers a query if the similarity of one of its sentences is at least --text-positive; it is a negative if
    all are below --text-negative. Queries whose pool cannot be filled, or holds no negative, are left out.

    \b
    Charades-STA as in MVMR, and how far the published file agrees:
      momentseek data massive charades_sta_test.txt --videos durations.json --out mvmr.json \\
        --reference charades_test_mvmr.json
    TACoS has few videos:
      momentseek data massive tacos_test.json --pool 5 --out tacos_mvmr.json
    SimCSE and EMScore, as in the paper, from folders of Hugging Face models:
      momentseek data massive charades_sta_test.txt --encoder simcse:sup-simcse-roberta-large \\
        --frames clip_b32.h5 --clip clip-vit-base-patch32 --out mvmr.json
    With visual scores, and figures of both kinds of scores:
      momentseek data massive charades_sta_test.txt --videos durations.json --features emscore.npz --out mvmr.json \\
        --plots figures --target "person turn a light on."
    """
    settings = MassiveSettings(**{name: given.pop(name) for name in SETTINGS})
    tasks = given["label_studio"]
    files = [given[name] for name in ("features", "frames", "reference", "videos")]
    inputs = [annotations, vector_file(given["encoder"]), *files]
    page = page_beside(tasks) if tasks else None
    plots = given["plots"]
    if plots:
        check_folder(plots)
    else:
        refuse_without("without --plots", target="--target", judged_pairs="--judged-pairs")
    figures = [str(Path(plots) / f"{n}.{kind}") for n in MASSIVE_FIGURES for kind in ("png", "svg")] if plots else []
    with options.new_folders(plots):
        options.check_targets([*inputs, given["judged_pairs"]], [out, given["report"], tasks, page, *figures], force)
        spread = texts_on(on, given["encoder"]) if on else None
        built = build_massive_dataset(annotations, out, settings, **given, progress=progress_bars, spread=spread)
        finish(built, as_json)


@click.command()
@click.argument("truth", metavar="TRUTH")
@click.option("--out", required=True, metavar="FILE", help="Write {query: [videos]} here, as JSON.")
@click.option(
    "--threshold",
    type=SIMILARITY,
    default=0.9,
    show_default=True,
    metavar="T",
    help="A video with a sentence at least this similar answers the query.",
)
@click.option(
    "--encoder",
    default="minilm",
    show_default=True,
    metavar="NAME",
    help="Text encoder, file:VECTORS or simcse:FOLDER.",
)
@options.force
@options.as_json
def related(truth: str, out: str, threshold: float, encoder: str, force: bool, as_json: bool) -> None:
    """Find, for every query of a training set, the other videos that answer it too.

    A video does if the similarity of one of its sentences to the query is at least --threshold (MVMR, eq. 1). If a data
    folder names the file (data.toml: `related = "related.json"` under the split), these videos are not used as
    negatives in training: CroCs' first stage leaves them out, and its second never draws them.

    \b
    Charades-STA's training set, before training CroCs on it:
      momentseek data related charades_sta_train.txt --out charades/related.json
    Vectors of another encoder, and a stricter threshold:
      momentseek data related train.json --encoder file:vectors.npz --threshold 0.95 --out related.json
    """
    options.check_targets([truth, vector_file(encoder)], [out], force)
    finish(build_related(truth, out, threshold=threshold, encoder=encoder, progress=progress_bars), as_json)
