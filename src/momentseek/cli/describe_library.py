"""``momentseek describe --model``: describe the scenes of a library's videos, or one moment."""

from __future__ import annotations

import re

import click

from momentseek.cli import options
from momentseek.cli.ingesting import ingest_more
from momentseek.errors import MomentseekError


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
    """Describe what no model has described yet, and say how much that was."""
    from momentseek.library.paths import clock_text
    from momentseek.tables import count

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
    """Print what a model says of one moment; the library keeps nothing of it."""
    from momentseek.library import library_folder
    from momentseek.library.captioners import open_scene_captioner
    from momentseek.library.opening import open_store
    from momentseek.library.scenes import SceneSource

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
    """Start and end in seconds, as ``12-18.5`` or ``1:02-1:10``.

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
