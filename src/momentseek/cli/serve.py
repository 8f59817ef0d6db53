"""``momentseek serve``: the web page and the HTTP API; ``momentseek mcp``: the library for chat assistants."""

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
    help="The address to listen on; any but this machine's own needs a token.",
)
@click.option(
    "--port",
    default=8765,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes any free one.",
)
@click.option(
    "--token", envvar="MOMENTSEEK_TOKEN", help="What clients must send. Generated and printed if one is needed."
)
@click.option(
    "--folder",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder from which the page can add videos; may be repeated. Default: those of the library's videos, and "
    "where others cannot reach it the home folder and connected drives.",
)
@click.option("--watch", is_flag=True, help="Add what is in the folders of --folder, appears there or changes.")
@click.option(
    "--compare-with",
    cls=RenamedOption,
    former=["--beside"],
    multiple=True,
    metavar="LIBRARY",
    help="A library of the same videos with another encoder, to compare with; may be repeated.",
)
@click.option(
    "--rerank",
    multiple=True,
    type=click.Path(),
    metavar="FOLDER",
    help="An exported model that can re-rank searches (docs/reranking.md); may be repeated.",
)
@click.option(
    "--allowed-host", "allowed_hosts", multiple=True, metavar="NAME", help="Another host name that clients may use."
)
@click.option(
    "--changes/--no-changes",
    default=None,
    help="Whether the page may remove videos and change the encoder. Default: only where others cannot reach it.",
)
@click.option(
    "--database",
    envvar=DATABASE_VARIABLE,
    metavar="ADDRESS",
    help="A PostgreSQL database for sessions, judgements and bookmarks, e.g. postgresql://USER@HOST/NAME; "
    "servers that share it are one. Default: files in the library's folder.",
)
@click.option(
    "--search-processes",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    metavar="N",
    help="Search in N processes of their own, for many people at a time (docs/serving.md); each takes 250 MB or more.",
)
@click.option("--scrub-at", metavar="HH:MM", help="Read the whole library each night, and log what is damaged.")
@options.on_shards
@click.option("--replicas", type=click.IntRange(1, 64), default=1, show_default=True, help="With --on: of each shard.")
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

    Only this machine can reach it, unless --host says otherwise; then a token is needed. Stop it with Ctrl-C: videos
    that are complete are kept, and adding the folder again continues from there.

    \b
    Choose a folder in the browser, and search it:
      momentseek serve --open
    Add what is in a folder, and whatever appears there:
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
    """Give people tokens of their own, so that each judges and keeps under their own name only.

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
    """Print a token for NAME, which is shown once; an older one of the same name no longer counts.

    \b
      momentseek serve users add ann
    """
    click.echo(_users(context).add(name))
    options.say(f"{name} enters this token on the page, or sends it as 'Authorization: Bearer TOKEN'; keep it secret")


@users.command("list")
@click.pass_context
def list_users(context: click.Context) -> None:
    """List who has a token, and since when."""
    for name, since in _users(context).list():
        click.echo(f"{name}  {time.strftime('%Y-%m-%d', time.localtime(since))}")


@users.command("remove")
@click.argument("name")
@click.pass_context
def remove_user(context: click.Context, name: str) -> None:
    """Take the token of NAME away; what they judged and kept stays."""
    _users(context).remove(name)


@click.command()
@options.library
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--port",
    default=8766,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="With --http: the port to listen on; 0 takes any free one.",
)
@click.option(
    "--token", envvar="MOMENTSEEK_TOKEN", help="With --http: what clients must send; needed where others reach it."
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for exports and clips.")
def mcp(library: str | None, http: bool, host: str, port: int, token: str | None, out: Path | None) -> None:
    """Let a chat assistant search the library (Model Context Protocol).

    The assistant can search, look at a moment, read transcripts, list videos and export moments. It cannot change the
    library, and writes files only into the folder of --out. docs/assistants.md says how to connect one.

    \b
    What an assistant on this machine starts:
      momentseek mcp --library films --out ~/Clips
    For an assistant that connects by an address:
      momentseek mcp --http --token "$TOKEN"
    """
    optional_module("mcp", "mcp")
    optional_module("fastapi", "mcp")
    from momentseek.server.mcp_server import run_mcp

    if not http:
        sys.stdout = bare_stream(sys.stdout)  # the protocol's own, and JSON
    place = None if out is None else out.expanduser().absolute()
    run_mcp(library_folder(library), exports=place, http=(host, port) if http else None, token=token, echo=options.say)
