"""Options and helpers that commands share: notes on stderr, JSON, output files and folders."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from momentseek.cli import terminal
from momentseek.cli.groups import RenamedOption
from momentseek.cluster.connection import INSECURE_VARIABLE
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import text_table
from momentseek.library.file_stamp import path_text, printable
from momentseek.library.location import is_remote


def _protocols(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from momentseek.measuring.measures import PROTOCOLS  # a search need not load the measures

    return [name for name in PROTOCOLS if name.startswith(incomplete)]


truth = click.option(
    "--truth", "-t", required=True, type=click.Path(), metavar="FILE", help="Ground truth, in any known format."
)
measures = click.option(
    "--measure",
    "-m",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="Compute MEASURE, e.g. 'NDCG@{10,20}[IoU>={0.3,0.5}]'; repeatable.",
)
protocol = click.option(
    "--protocol",
    "-p",
    metavar="NAME",
    shell_complete=_protocols,
    help="Follow the rules of the protocol NAME (`momentseek measures` lists them). Default: paper.",
)
missing = click.option(
    "--missing",
    type=click.Choice(["error", "zero", "skip"]),
    default="error",
    show_default=True,
    help="Refuse judged queries without predictions (error), count them as 0, or leave them out of the mean (skip).",
)
videos = click.option(
    "--videos",
    type=click.Path(),
    metavar="FILE",
    help="Read the videos' durations (and indices) from FILE: video_corpus.json, Charades' CSV, ….",
)
invalid = click.option(
    "--invalid",
    type=click.Choice(["error", "drop", "clip", "keep"]),
    help="For moments with impossible times: refuse the file (error, the default), drop them (a dropped prediction "
    "still takes up its rank), clip them to the video, or keep them.",
)
force = click.option("--force", is_flag=True, help="Overwrite existing files.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

library = click.option(
    "--library",
    "-l",
    "library",
    metavar="NAME|PATH",
    help="Library to use: a name, or a path that contains a slash. Default: $MOMENTSEEK_LIBRARY, else the setting "
    "`library` (`momentseek config`), else 'default'.",
)
wait = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="Wait up to SECONDS while another process changes the library. Default: fail at once.",
)
ocr_model = click.option(
    "--ocr-model",
    cls=RenamedOption,
    former=["--reader"],
    metavar="SPEC",
    help="OCR model: ppocr-small (default), or ppocr:FOLDER.",
)


F = TypeVar("F", bound=Callable[..., Any])


def _allow_insecure(_: click.Context, __: click.Parameter, given: bool) -> None:
    if given:
        os.environ[INSECURE_VARIABLE] = "1"


def on_option(what: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--on`` and ``--insecure`` to a command; ``what`` begins the help of ``--on``."""
    on = click.option("--on", metavar="ADDRESS", help=f"{what}: docs/cluster.md.")
    insecure = click.option(
        "--insecure",
        is_flag=True,
        expose_value=False,
        callback=_allow_insecure,
        help="With --on: connect to a cluster that has no token. Use it only if nobody else can reach the cluster.",
    )
    return lambda command: on(insecure(command))


on_shards = on_option("Search the library's shards on a Ray cluster (ray://HOST:10001, auto, local)")
on_cluster = on_option("Run on a Ray cluster (ray://HOST:10001, auto, local) whose machines share these folders")
on_writers = on_option("Add to a sharded library on a Ray cluster (ray://HOST:10001, auto, local)")
quiet = click.option("--quiet", "-q", is_flag=True, help="Report only failures.")


def encoder_or_model(encoder: str | None, model: str | None) -> str | None:
    """Return the encoder spec given by ``--encoder`` or ``--model``.

    >>> encoder_or_model(None, "films-model")
    'model:films-model'
    """
    if encoder is not None and model is not None:
        raise MomentseekError("--encoder and --model are both given; a model brings its encoders, so leave one out")
    return encoder if model is None else f"model:{model}"


def unless_setting(name: str, value: str | None) -> str | None:
    """Return a parameter's value, or None if it comes from the settings file."""
    source = click.get_current_context().get_parameter_source(name)
    return None if source is click.core.ParameterSource.DEFAULT_MAP else value


def given_words(*, absolute: bool = False) -> list[str]:
    """Return the running command as typed, without --library, to run it again; ``absolute`` makes paths absolute."""
    context = click.get_current_context()
    arguments, options = [context.info_name or ""], []

    def text(parameter: click.Parameter, value: Any) -> str:
        is_local = isinstance(parameter.type, click.Path) and not is_remote(str(value))
        return os.path.abspath(os.path.expanduser(value)) if absolute and is_local else str(value)

    for parameter in context.command.params:
        name = parameter.name or ""  # a flag with only a callback has no value in context.params
        value = context.params.get(name, context.meta.get(name, True))
        typed = context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if not typed or parameter.name == "library":
            continue
        values = [text(parameter, one) for one in (value if isinstance(value, tuple) else (value,))]
        if isinstance(parameter, click.Argument):
            arguments += values
        elif getattr(parameter, "is_flag", False):
            options.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            options += [word for one in values for word in (max(parameter.opts, key=len), one)]
    return [*arguments, *options]


def command_line(words: Iterable[str], library: str | None = None) -> str:
    """Return a momentseek command for the user to run next, on the library that was named.

    >>> command_line(["status", "--failed"], "my films/")
    "momentseek status --failed --library 'my films/'"
    """
    where = ["--library", library] if library else []
    return " ".join(["momentseek", *(shlex.quote(printable(word)) for word in (*words, *where))])


def say(text: str) -> None:
    """Print a note for the user on stderr, so that stdout holds only the result."""
    click.echo(text, err=True)


def echo_json(value: Any) -> None:
    """Print a value as JSON on stdout; paths become text."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=path_text))


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "lr") -> None:
    """Print a table on stdout: fitted to the terminal, or as aligned plain text if stdout is not a terminal."""
    if sys.stdout.isatty():
        terminal.print_table(header, rows, align)
    else:
        click.echo(text_table(header, rows, align=align))


def size_text(size: float) -> str:
    """Return a number of bytes in a readable unit.

    >>> size_text(999), size_text(12_345_678)
    ('999 B', '12.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def check_targets(inputs: Iterable[str | None], outputs: Iterable[str | None], force: bool) -> None:
    """Refuse outputs that would overwrite an input, each other, or (without --force) an existing file."""
    given = {Path(p).resolve() for p in inputs if p}
    seen: set[Path] = set()
    for name in filter(None, outputs):
        path = Path(name)
        if path.resolve() in given:
            raise MomentseekError(f"{path}: is an input of this command; write to another file")
        if path.resolve() in seen:
            raise MomentseekError(f"{path}: is named for two outputs; give each its own file")
        seen.add(path.resolve())
        if path.is_dir():
            raise MomentseekError(f"{path}: is a folder; give the name of a file")
        if not path.absolute().parent.is_dir():
            raise MomentseekError(f"{path}: there is no folder {path.parent}; create it first")
        if not force and path.exists() and (not path.is_file() or path.stat().st_size):  # an empty file is no loss
            raise MomentseekError(f"{path}: already exists; choose another name, or overwrite it (--force)")


def write_text(text: str, out: str | None) -> None:
    """Write a text to the file ``out`` and say so, or to standard output if it is None."""
    if out is None:
        click.echo(text, nl=False)
        return
    write_bytes(Path(out), text.encode())
    say(f"wrote {out}")


class Number(click.FloatRange):
    """A finite number within bounds.

    >>> Number(-1, 1).convert("nan", None, None)
    Traceback (most recent call last):
        ...
    click.exceptions.BadParameter: nan is not a finite number.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the value to a finite number, or fail."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


@contextmanager
def new_folders(*folders: str | None) -> Iterator[None]:
    """Create folders with their parents for a ``with`` block; if the block fails, remove the new ones.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     try:
    ...         with new_folders(f"{here}/new/one"):
    ...             print((Path(here) / "new/one").is_dir())
    ...             raise MomentseekError("no")
    ...     except MomentseekError:
    ...         print((Path(here) / "new").exists())
    True
    False
    """
    new: list[Path] = []
    try:
        for folder in filter(None, folders):
            _make(Path(folder), new)
        yield
    except BaseException:
        for path in reversed(new):
            with suppress(OSError):  # another process has written into it
                path.rmdir()
        raise


def _make(folder: Path, new: list[Path]) -> None:
    for path in (*reversed(folder.parents), folder):
        try:
            path.mkdir()
            new.append(path)
        except FileExistsError:
            if not path.is_dir():
                raise MomentseekError(f"{folder}: cannot be created as a folder ({path} is a file)") from None
        except OSError as e:
            if not path.is_dir():
                raise MomentseekError(
                    f"{folder}: cannot be created as a folder ({e.strerror}); choose another"
                ) from None
