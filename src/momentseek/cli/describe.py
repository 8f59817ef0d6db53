"""``momentseek describe``: caption the moments of a dataset split, or the scenes of a library."""

from __future__ import annotations

import re
from typing import Any

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.ingesting import ingest_more
from momentseek.cli.options import Number
from momentseek.cli.progress import StageLine
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.location import library_folder
from momentseek.library.paths import clock_text
from momentseek.library.tracks.captions import SceneSource, open_scene_captioner
from momentseek.measuring.formats import write_captions
from momentseek.measuring.formats.files import writer_for
from momentseek.models import require_training


@click.command()
@click.argument("checkpoint", metavar="[CHECKPOINT]", required=False)
@click.option("--data", metavar="DIR", help="Data folder (contains a data.toml).")
@click.option("--split", metavar="NAME", help="Split whose moments to describe.")
@click.option("--out", "-o", metavar="FILE", help="Write the captions to FILE: TVC's .jsonl, or the format of --to.")
@click.option("--to", metavar="FORMAT", help="Format of FILE. Default: tvc for .jsonl.")
@click.option(
    "--beam",
    type=click.IntRange(1, 64),
    help="Beam size; 1 is greedy. Default: the model's setting, else greedy.",
)
@click.option(
    "--length-penalty",
    type=Number(0, 10),
    help="Length penalty of the beam search; higher values favour longer captions.",
)
@click.option("--device", default="auto", show_default=True, help="Device to compute on: cpu, cuda, ….")
@click.option(
    "--model", metavar="FOLDER|URL#NAME", help="Describe a library with an exported captioner or an endpoint."
)
@options.library
@click.option(
    "--video", "videos", multiple=True, metavar="VIDEO", help="Describe only this video of the library; repeatable."
)
@click.option("--at", metavar="START-END", help="Describe this moment of one video and print the caption.")
@click.option("--again", is_flag=True, help="Also describe videos that failed before; describe named videos again.")
@click.option("--requests", type=click.IntRange(1), metavar="N", help="Send at most N requests to an endpoint.")
@options.wait
@options.force
@options.as_json
@options.quiet
def command(
    model: str | None,
    library: str | None,
    videos: tuple[str, ...],
    at: str | None,
    again: bool,
    requests: int | None,
    wait: float,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Caption the moments of a dataset split, or the scenes of a library.

    To caption a split, give CHECKPOINT: a trained captioner, as a file or the folder of a training
    run. To caption a library, give --model. The library stores a caption for each scene; searches
    find the captions and mark them as written by a model. You can stop at any time: the next run
    continues from there.

    \b
    The scenes of a library, with an exported captioner or any OpenAI-compatible vision endpoint:
      momentseek describe --model mmt-captioner
      momentseek describe --model http://localhost:8000/v1#some-model --video 'talks/*' --requests 500
    Search the captions; caption one moment, without storing it:
      momentseek search 'described:"a dog jumps"'
      momentseek describe --model mmt-captioner --video talks/one.mp4 --at 1:02-1:10
    Train a captioner, caption a split, and evaluate the captions:
      momentseek train mmt --data simulation --out runs/mmt
      momentseek describe runs/mmt --data simulation --split tvc_test --out captions.jsonl
      momentseek evaluate captions.jsonl --truth simulation/tvc_test_release.jsonl --protocol tvc
    With a beam of three and a low length penalty, which favours short captions:
      momentseek describe runs/mmt --data simulation --split tvc_test --beam 3 --length-penalty 0.5 --out beam.jsonl

    Without --out the captions are printed, one line per moment; --json prints objects with video, start and end.
    """
    if model is None:
        if given["checkpoint"] is None or given["data"] is None or given["split"] is None:
            raise MomentseekError(
                "give a CHECKPOINT with --data and --split, or describe a library with --model FOLDER or URL#NAME"
            )
        describe_data(**given, as_json=as_json, quiet=quiet)
        return
    if any(given[name] is not None for name in ("checkpoint", "data", "split", "out")):
        raise MomentseekError("--model describes a library; leave out CHECKPOINT, --data, --split and --out")
    if at is not None:
        describe_moment(model, library, videos, at, requests=requests, as_json=as_json)
        return
    describe_library(model, library, videos, again=again, requests=requests, wait=wait, quiet=quiet, as_json=as_json)


def describe_data(
    checkpoint: str,
    data: str,
    split: str,
    out: str | None,
    to: str | None,
    *,
    force: bool,
    as_json: bool,
    quiet: bool,
    **how: Any,
) -> None:
    """Describe the moments of a split, and write or print the captions."""
    require_training()
    from momentseek.models.training.captions import describe_split

    if to and out is None:
        raise MomentseekError("--to is the format of a file; name it (--out FILE)")
    writer = writer_for(to, out, "captions") if out is not None else None
    options.check_targets([checkpoint], [out] if out is not None else [], force)
    found = describe_split(checkpoint, data, split, **how, progress=StageLine(quiet=quiet))
    if out is not None and writer is not None:
        write_captions(found.captions, out, format=writer.name)
    rows, decoding = found.rows(), found.decoding
    if as_json:
        about = {"checkpoint": checkpoint, "model": found.model, "step": found.step, "split": split}
        searched = {"beam": decoding.beam, "length_penalty": decoding.length_penalty, "simulated": found.simulated}
        options.echo_json({**about, **searched, "captions": rows})
    elif out is None:
        for row in rows:
            click.echo(f"{row['video']} {row['start']:.2f}-{row['end']:.2f}\t{row['caption']}")
    else:
        how_searched = "greedy" if decoding.beam == 1 else f"beam of {decoding.beam}"
        options.say(f"wrote {out}: {found.model}, {how_searched}; {count(len(rows), 'moment')}")


def describe_library(
    model: str,
    library: str | None,
    videos: tuple[str, ...],
    *,
    again: bool,
    requests: int | None,
    wait: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Describe the videos that no model has described yet, and print a summary."""

    report = ingest_more(
        lambda opened, tell: opened.describe(model, videos, again=again, requests=requests, progress=tell),
        "describing",
        library=library,
        wait=wait,
        quiet=quiet,
        as_json=as_json,
        again=["describe", "--model", model, *(word for video in videos for word in ("--video", video))],
    )
    if not quiet:
        length = f" ({clock_text(report.described_seconds)} in {report.elapsed:,.0f} s)" if report.described else ""
        failed = f", {len(report.noted):,} could not be described" if report.noted else ""
        options.say(f"{count(report.described, 'video')} described{length}{failed}")


def describe_moment(
    model: str, library: str | None, videos: tuple[str, ...], at: str, *, requests: int | None, as_json: bool
) -> None:
    """Print a model's caption of one moment without storing it."""

    start, end = moment_times(at)
    if len(videos) != 1:
        raise MomentseekError("--at is a moment of one video; name it (--video NAME)")
    with open_store(library_folder(library), create=False) as opened:
        found = opened.matching(videos)
        if len(found) != 1:
            raise MomentseekError(f"{videos[0]!r} is {len(found):,} videos of the library; name one (momentseek list)")
        video = found[0]
        if start >= video.duration:
            raise MomentseekError(f"{video.name} ends at {video.duration:.1f} s, before {start:g} s; check --at")
        captioner = open_scene_captioner(model, opened, requests)
        source = SceneSource(opened.catalog, opened.paths, video)
        caption = captioner.describe_scene(source.scene(start, min(end, video.duration)))
    if as_json:
        row = {"video": video.name, "start": start, "end": end, "caption": caption, "described_by": captioner.name}
        options.echo_json(row)
    else:
        click.echo(caption)
        options.say(f"described by a model ({captioner.name})")


def moment_times(text: str) -> tuple[float, float]:
    """Parse ``12-18.5`` or ``1:02-1:10`` as start and end in seconds.

    >>> moment_times("12-18.5"), moment_times("1:02-1:10"), moment_times("0:12.0–0:18.5")
    ((12.0, 18.5), (62.0, 70.0), (12.0, 18.5))
    """
    one = r"\s*((?:\d+:){0,2}\d+(?:\.\d+)?)\s*"
    match = re.fullmatch(rf"{one}[-–]{one}", text)
    if match is None:
        raise MomentseekError(f"--at {text!r} is no moment; give start and end, as 12-18.5 or 1:02-1:10")
    start, end = (_seconds(part) for part in match.groups())
    if start >= end:
        raise MomentseekError(f"--at {text!r} ends before it starts; give start and end, as 12-18.5")
    return start, end


def _seconds(clock: str) -> float:
    total = 0.0
    for part in clock.split(":"):
        total = 60 * total + float(part)
    return total
