"""``momentseek serve`` (web page and HTTP API) and ``momentseek mcp`` (search for chat assistants)."""

from __future__ import annotations

import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from momentseek.cli import options
from momentseek.cli.groups import RenamedOption
from momentseek.cli.terminal import bare_stream
from momentseek.cluster.ray_process import shards_on
from momentseek.core.errors import MomentseekError, optional_module
from momentseek.library.location import library_folder

if TYPE_CHECKING:
    from momentseek.server.security.users import Users


DATABASE_VARIABLE = "MOMENTSEEK_DATABASE"


@click.group(invoke_without_command=True)
@options.library
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any address but this machine's own needs a token.",
)
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 takes any free one.",
)
@click.option(
    "--token",
    envvar="MOMENTSEEK_TOKEN",
    help="Token that clients must send. If needed and not given, one is generated and printed.",
)
@click.option(
    "--folder",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder from which the page can add videos; repeatable. Default: the folders of the library's videos and, if "
    "only this machine can connect, the home folder and connected drives.",
)
@click.option(
    "--watch", is_flag=True, help="Add the videos in the folders of --folder, and those that appear or change there."
)
@click.option(
    "--compare-with",
    cls=RenamedOption,
    former=["--beside"],
    multiple=True,
    metavar="LIBRARY",
    help="Library of the same videos with another encoder, to compare with; repeatable.",
)
@click.option(
    "--rerank",
    multiple=True,
    type=click.Path(),
    metavar="FOLDER",
    help="Exported model that can re-rank searches (docs/encoders.md); repeatable.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Further host name that clients may use; repeatable.",
)
@click.option(
    "--changes/--no-changes",
    default=None,
    help="Allow the page to remove videos and change the encoder. Default: only if no other machine can connect.",
)
@click.option(
    "--database",
    envvar=DATABASE_VARIABLE,
    metavar="ADDRESS",
    help="PostgreSQL database for sessions, judgements and bookmarks, e.g. postgresql://USER@HOST/NAME; several "
    "servers can share it. Default: files in the library's folder.",
)
@click.option(
    "--search-processes",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    metavar="N",
    help="Search in N separate processes, for many users (docs/serving.md); each needs at least 250 MB of memory.",
)
@click.option(
    "--scrub-at",
    metavar="HH:MM",
    help="Check the checksums of the whole library each night at this time, and log damaged files.",
)
@options.on_shards
@click.option(
    "--replicas", type=click.IntRange(1, 64), default=1, show_default=True, help="With --on: replicas per shard."
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.pass_context
def command(
    context: click.Context,
    library: str | None,
    host: str,
    port: int,
    token: str | None,
    folders: tuple[Path, ...],
    watch: bool,
    compare_with: tuple[str, ...],
    rerank: tuple[str, ...],
    allowed_hosts: tuple[str, ...],
    changes: bool | None,
    database: str | None,
    search_processes: int,
    scrub_at: str | None,
    on: str | None,
    replicas: int,
    open_page: bool,
) -> None:
    """Serve the library: a web page to search, watch and judge, and an HTTP API.

    Only this machine can connect, unless you give --host; then a token is needed. Stop it with Ctrl-C: finished videos
    are kept, and adding the folder again continues from there.

    \b
    Choose a folder in the browser, and search it:
      momentseek serve --open
    Add the videos in a folder, and any that appear there:
      momentseek serve --folder ~/Videos --watch --open
    Compare two encoders in the page:
      momentseek serve --library films --compare-with films-clip
    Serve the home network:
      momentseek serve --host 0.0.0.0 --allowed-host films.local
    One of several servers behind a load balancer:
      momentseek serve --host 0.0.0.0 --token "$TOKEN" --database postgresql://momentseek@db.local/films
    """
    for package in ("fastapi", "uvicorn", "sqlalchemy"):
        optional_module(package, "serve")
    if context.invoked_subcommand is not None:
        context.obj = library, database
        return
    from momentseek.server.process import serve
    from momentseek.server.settings import ServerSettings, is_loopback

    generated = token is None and not is_loopback(host)
    settings = ServerSettings(
        host,
        port,
        secrets.token_urlsafe(32) if generated else token,
        allowed_hosts,
        tuple(folder.resolve() for folder in folders),
        watch=watch,
        compare_with=tuple(library_folder(one) for one in compare_with),
        rerank=tuple(Path(one).expanduser().absolute() for one in rerank),
        allow_changes=changes,
        search_processes=search_processes,
        scrub_at=scrub_at,
        database=database,
    )
    folder = library_folder(library)
    if on is not None and search_processes:
        raise MomentseekError("--search-processes searches on this machine, --on elsewhere; give one of them")
    with shards_on(on, folder, replicas) as shard_client:
        serve(folder, settings, open_page=open_page, show_token=generated, shard_client=shard_client, echo=click.echo)


@command.group()
def users() -> None:
    """Manage personal tokens, with which people judge and save bookmarks under their own names.

    \b
      momentseek serve users add ann
      momentseek serve --library films users list
      momentseek serve users remove ann
    """


def _users(context: click.Context) -> Users:
    from momentseek.server.database import DatabaseLocation
    from momentseek.server.security.users import Users

    library, database = context.obj
    folder = library_folder(library)
    if not folder.is_dir():
        raise MomentseekError(f"{folder}: has no library; add videos first, or name another with --library")
    return Users(DatabaseLocation(folder, database))


@users.command("add")
@click.argument("name")
@click.pass_context
def add_user(context: click.Context, name: str) -> None:
    """Create and print a token for NAME. It is shown only once and replaces an older one.

    \b
      momentseek serve users add ann
    """
    click.echo(_users(context).add(name))
    options.say(f"{name} enters this token on the page, or sends it as 'Authorization: Bearer TOKEN'; keep it secret")


@users.command("list")
@click.pass_context
def list_users(context: click.Context) -> None:
    """List the people with a token, and when each was created."""
    for name, since in _users(context).list():
        click.echo(f"{name}  {time.strftime('%Y-%m-%d', time.localtime(since))}")


@users.command("remove")
@click.argument("name")
@click.pass_context
def remove_user(context: click.Context, name: str) -> None:
    """Delete the token of NAME; their judgements and bookmarks stay."""
    _users(context).remove(name)


@click.command()
@options.library
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: address to listen on.")
@click.option(
    "--port",
    default=8766,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="With --http: port to listen on; 0 takes any free one.",
)
@click.option(
    "--token",
    envvar="MOMENTSEEK_TOKEN",
    help="With --http: token that clients must send; required if other machines can connect.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for exports and clips.")
def mcp(library: str | None, http: bool, host: str, port: int, token: str | None, out: Path | None) -> None:
    """Let a chat assistant search the library (Model Context Protocol).

    The assistant can search, look at a moment, read transcripts, list videos and export moments. It cannot change the
    library, and writes files only into the folder of --out. docs/page.md explains how to connect one.

    \b
    The command that an assistant on this machine runs:
      momentseek mcp --library films --out ~/Clips
    For an assistant that connects over HTTP:
      momentseek mcp --http --token "$TOKEN"
    """
    optional_module("mcp", "mcp")
    optional_module("fastapi", "mcp")
    from momentseek.server.mcp_server import run_mcp

    if not http:
        sys.stdout = bare_stream(sys.stdout)  # only the protocol writes here, and it writes JSON
    place = None if out is None else out.expanduser().absolute()
    run_mcp(library_folder(library), exports=place, http=(host, port) if http else None, token=token, echo=options.say)
