"""``momentseek search``: show ranked moments, write them to files, cut them into clips, or open them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from momentseek.api.library import Library
from momentseek.cli import options, results
from momentseek.cluster.ray_process import shards_on
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.moment import Moment
from momentseek.library.location import library_folder
from momentseek.search.export import render
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.hit import Results
from momentseek.search.localise.localiser import DEFAULT_LOCALISER
from momentseek.search.options import SearchOptions

F = TypeVar("F", bound=Callable[..., Any])
CLOCK = r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d+)?)"
SPAN = re.compile(rf"(?P<start>{CLOCK})(?:[-–](?P<end>{CLOCK}))?")
POINT_SECONDS = 0.001
"""Length of a moment given by a single time: shorter than any clip, so it selects one clip."""


def _file_option(kind: str, what: str) -> Callable[[F], F]:
    return click.option(f"--{kind}", kind, type=click.Path(), metavar="FILE", help=what)


class SearchCommand(click.Command):
    """A command that does not mistake a query such as ``-kitchen`` for the option ``-k itchen``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; refuse a word that only looks like an option, and say what to write instead."""
        short = {name for p in self.params for name in p.opts if not name.startswith("--")}
        for arg in args[: args.index("--")] if "--" in args else args:
            if arg.startswith("-") and not arg.startswith("--") and len(arg) > 1 and not _is_short_option(arg, short):
                raise click.UsageError(
                    f"{arg!r} looks like an option; if it is part of the query, write -- before the query: "
                    "momentseek search -- 'dog -leash'",
                    ctx,
                )
        return super().parse_args(ctx, args)


def _is_short_option(arg: str, short: set[str]) -> bool:
    """Whether an argument is a short option, alone or with its value: ``-k``, ``-k5``, ``-l/films``.

    >>> [_is_short_option(a, {"-k", "-l"}) for a in ("-k", "-k5", "-l./films", "-kitchen", "-lake", "-dog", "-5")]
    [True, True, True, False, False, False, False]
    """
    value = arg[2:]
    return arg[:2] in short and (not value or value.isdigit() or value[0] in "./~=\\" or value[1:2] == ":")


@click.command(cls=SearchCommand)
@click.argument("query", nargs=-1, metavar="QUERY...")
@click.option(
    "-k", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N", help="Return at most N moments."
)
@options.library
@options.on_shards
@click.option(
    "--like", metavar="VIDEO@TIME", help="Find moments that look like this one: trip.mp4@1:20, or @1:20-1:28."
)
@click.option("--image", type=click.Path(), metavar="FILE", help="Find moments that look like the picture FILE.")
@click.option(
    "--group",
    type=click.Choice(["clip", "video"]),
    default="clip",
    show_default=True,
    help="Return one hit per clip or per video.",
)
@click.option(
    "--localiser",
    metavar="NAME",
    help="Method that finds a moment's start and end (docs/architecture.md). "
    f"Default: {DEFAULT_LOCALISER}, or the trained model's own.",
)
@click.option(
    "--streams", metavar="NAMES", help="Search only these streams, comma-separated: vision,speech,text,described,name."
)
@click.option("--fusion", metavar="NAME", help="How to merge the rankings of the streams: rrf (default) or scores.")
@click.option(
    "--rerank",
    type=click.Path(),
    metavar="FOLDER",
    help="Re-rank the best videos with an exported model (tan2d, mdd, ctrl, …; docs/encoders.md).",
)
@click.option(
    "--rerank-videos", type=click.IntRange(1, 1000), metavar="N", help="Number of videos to re-rank. Default: 20."
)
@click.option("--all", "show_all", is_flag=True, help="Also show weak results.")
@click.option(
    "--explain", is_flag=True, help="Show each stream's rank and score, and the score curve with the moment marked."
)
@options.as_json
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@_file_option("html", "Write the results as one self-contained HTML page.")
@_file_option("edl", "Write an edit decision list (CMX 3600).")
@_file_option("fcpxml", "Write a Final Cut Pro timeline.")
@_file_option("srt", "Write subtitles that mark the moments.")
@_file_option("run", "Write a run for `momentseek evaluate`.")
@click.option("--cut", type=click.Path(), metavar="DIR", help="Cut each moment into its own video file in DIR.")
@click.option(
    "--exact/--fast", default=True, help="Cut at the exact frame (re-encodes), or at key frames.  [default: exact]"
)
@click.option(
    "--pad",
    type=click.FloatRange(0, 600),
    default=0.0,
    metavar="SECONDS",
    help="Extend moments by SECONDS on both sides in clips, EDL and FCPXML.",
)
@click.option(
    "--images/--no-images", default=None, help="Show thumbnails in the terminal.  [default: if it supports images]"
)
@click.option("--open", "open_first", is_flag=True, help="Open the best moment in a player.")
@options.force
def search(
    query: tuple[str, ...],
    library: str | None,
    on: str | None,
    as_json: bool,
    as_csv: bool,
    cut: str | None,
    exact: bool,
    pad: float,
    images: bool | None,
    open_first: bool,
    force: bool,
    **given: Any,
) -> None:
    """Find moments in the library.

    QUERY is plain text. It may contain '"exact spoken words"', said:WORD, name:WORD, in:GLOB, before:DATE, after:DATE,
    -avoid and 2:weight (docs/searching.md). Quote it for the shell. If it begins with a minus, write -- before it.

    \b
      momentseek search 'a dog runs on the beach'
      momentseek search 'kitchen "where is the salt" in:holiday* after:2023'
      momentseek search -k 5 'a red car -night' --cut clips --pad 1
      momentseek search 'goal' --edl goals.edl --html goals.html
      momentseek search 'she opens the letter' --rerank films-tan2d
      momentseek search --like trip.mp4@1:20-1:28
      momentseek search --image beach.jpg 'in:holiday* after:2023'
      momentseek search 'a dog' --library /mnt/library --on auto
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other.")
    _check_examples(**given)
    files = {kind: given.pop(kind) for kind in results.FILE_KINDS}
    options.check_targets([given["image"]], files.values(), force)
    clip_folder = results.check_clip_folder(cut)
    folder = library_folder(library)
    with shards_on(on, folder) as client, Library.open(folder, create=False, shard_client=client) as opened:
        found = _search(opened, " ".join(query), **given)
        if as_json or as_csv:
            click.echo(render(found, str(found.query), "json" if as_json else "csv").text, nl=False)
        else:
            results.show_results(opened, found, given["explain"], images)
        results.write_files(opened, found, files, pad)
        if clip_folder is not None:
            results.cut_hits(opened, found, clip_folder, exact=exact, pad=pad, force=force)
        if open_first:
            results.open_first(found)


def _check_examples(
    *, like: str | None, image: str | None, rerank: str | None, rerank_videos: int | None, **given: Any
) -> None:
    """Refuse options that make no sense together."""
    if rerank_videos is not None and rerank is None:
        raise click.UsageError("--rerank-videos is for --rerank FOLDER.")
    if like is not None and image is not None:
        raise click.UsageError("--like and --image exclude each other.")
    for name, value in {"rerank": rerank, **given}.items():
        if name in ("streams", "fusion", "rerank", "explain") and value and (like is not None or image is not None):
            raise click.UsageError(f"--{name} is for searches by words.")


def _search(
    library: Library,
    query: str,
    *,
    k: int,
    like: str | None,
    image: str | None,
    group: Any,
    localiser: str | None,
    show_all: bool,
    streams: str | None,
    fusion: str | None,
    rerank_videos: int | None,
    **given: Any,
) -> Results:
    """Search by words, by an example moment or by a picture."""
    if like is not None:
        place = parse_place(like)
        return library.more_like(place, k, where=query, localiser=localiser, group=group, all=show_all)
    if image is not None:
        return library.search_picture(image, k, where=query, localiser=localiser, group=group, all=show_all)
    chosen: Any = None if streams is None else tuple(name.strip() for name in streams.split(","))
    return library.search(
        query,
        k,
        localiser=localiser,
        group=group,
        streams=chosen,
        all=show_all,
        fusion=fusion or DEFAULT_FUSION,
        rerank_videos=rerank_videos or SearchOptions.rerank_videos,
        **given,
    )


def parse_place(text: str) -> Moment:
    """Parse ``VIDEO@TIME`` or ``VIDEO@START-END`` as a moment; times are seconds, or minutes and seconds.

    >>> parse_place("trip.mp4@1:20"), parse_place("a@b.mp4@75.5-1:20")
    (Moment(video='trip.mp4', start=80.0, end=80.001), Moment(video='a@b.mp4', start=75.5, end=80.0))
    """
    video, _, times = text.rpartition("@")
    found = SPAN.fullmatch(times.strip())
    if not video or found is None:
        raise MomentseekError(f"{text!r} names no moment; write VIDEO@TIME or VIDEO@START-END, as trip.mp4@1:20-1:28")
    start = _seconds(found["start"])
    end = _seconds(found["end"]) if found["end"] else start + POINT_SECONDS
    return Moment(video, start, end)


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds
