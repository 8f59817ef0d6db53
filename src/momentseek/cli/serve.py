"""``momentseek serve``: the web page and the HTTP API."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from momentseek.cli import options
from momentseek.cli.groups import RenamedOption
from momentseek.cluster.searching import shards_on
from momentseek.core.errors import optional_module
from momentseek.library.location import library_folder


@click.command()
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
    help="A folder from which the page can add videos; may be repeated. Default: those of the library's videos.",
)
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
    envvar="MOMENTSEEK_DATABASE",
    metavar="ADDRESS",
    help="A PostgreSQL database for sessions, judgements and bookmarks, e.g. postgresql://USER@HOST/NAME; "
    "servers that share it are one. Default: files in the library's folder.",
)
@options.on_shards
@click.option("--replicas", type=click.IntRange(1, 64), default=1, show_default=True, help="With --on: of each shard.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
def command(
    library: str | None,
    host: str,
    port: int,
    token: str | None,
    folders: tuple[Path, ...],
    compare_with: tuple[str, ...],
    rerank: tuple[str, ...],
    allowed_hosts: tuple[str, ...],
    changes: bool | None,
    database: str | None,
    on: str | None,
    replicas: int,
    open_page: bool,
) -> None:
    """Serve the library: a web page to search, watch and judge, and an HTTP API.

    Only this machine can reach it, unless --host says otherwise; then a token is needed. Stop it with Ctrl-C: videos
    that are complete are kept, and adding the folder again continues from there.

    \b
    Search in a browser, and add videos from a folder there:
      momentseek serve --folder ~/Videos --open
    Compare two encoders in the page:
      momentseek serve --library films --compare-with films-clip
    Serve the home network:
      momentseek serve --host 0.0.0.0 --allowed-host films.local
    One of several servers behind a load balancer:
      momentseek serve --host 0.0.0.0 --token "$TOKEN" --database postgresql://momentseek@db.local/films
    """
    for package in ("fastapi", "uvicorn", "sqlalchemy"):
        optional_module(package, "serve")
    from momentseek.server.process import serve
    from momentseek.server.settings import ServerSettings, is_loopback

    generated = token is None and not is_loopback(host)
    settings = ServerSettings(
        host,
        port,
        secrets.token_urlsafe(32) if generated else token,
        allowed_hosts,
        tuple(folder.resolve() for folder in folders),
        compare_with=tuple(library_folder(one) for one in compare_with),
        rerank=tuple(Path(one).expanduser().absolute() for one in rerank),
        allow_changes=changes,
        database=database,
    )
    folder = library_folder(library)
    with shards_on(on, folder, replicas) as shard_client:
        serve(folder, settings, open_page=open_page, show_token=generated, shard_client=shard_client, echo=click.echo)
