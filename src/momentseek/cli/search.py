"""``momentseek search``: ranked moments in the terminal, or written, cut and opened."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from momentseek.api.library import open_library
from momentseek.cli import options
from momentseek.cli import results as player
from momentseek.cli.clustering import shards_on
from momentseek.cli.results import check_clip_folder, cut_hits
from momentseek.cli.terminal import draw, draw_picture, supported_images
from momentseek.core.atomic import write_all
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.moment import Moment
from momentseek.library.encoders import load_ahead
from momentseek.library.location import library_folder
from momentseek.measuring.formats.native import write_runs
from momentseek.measuring.formats.registry import Writing
from momentseek.search.display import card, remarks, table
from momentseek.search.export import hits_to_run, render
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query

if TYPE_CHECKING:
    from pathlib import Path

    from momentseek.api.library import Library
    from momentseek.cluster.search.shard_client import ShardClient
    from momentseek.search.hit import Hit, Results


F = TypeVar("F", bound=Callable[..., Any])
TIMELINE_KINDS = ("edl", "fcpxml")
"""Files for an editor, who wants the padding as handles in them; so does SRT where it has the times of these."""
DEFAULT_COLUMNS = 120
"""Width of the table where there is no terminal to fit into."""


def _file_option(kind: str, what: str) -> Callable[[F], F]:
    return click.option(f"--{kind}", kind, type=click.Path(), metavar="FILE", help=what)


class _SearchCommand(click.Command):
    """A command that tells a query that begins with a minus from options: ``-kitchen`` is no ``-k itchen``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
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


@click.command(cls=_SearchCommand)
@click.argument("query", nargs=-1, metavar="QUERY...")
@click.option("-k", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most so many moments.")
@options.library
@options.on_shards
@click.option("--like", metavar="VIDEO@TIME", help="Moments that look like this one: trip.mp4@1:20, or @1:20-1:28.")
@click.option("--image", type=click.Path(), metavar="FILE", help="Moments that look like this picture.")
@click.option("--group", type=click.Choice(["clip", "video"]), default="clip", show_default=True, help="One per …")
@click.option(
    "--localiser",
    metavar="NAME",
    help="What finds start and end (docs/localising.md). Default: scenes, or a trained model's own.",
)
@click.option("--streams", metavar="NAMES", help="Some of vision,speech,text,described,name. Default: all.")
@click.option("--fusion", metavar="NAME", help="How streams become one ranking: rrf or scores. Default: rrf.")
@click.option(
    "--rerank",
    type=click.Path(),
    metavar="FOLDER",
    help="An exported model (tan2d, mdd, ctrl, …) that looks again at the best videos (docs/reranking.md).",
)
@click.option(
    "--rerank-videos",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="So many of them; each costs the model a look. Default: 20.",
)
@click.option("--all", "show_all", is_flag=True, help="Weak results too.")
@click.option("--explain", is_flag=True, help="Each stream's rank and score, and the curve with the span marked.")
@options.as_json
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@_file_option("html", "Write a page that shows the results, all in one file.")
@_file_option("edl", "Write an edit decision list (CMX 3600).")
@_file_option("fcpxml", "Write a Final Cut Pro timeline.")
@_file_option("srt", "Write subtitles that mark the moments.")
@_file_option("run", "Write a run for `momentseek evaluate`.")
@click.option("--cut", type=click.Path(), metavar="DIR", help="Cut each moment into a file of its own.")
@click.option(
    "--exact/--fast", default=True, help="Cut to the frame (encodes anew), or at key frames.  [default: exact]"
)
@click.option(
    "--pad",
    type=click.FloatRange(0, 600),
    default=0.0,
    metavar="SECONDS",
    help="More on each side, in cuts, EDL and FCPXML.",
)
@click.option("--images/--no-images", default=None, help="Pictures, if the terminal shows them.  [default: if it does]")
@click.option("--open", "open_first", is_flag=True, help="Open the best moment in a player.")
@options.force
def command(
    query: tuple[str, ...],
    k: int,
    library: str | None,
    on: str | None,
    like: str | None,
    image: str | None,
    group: str,
    localiser: str | None,
    streams: str | None,
    fusion: str | None,
    rerank: str | None,
    rerank_videos: int | None,
    show_all: bool,
    explain: bool,
    as_json: bool,
    as_csv: bool,
    cut: str | None,
    exact: bool,
    pad: float,
    images: bool | None,
    open_first: bool,
    force: bool,
    **files: str | None,
) -> None:
    """Find moments in the library.

    QUERY is plain text, with '"exact words said"', said:WORD, name:WORD, in:GLOB, before:DATE, after:DATE, -avoid and
    2:weight where you like (docs/searching.md). Quote it, so that the shell leaves it alone; where it begins with a
    minus, write -- before it.

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
    if rerank_videos is not None and rerank is None:
        raise click.UsageError("--rerank-videos is for --rerank FOLDER.")
    if like is not None and image is not None:
        raise click.UsageError("--like and --image exclude each other.")
    by_words = {"--streams": streams, "--fusion": fusion, "--rerank": rerank, "--explain": explain or None}
    for flag, value in by_words.items():
        if value is not None and (like is not None or image is not None):
            raise click.UsageError(f"{flag} is for searches by words.")
    options.check_targets([image], files.values(), force)
    clip_folder = check_clip_folder(cut)

    folder = library_folder(library)
    if on is None and like is None and image is None:
        _load_encoder(folder, " ".join(query))

    with _shards(on, folder) as fan_out, open_library(folder, create=False, fan_out=fan_out) as opened:
        chosen = cast("Any", tuple(s.strip() for s in streams.split(","))) if streams is not None else None
        results = _search_like(opened, like, image, " ".join(query), k, localiser, cast("Any", group), show_all)
        results = (
            results
            if results is not None
            else opened.search(
                " ".join(query),
                k,
                localiser=localiser,
                group=cast("Any", group),
                streams=chosen,
                explain=explain,
                all=show_all,
                fusion=fusion or DEFAULT_FUSION,
                rerank=rerank,
                rerank_videos=rerank_videos or SearchOptions.rerank_videos,
            )
        )
        if as_json or as_csv:
            click.echo(render(results, str(results.query), "json" if as_json else "csv").text, nl=False)
        else:
            _show_results(opened, results, explain, images)
        _write_files(opened, results, files, pad)
        if clip_folder is not None:
            cut_hits(opened, results, clip_folder, exact=exact, pad=pad, force=force)
        if open_first:
            _open_first(results)


def _load_encoder(folder: Path, query: str) -> None:
    """Begin to load what encodes a query that says what the picture shows, before all else is loaded."""

    with suppress(MomentseekError):  # a query that makes no sense is refused below
        if Query.parse(query).picture_parts:
            load_ahead(folder)


def _shards(on: str | None, folder: Path) -> AbstractContextManager[ShardClient | None]:
    """A way to ask the library's shards on a cluster, if one is named."""
    if on is None:
        return nullcontext()

    return shards_on(on, folder)


def _search_like(
    library: Library,
    like: str | None,
    image: str | None,
    where: str,
    k: int,
    localiser: str | None,
    group: Any,
    show_all: bool,
) -> Results | None:
    """What looks like an example; None if none was given."""
    if like is not None:
        return library.more_like(parse_place(like), k, where=where, localiser=localiser, group=group, all=show_all)
    if image is not None:
        return library.search_picture(image, k, where=where, localiser=localiser, group=group, all=show_all)
    return None


def _show_results(library: Library, results: Results, explain: bool, images: bool | None) -> None:

    terminal = sys.stdout.isatty()
    columns, kind = DEFAULT_COLUMNS, None
    if terminal:
        import shutil

        columns = shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns
        kind = supported_images() if images is not False else None
    if images and kind is None:
        options.say("no pictures: this terminal does not say that it shows any (kitty, Ghostty, iTerm2, WezTerm do)")
    if results and kind is not None:
        for hit in results:
            try:
                draw(draw_picture(library.thumbnail(hit), kind) + "\n")
            except MomentseekError as e:  # a drive that is not connected is no reason to show nothing
                options.say(str(e))
            click.echo(card(hit, results.query, columns=columns, bold=True, explain=explain))
    elif results:
        click.echo(table(results, results.query, columns=columns, bold=terminal, explain=explain))
    remark = remarks(results.hidden, results.note or ("" if results or results.hidden else "nothing found"))
    if remark:
        options.say(remark)


def _write_files(library: Library, results: Results, files: dict[str, str | None], pad: float) -> None:
    """Write all the files that were asked for, or none of them."""
    wanted = {kind: path for kind, path in files.items() if path}
    if not wanted:
        return
    if not results:
        options.say("no moments, so no file was written")
        return

    content: dict[Any, bytes] = {}
    notes: list[str] = []
    for kind, path in wanted.items():
        if kind == "run":
            content[path] = _run_bytes(results)
            continue
        timeline = kind in TIMELINE_KINDS or (kind == "srt" and len({hit.path for hit in results}) > 1)
        hits = [_pad_hit(hit, pad) for hit in results] if timeline else results
        written = render(hits, str(results.query), kind, _thumbnails(library) if kind == "html" else None)
        content[path] = written.text.encode("utf-8", errors="replace")
        notes += [f"{path}: {note}" for note in written.notes]
    write_all(content)
    for line in (*notes, *(f"wrote {path}" for path in content)):
        options.say(line)


def _run_bytes(results: Results) -> bytes:
    """The hits as a run of one query, whose id is its text."""

    return write_runs((hits_to_run(str(results.query), str(results.query), results),), Writing(None))


def _thumbnails(library: Library) -> Any:
    """A function that gives the page its pictures; one that cannot be made is left out, and said so."""

    def thumbnail(hit: Hit) -> bytes | None:
        try:
            return library.thumbnail(hit)
        except MomentseekError as e:
            options.say(str(e))
            return None

    return thumbnail


def _pad_hit(hit: Hit, pad: float) -> Hit:
    return replace(hit, start=max(0.0, hit.start - pad), end=min(hit.duration, hit.end + pad))


def _open_first(results: Sequence[Hit]) -> None:
    """Open the best hit in a player, at its start if the player can."""
    if not results:
        options.say("no moment to open")
        return

    hit = results[0]
    if not hit.path.is_file():
        raise MomentseekError(f"{hit.path}: is not there; connect the drive it lies on")
    arguments, starts_there = player.player_command(hit.path, hit.start)
    try:
        player.launch_player(arguments)
    except FileNotFoundError:
        raise MomentseekError("no player was found; install mpv or VLC") from None
    except OSError as e:
        raise MomentseekError(
            f"nothing was opened: {e.strerror or e}; install mpv or VLC, or open {hit.path} yourself; "
            f"the moment is at {hit.start:.1f} s"
        ) from None
    if starts_there:
        options.say(f"opened at {hit.start:.1f} s")
    else:
        options.say(f"opened from the beginning; the moment is at {hit.start:.1f} s (mpv or VLC would start there)")


CLOCK = r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d+)?)"
SPAN = re.compile(rf"(?P<start>{CLOCK})(?:[-–](?P<end>{CLOCK}))?")
POINT_SECONDS = 0.001
"""Length of a moment that is only a time: shorter than any clip, so that one clip is meant."""


def parse_place(text: str) -> Moment:
    """A moment from ``VIDEO@TIME`` or ``VIDEO@START-END``; times are seconds, or minutes and seconds.

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
