"""Services on machines that are network namespaces (bench/wires.py): started, killed, stopped and started again.

Killing (SIGKILL) and stopping (SIGSTOP) reach a service's whole tree of processes.
"""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from wires import Wires

RAY = str(Path(sys.executable).with_name("ray"))
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
"""Where Debian's PostgreSQL is, if it is installed."""


def process_tree(top: int) -> list[int]:
    """A process and all that it started, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [top]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


class Service:
    """A command on a machine that should always run."""

    def __init__(
        self,
        name: str,
        wires: Wires,
        machine: int,
        words: Sequence[str],
        *,
        folder: Path,
        port: int | None = None,
        env: Mapping[str, str] | None = None,
        pipes: bool = False,
    ) -> None:
        self.name, self.machine, self.port = name, machine, port
        self._wires, self._words, self._env = wires, [*wires.inside(machine), *words], {**os.environ, **(env or {})}
        self._pipes = pipes
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = False
        """Whether it should run now; one that ends by itself meanwhile is started again."""
        self.exits: list[int] = []

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self._wires.address(self.machine)}:{self.port}"

    def start(self) -> None:
        """Start it, unless it runs."""
        self.wanted = True
        if self.process is not None and self.process.poll() is None:
            return
        if self.process is not None:
            self.exits.append(self.process.returncode)
        pipe = subprocess.PIPE if self._pipes else None
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._words, stdin=pipe or subprocess.DEVNULL, stdout=pipe or log, stderr=log, env=self._env
            )

    def send(self, number: int) -> None:
        """Send a signal to all of its processes."""
        if self.process is not None and self.process.poll() is None:
            for pid in process_tree(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill(self) -> None:
        """Kill it; it is not started again until ``start``."""
        self.wanted = False
        self.send(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def stop(self) -> None:
        """Stop it: its connections stay, and nobody answers."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.send(signal.SIGCONT)

    def cut(self) -> None:
        """Cut its machine's cable."""
        self._wires.cut(self.machine)

    def join(self) -> None:
        """Join its machine's cable again."""
        self._wires.join(self.machine)

    def wait_for(self, seconds: float = 120.0) -> None:
        """Wait until something listens at its port, starting it again if it ends."""
        assert self.port is not None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.start()
            try:
                socket.create_connection((self._wires.address(self.machine), self.port), 1).close()
                return
            except OSError:
                time.sleep(0.3)
        raise TimeoutError(f"{self.name} does not listen after {seconds:.0f} s; see {self.log}")


def s3_service(wires: Wires, machine: int, folder: Path, bucket: str) -> Service:
    """A server that speaks S3 and keeps its objects in a folder."""
    program = Path(__file__).with_name("s3_folder.py")
    words = [sys.executable, str(program), str(folder / "objects"), wires.address(machine), "9000", bucket]
    return Service("store", wires, machine, words, folder=folder, port=9000)


def s3_environment(endpoint: str) -> dict[str, str]:
    """What tells clients where the store is."""
    return {
        "AWS_ENDPOINT_URL": f"http://{endpoint}", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }  # fmt: skip


def postgres_service(wires: Wires, machine: int, folder: Path, database: str) -> Service:
    """A PostgreSQL with a database, which trusts the machines of the switch; as nobody, for it refuses to be root."""
    nobody = pwd.getpwnam("nobody")
    place = folder / "postgres"
    place.mkdir()
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    tools, data = POSTGRES[0], place / "data"
    user: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "cwd": place}
    words = [tools / "initdb", "-D", data, "-A", "trust", "-U", "momentseek", "-E", "UTF8", "--locale=C"]
    alone = [tools / "postgres", "--single", "-D", data, "postgres"]
    with (folder / "initdb.log").open("wb") as log:
        subprocess.run(words, check=True, stdout=log, stderr=log, **user)
        made = f"CREATE DATABASE {database}\n".encode()
        subprocess.run(alone, input=made, check=True, stdout=log, stderr=log, **user)
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 10.0.0.0/8 trust\n")
    drop = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    server = [str(tools / "postgres"), "-D", str(data), "-p", "5432", "-k", str(place), "-c", "listen_addresses=*"]
    return Service("database", wires, machine, [*drop, *server], folder=folder, port=5432)
