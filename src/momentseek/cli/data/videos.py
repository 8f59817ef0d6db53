"""``momentseek data massive`` and ``related``: find the videos that queries search, or that also answer them."""

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
@click.option("--out", required=True, metavar="FILE", help="Write the pools to FILE, in MVMR's format.")
@click.option(
    "--pool",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    metavar="N",
    help="Number of videos in each query's pool.",
)
@click.option(
    "--positives",
    type=COUNT,
    default=4,
    show_default=True,
    metavar="K",
    help="Maximum number of other videos in a pool that answer the query.",
)
@click.option(
    "--text-positive",
    type=SIMILARITY,
    default=0.9,
    show_default=True,
    metavar="T",
    help="A video answers the query if one of its sentences is at least this similar.",
)
@click.option(
    "--text-negative",
    type=SIMILARITY,
    default=0.5,
    show_default=True,
    metavar="T",
    help="A video is a negative if all its sentences are less similar than this.",
)
@click.option(
    "--candidates",
    type=COUNT,
    default=20,
    show_default=True,
    metavar="C",
    help="Draw positives from at most this many similar videos.",
)
@click.option("--seed", type=COUNT, default=0, show_default=True, metavar="S", help="Random seed.")
@click.option(
    "--encoder",
    default="minilm",
    show_default=True,
    metavar="NAME",
    help="Text encoder, file:VECTORS or simcse:FOLDER.",
)
@click.option("--features", metavar="FILE", help="Also filter by visual scores of (query, video), in .npz or .jsonl.")
@click.option(
    "--frames",
    metavar="FILE",
    help="With --clip: filter by EMScore, from CLIP's vectors of each video's frames (HDF5).",
)
@click.option("--clip", metavar="FOLDER", help="Hugging Face folder of the CLIP model that made --frames.")
@click.option("--keep-undistracted", is_flag=True, help="Keep queries whose pool has no negatives.")
@click.option("--reference", metavar="FILE", help="Compare with a published MVMR file of the same dataset.")
@click.option(
    "--label-studio",
    metavar="FILE",
    help="Write Label Studio tasks (and the labelling page, .xml) to check the pools of 100 queries by hand.",
)
@click.option(
    "--video-url",
    default="{video}",
    metavar="URL",
    help="Address of a video for annotators; {video} stands for its name.",
)
@options.videos
@options.invalid
@click.option("--report", metavar="FILE", help="Write the decision on every query, as JSON Lines.")
@click.option("--plots", metavar="DIR", help="Draw the scores behind the pools into DIR, as PNG and SVG.")
@click.option("--target", metavar="TEXT", help="With --plots: query of the similarity map.")
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
    Charades-STA as in MVMR, compared with the published file:
      momentseek data massive charades_sta_test.txt --videos durations.json --out mvmr.json \\
        --reference charades_test_mvmr.json
    A smaller pool for TACoS, which has few videos:
      momentseek data massive tacos_test.json --pool 5 --out tacos_mvmr.json
    SimCSE and EMScore, as in the paper, from folders of Hugging Face models:
      momentseek data massive charades_sta_test.txt --encoder simcse:sup-simcse-roberta-large \\
        --frames clip_b32.h5 --clip clip-vit-base-patch32 --out mvmr.json
    With visual scores, and figures of textual and visual scores:
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
@click.option("--out", required=True, metavar="FILE", help="Write {query: [videos]} to FILE, as JSON.")
@click.option(
    "--threshold",
    type=SIMILARITY,
    default=0.9,
    show_default=True,
    metavar="T",
    help="A video answers the query if one of its sentences is at least this similar.",
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
    """Find other videos that also answer each query of a training set.

    A video answers a query if one of its sentences is at least --threshold similar to it (MVMR, eq. 1). If a data
    folder names the output (data.toml: `related = "related.json"` under the split), training does not use these videos
    as negatives: CroCs' first stage leaves them out, and its second never samples them.

    \b
    Charades-STA's training set, before training CroCs on it:
      momentseek data related charades_sta_train.txt --out charades/related.json
    Vectors of another encoder, and a stricter threshold:
      momentseek data related train.json --encoder file:vectors.npz --threshold 0.95 --out related.json
    """
    options.check_targets([truth, vector_file(encoder)], [out], force)
    finish(build_related(truth, out, threshold=threshold, encoder=encoder, progress=progress_bars), as_json)
