"""The page and the API as an application of Ray Serve, whose replicas grow in number with the load.

    serve run momentseek.server.ray_serve:application library=/mnt/library
    serve run momentseek.server.ray_serve:application library=/mnt/library replicas=8 token="$TOKEN" \
      hosts=films.example.org database=postgresql://momentseek@db/films
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from momentseek.cluster.searching import serve_replicas
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.registry import did_you_mean
from momentseek.library.location import library_folder
from momentseek.server.app import create_app
from momentseek.server.settings import ServerSettings

MAX_REPLICAS = 1000
KNOWN = ("library", "replicas", "token", "hosts", "database")


def application(args: Mapping[str, str]) -> Any:
    """The application for ``serve run``, by what was written after its name.

    ``library`` is a name or a path that every node has; ``replicas`` how many there may be (1); ``token`` what clients
    must send, without which only this machine is answered; ``hosts`` are names that clients may use, with commas;
    ``database`` a PostgreSQL that replicas share, which several of them need.
    """
    folder, replicas, settings = read_arguments(args)
    create_app(folder, settings).state.service.close()  # what cannot be served is refused here, not in every replica
    return serve_replicas(partial(create_app, folder, settings), most=replicas)


def read_arguments(args: Mapping[str, str]) -> tuple[Path, int, ServerSettings]:
    """The library's folder, how many replicas there may be, and the settings of each.

    >>> read_arguments({"library": "./films", "replicas": "2"})
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: 2 replicas share sessions and judgements in a database; ...
    """
    for name in args:
        if name not in KNOWN:
            raise MomentseekError(f"there is no argument {name!r}; {did_you_mean(name, KNOWN)}")
    said = str(args.get("replicas", "1"))
    if not said.isascii() or not said.isdigit() or not 0 < int(said) <= MAX_REPLICAS:
        raise MomentseekError(f"replicas={said} is no number of replicas; give one from 1 to {MAX_REPLICAS:,}")
    token, database = args.get("token"), args.get("database")
    if int(said) > 1 and not database:
        raise MomentseekError(
            f"{said} replicas share sessions and judgements in a database; give one ({parameter('database', ...)})"
        )
    hosts = tuple(name.strip() for name in args.get("hosts", "").split(",") if name.strip())
    settings = ServerSettings(
        "0.0.0.0" if token else "127.0.0.1", 8000, token, hosts, allow_changes=False, database=database
    )
    return library_folder(args.get("library")), int(said), settings
