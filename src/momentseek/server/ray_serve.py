"""The page and the API as an application of Ray Serve, which adds replicas as the load grows.

    serve run momentseek.server.ray_serve:application library=/mnt/library
    serve run momentseek.server.ray_serve:application library=/mnt/library replicas=8 token_file=/run/secrets/token \
      hosts=films.example.org database=postgresql://momentseek@db/films password_file=/run/secrets/database

Arguments are visible in the list of processes and in Ray's dashboard, so secrets come as files that every node has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from momentseek.cluster.searching import serve_replicas
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.registry import did_you_mean
from momentseek.library.location import library_folder
from momentseek.server.app import create_app
from momentseek.server.settings import ServerSettings

MAX_REPLICAS = 1000
KNOWN = ("library", "replicas", "token_file", "hosts", "database", "password_file")


def application(args: Mapping[str, str]) -> Any:
    """Create the application for ``serve run`` from the arguments after its name.

    ``library`` is a name or a path that every node has. ``replicas`` is the largest number of replicas (default: 1).
    ``token_file`` holds the token that clients must send; without it, only this machine is served. ``hosts`` are host
    names that clients may use, separated by commas. ``database`` is a PostgreSQL database for all replicas, required if
    there are several; ``password_file`` holds its password.
    """
    replicas = read_arguments(args)[1]
    _build(dict(args)).state.service.close()  # errors are reported here, not in every replica
    return serve_replicas(partial(_build, dict(args)), max_replicas=replicas)


def _build(args: Mapping[str, str]) -> Any:
    """Create the application of one replica, which reads the secrets on its own node."""
    folder, _, settings = read_arguments(args)
    return create_app(folder, settings)


def read_arguments(args: Mapping[str, str]) -> tuple[Path, int, ServerSettings]:
    """Return the library's folder, the largest number of replicas, and the settings of each.

    >>> read_arguments({"library": "./films", "replicas": "2"})
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: 2 replicas share sessions and judgements in a database; ...
    """
    for name in args:
        if name == "token":
            raise MomentseekError("token=… would be shown by the list of processes; give token_file=/PATH/OF/A/FILE")
        if name not in KNOWN:
            raise MomentseekError(f"there is no argument {name!r}; {did_you_mean(name, KNOWN)}")
    said = str(args.get("replicas", "1"))
    if not said.isascii() or not said.isdigit() or not 0 < int(said) <= MAX_REPLICAS:
        raise MomentseekError(f"replicas={said} is not a number of replicas; give one from 1 to {MAX_REPLICAS:,}")
    token, password = _secret(args, "token_file"), _secret(args, "password_file")
    database = args.get("database")
    if database and urlsplit(database).password:
        raise MomentseekError("a password in database=… would be shown to others; give password_file=/PATH/OF/A/FILE")
    if password:
        os.environ["PGPASSWORD"] = password
    if int(said) > 1 and not database:
        raise MomentseekError(
            f"{said} replicas share sessions and judgements in a database; give one ({parameter('database', ...)})"
        )
    hosts = tuple(name.strip() for name in args.get("hosts", "").split(",") if name.strip())
    settings = ServerSettings(
        "0.0.0.0" if token else "127.0.0.1", 8000, token, hosts, allow_changes=False, database=database
    )
    return library_folder(args.get("library")), int(said), settings


def _secret(args: Mapping[str, str], name: str) -> str | None:
    """The first line of the file that an argument names; None without the argument."""
    path = args.get(name)
    if not path:
        return None
    try:
        found = Path(path).read_text(encoding="utf-8").strip().partition("\n")[0]
    except (OSError, UnicodeDecodeError) as e:
        raise MomentseekError(f"{name}={path}: cannot be read ({e}); every node needs this file") from None
    if not found:
        raise MomentseekError(f"{name}={path}: is empty; write the secret into it")
    return found
