"""A PostgreSQL server of the tests' own, from Debian's package, where it is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

PLACES = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *map(Path, os.get_exec_path())]


def _user() -> dict[str, int]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server that trusts everybody on this machine; its folder is gone afterwards."""
    pytest.importorskip("pg8000")
    found = next((place for place in PLACES if all((place / tool).exists() for tool in ("initdb", "postgres"))), None)
    if found is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
    who = _user()
    if who:
        os.chown(folder, who["user"], who["group"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, log = folder / "data", (folder / "log").open("wb")
    subprocess.run(
        [found / "initdb", "-D", data, "-A", "trust", "-U", "momentseek", "-N", "-E", "UTF8", "--locale=C"],
        check=True, stdout=log, stderr=log, cwd=folder, **who,
    )  # fmt: skip
    server = subprocess.Popen(
        [found / "postgres", "-D", data, "-p", str(port), "-k", folder, "-c", "fsync=off",
         "-c", "listen_addresses=127.0.0.1"],
        stdout=log, stderr=log, cwd=folder, **who,
    )  # fmt: skip
    try:
        ready = [found / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
        for _ in range(200):
            if subprocess.run(ready, check=False).returncode == 0:
                break
            time.sleep(0.05)
        yield f"postgresql://momentseek@127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)  # do not wait for connections to end
        server.wait(20)
        log.close()
        shutil.rmtree(folder)


@pytest.fixture
def database(postgres: str) -> str:
    """The address of a new database."""
    from pg8000.dbapi import connect

    host, _, port = postgres.rpartition("@")[2].partition(":")
    name = f"films_{uuid4().hex[:8]}"
    db = connect("momentseek", host, "postgres", int(port))
    db.autocommit = True
    db.cursor().execute(f"CREATE DATABASE {name}")
    db.close()
    return f"{postgres}/{name}"
