"""``momentseek data massive``: make every query search many videos."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from momentseek.benchmarks.datasets.common import as_json_lines, tally
from momentseek.benchmarks.datasets.massive import (
    MassiveSettings,
    as_truth,
    build_massive,
    read_visual_scores,
    require_videos,
)
from momentseek.benchmarks.datasets.massive_report import (
    LABELLING_CONFIG,
    as_text,
    build_check_tasks,
    compare_draws,
    compare_pools,
    comparison_text,
    summary,
    why_differ,
)
from momentseek.benchmarks.datasets.sentences import encoder_similarity, prepare_source
from momentseek.cli import options
from momentseek.cli.clustering import texts_on
from momentseek.cli.options import Number
from momentseek.cli.progress import progress_bars
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS, read_corpus, read_truth, write_all
from momentseek.measuring.formats.writers import dump
from momentseek.recognition.encoders.registry import text_encoder

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from momentseek.core.moments.table import Policy
    from momentseek.recognition.encoders.text_cache import EncodeChunks


COUNT = click.IntRange(min=0)
SIMILARITY = Number(-1, 1)


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
@click.option("--encoder", default="minilm", show_default=True, metavar="NAME", help="Text encoder, or file:VECTORS.")
@click.option(
    "--features", metavar="FILE", help="Visual scores of (query, video), .npz or .jsonl, as a further filter."
)
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
@options.force
@options.on_cluster
@options.as_json
def command(
    annotations: str,
    out: str,
    pool: int,
    positives: int,
    text_positive: float,
    text_negative: float,
    candidates: int,
    seed: int,
    encoder: str,
    features: str | None,
    keep_undistracted: bool,
    reference: str | None,
    label_studio: str | None,
    video_url: str,
    videos: str | None,
    invalid: str | None,
    report: str | None,
    force: bool,
    on: str | None,
    as_json: bool,
) -> None:
    """Give every query a pool of videos: its own, others that also answer it, and reliable negatives.

    A video answers a query if the similarity of one of its sentences is at least --text-positive; it is a negative if
    all are below --text-negative. Queries whose pool cannot be filled, or holds no negative, are left out.

    \b
    Charades-STA as in MVMR, and how far the published file agrees:
      momentseek data massive charades_sta_test.txt --videos durations.json --out mvmr.json \\
        --reference charades_test_mvmr.json
    TACoS has few videos:
      momentseek data massive tacos_test.json --pool 5 --out tacos_mvmr.json
    """

    page = str(Path(label_studio.removesuffix(".gz")).with_suffix(".xml")) if label_studio else None
    vectors = encoder.removeprefix("file:") if encoder.startswith("file:") else None
    options.check_targets([annotations, vectors, features, reference, videos], [out, report, label_studio, page], force)
    settings = MassiveSettings(pool, positives, text_positive, text_negative, candidates, seed, keep_undistracted)
    truth = read_truth(
        annotations, corpus=read_corpus(videos) if videos else None, invalid=cast("Policy", invalid or "error")
    )
    data = prepare_source(truth)
    require_videos(data, settings)  # before minutes of encoding
    published = read_truth(reference, format="mvmr", invalid="keep") if reference else None
    visual = read_visual_scores(features) if features else None
    text_model = text_encoder(encoder)
    with progress_bars(f"encoding with {text_model.name}") as progress, _spread(on, encoder) as spread:
        similarity = encoder_similarity(text_model, data.texts, progress=progress, spread=spread)
    result = build_massive(data, similarity, settings, visual)
    if not result.pools:
        why = "; ".join(f"{n:,}: {reason}" for reason, n in tally(result.decisions)["dropped"].items())
        raise MomentseekError(
            f"{annotations}: no query can be kept ({why}); choose other thresholds or a smaller --pool"
        )
    found: dict[str, Any] = {"out": out, "encoder": encoder, **summary(result)}
    texts = [as_text(found, encoder)]
    for finding in truth.findings:
        options.say(f"note: {truth.source}: {finding}")
    if visual is None:
        options.say("note: no visual scores (--features), so sentences alone decide; MVMR also filtered by EMScore")
    if published is not None:
        from dataclasses import replace

        beside = compare_pools(result, published, similarity)
        chance = compare_draws(result, build_massive(data, similarity, replace(settings, seed=seed + 1), visual))
        found["reference"] = {
            key: None if value != value else value  # JSON has no NaN
            for key, value in {**asdict(beside), "seeds_positives": chance[0], "seeds_negatives": chance[1]}.items()
        }
        why = why_differ(encoder, features)
        found["reference"]["why"] = why
        texts += ["", comparison_text(beside, chance, why, str(reference))]
    files: dict[str | PathLike[str], bytes] = {Path(out): FORMATS["mvmr"].to_bytes(as_truth(result))}
    if report:
        files[Path(report)] = as_json_lines(result.decisions)
    if label_studio and page:
        files[Path(label_studio)] = dump(build_check_tasks(result, url=video_url))
        files[Path(page)] = LABELLING_CONFIG.encode()
    write_all(files)
    if as_json:
        import json

        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    click.echo("\n".join(texts))
    for path in files:
        options.say(f"wrote {path}")


def _spread(on: str | None, encoder: str) -> AbstractContextManager[EncodeChunks | None]:
    """A way to encode sentences on a cluster, if one is named."""
    from contextlib import nullcontext

    if on is None:
        return nullcontext()

    return texts_on(on, encoder)
