"""The commands of docs/cluster.md, typed on three machines with an object store and a PostgreSQL.

The machines are network namespaces (bench/wires.py). Then the head is killed and started again, and the store stopped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.test_head_lost import gcs_of

ROOT = Path(__file__).parent.parent.parent
HEAD, STORE, DATABASE = 0, 3, 4
SECONDS = 900.0
"""How long one command, or the return of whole answers, may take on a busy machine."""


def typed_commands() -> list[tuple[str, str]]:
    """What the chapter types on which machine, without comments; two shards are enough here."""
    text = re.sub(r"\\\n\s+", "", (ROOT / "docs" / "cluster.md").read_text())
    found = re.findall(r"^(head|other)\$ +(.*?)(?:  +#.*)?$", text, re.MULTILINE)
    return [(who, command.replace("--shards 8", "--shards 2")) for who, command in found]


class Shell:
    """A shell on a machine, with a cache and a ``~/.ray`` of its own, and the same ``/mnt``."""

    def __init__(self, inside: list[str], place: Path, number: int, env: dict[str, str]) -> None:
        own = place / str(number)
        for name in ("ray", "cache", "tmp"):
            (own / name).mkdir(parents=True)
        mounts = {
            own / "ray": "~/.ray",
            own / "cache": place / "cache",
            place / "mnt": "/mnt",
            place / "hosts": "/etc/hosts",
        }
        script = "".join(f"mount --bind {source} {target}\n" for source, target in mounts.items())
        self._log = (own / "log").open("w")
        self._process = subprocess.Popen(
            [*inside, "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
            env={**env, "RAY_TMPDIR": str(own / "tmp"), "MOMENTSEEK_CACHE": str(place / "cache")}, cwd=own,
        )  # fmt: skip
        self.run(script)
        self.log = own / "log"

    def run(self, command: str, *, check: bool = True) -> str:
        """Type a command and wait; what it prints."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f'{command}\nprintf "\\n== %s\\n" $?\n')
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            if line.startswith("== "):
                assert not check or line == "== 0\n", f"{command}: {line} {lines[-20:]} {self.log.read_text()[-3000:]}"
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"{command}: the shell has ended; {self.log.read_text()[-3000:]}")

    def type(self, command: str) -> str:
        """Type a command of the chapter; on a busy machine Ray gives a node up that takes half a minute to start."""
        for _ in range(4 if command.startswith("ray start") else 0):
            found = self.run(command, check=False)
            if "Ray runtime started" in found:
                return found
            self.run("ray stop --force", check=False)
        return self.run(command)

    def begin(self, command: str) -> None:
        """Type a command that goes on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command} >serve.log 2>&1 &\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    for module in ("av", "obstore", "pg8000", "ray"):
        pytest.importorskip(module)
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import services
    import wires

    if not wires.can_make_namespaces():
        pytest.skip("network namespaces cannot be made here: be root, and have iproute2")
    if not services.POSTGRES:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    return services, wires


def ask(method: str, path: str, token: str, body: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://10.0.0.1:8765/api/v1{path}", None if body is None else json.dumps(body).encode(), method=method,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError:
        return 0, None


def until(wanted: str, token: str) -> list[str]:
    """Search until the answer is of a kind: ``whole``, ``marked`` or ``503``; what was answered before."""
    seen: list[str] = []
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        status, found = ask("GET", "/search?q=red&all=true&k=50&group=video", token)
        kind = str(status) if status != 200 else "whole" if found["complete"] else "marked"
        assert kind in ("0", "503", "whole", "marked"), (kind, found)
        assert kind != "whole" or {hit["name"] for hit in found["hits"]} == {"a.mp4", "b.mp4", "c.mp4"}
        if kind == wanted:
            return seen
        seen.append(kind)
        time.sleep(0.5)
    raise AssertionError(f"no answer is {wanted}: {seen[-50:]}")


@pytest.mark.figures
@pytest.mark.xdist_group("ray")
def test_the_chapter_on_clusters_holds(bench: Any, film: Any) -> None:
    services, wires = bench
    place = Path(tempfile.mkdtemp(prefix="ms-", dir="/tmp"))  # Ray's sockets want short paths
    place.chmod(0o755)
    for name in ("mnt/films", "cache"):
        (place / name).mkdir(parents=True)
    for name, colour in (("a", (250, 10, 10)), ("b", (10, 250, 10)), ("c", (10, 10, 250))):
        film(place / "mnt" / "films" / f"{name}.mp4", colour)
    (Path.home() / ".ray").mkdir(exist_ok=True)
    try:
        with wires.Wires(5, net="10.0.0", first=1, here=200) as net:
            (place / "hosts").write_text(f"127.0.0.1 localhost\n{net.address(DATABASE)} db.local\n")
            follow_chapter(services, net, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def follow_chapter(services: Any, net: Any, place: Path) -> None:
    store = services.s3_service(net, STORE, place, "bucket")
    database = services.postgres_service(net, DATABASE, place, "films")
    for service in (store, database):
        service.wait_for(SECONDS)
    env = {
        **os.environ, **services.s3_environment(store.address), "RAY_USAGE_STATS_ENABLED": "0",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src"),
        "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "200000000", "RAY_gcs_rpc_server_reconnect_timeout_s": "15",
    }  # fmt: skip
    shells = [Shell(net.inside(number), place, number, env) for number in range(3)]
    head, others = shells[HEAD], shells[1:]
    try:
        starts = []
        for who, command in typed_commands():
            if command.startswith("momentseek serve"):
                head.begin(command)
                continue
            if "s3://bucket/films" in command:
                put_films(place, env)
            said = [shell.type(command) for shell in (others if who == "other" else [head])]
            if "get-auth-token" in command:
                for number in (1, 2):
                    shutil.copy(place / "0" / "ray" / "auth_token", place / str(number) / "ray" / "auth_token")
            if command.startswith("momentseek search"):
                assert "a.mp4" in said[0] or "b.mp4" in said[0] or "c.mp4" in said[0]
            starts += [(who, command)] if command.startswith("ray start") else []
        token = head.run('echo "$TOKEN"').strip()
        until("whole", token)
        status, query = ask("POST", "/judging/queries", token, {"text": "red"})
        assert status == 201, query
        body = {"query": query["id"], "candidate": 1, "annotator": "ann", "relevance": 4}
        assert ask("PUT", "/judging/judgements", token, body)[0] == 200

        os.kill(gcs_of(6379), signal.SIGKILL)  # the head dies …
        until("503", token)
        for shell in shells:
            shell.run("ray stop --force", check=False)
        for who, command in starts:  # … and is started again, as the chapter says
            for shell in others if who == "other" else [head]:
                shell.type(command)
        until("whole", token)
        assert ask("GET", "/judging/queries", token)[1]["queries"][0]["judged"] == {"ann": 1}

        store.stop()
        until("marked", token)
        store.resume()
        until("whole", token)
        assert "Traceback" not in (place / "0" / "serve.log").read_text()
    finally:
        for number, shell in enumerate(shells):
            shell.close()
            net.kill(number)
        for service in (store, database):
            service.kill()


def put_films(place: Path, env: dict[str, str]) -> None:
    """Copy the films into the store."""
    for path in (place / "mnt" / "films").iterdir():
        url = f"{env['AWS_ENDPOINT_URL']}/bucket/films/{path.name}"
        urllib.request.urlopen(urllib.request.Request(url, path.read_bytes(), method="PUT")).close()


def test_the_chapter_says_what_is_followed() -> None:
    commands = [command for _, command in typed_commands()]
    assert [command.split()[:2] for command in commands if command.startswith("ray")] == [
        ["ray", "get-auth-token"], ["ray", "start"], ["ray", "start"],
    ]  # fmt: skip
    assert sum(command.startswith("momentseek add") for command in commands) == 2
    assert commands[-1].startswith("momentseek serve --library s3://bucket/lib --on auto")
    assert "--database" in commands[-1]
