"""Try to get in: what somebody else in the network, or with rights in a shared folder, might do to a server.

    python bench/attack_access.py [--requests 3000] [--seed 1]

The demo library is made first and served, with a token, by a process of its own; requests go over real sockets. A film
and the folder beside it hold a secret, which no answer may ever contain. Each line says what was tried, how often, and
what came of it; the exit code is 1 if anything leaked, failed (5xx) or locked others out.
docs/measurements/reliability.md has the table.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

SECRET = b"the secret of the owner"
TOKEN = "correct-horse-battery-staple"
API = "/api/v1"
PATHS = ("../../../../etc/passwd", "/etc/passwd", "..\\..\\secret.txt", "file:///etc/passwd", "....//....//etc/passwd",
         "~/.ssh/id_rsa", "/proc/self/environ", "\0", "%00", "..;/", "//etc/passwd", "C:\\x.ini")  # fmt: skip


class Outcome:
    """What came of one kind of attack; ``bad`` is what must not have happened."""

    def __init__(self, name: str) -> None:
        self.name, self.tried, self.statuses, self.bad, self.note = name, 0, Counter[str](), 0, ""

    def take(self, status: int, data: bytes) -> None:
        self.tried += 1
        self.statuses[str(status)] += 1
        self.bad += SECRET in data or b"root:x:" in data or (status >= 500 and status != 503)

    def __str__(self) -> str:
        statuses = ", ".join(f"{number}: {count:,}" for number, count in sorted(self.statuses.items()))
        return f"{self.name:<52} {self.tried:>6,} tried   {self.bad} bad   {statuses} {self.note}".rstrip()


class Client:
    """Requests on a connection of their own each."""

    def __init__(self, port: int, token: str | None = TOKEN) -> None:
        self.port, self.token = port, token

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection._validate_path = lambda _: None  # type: ignore[attr-defined]
            connection.putrequest(method, path, skip_accept_encoding=True)
            data = None if body is None else json.dumps(body).encode()
            for name, value in {**headers, **({} if data is None else {"Content-Length": str(len(data))})}.items():
                connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        return json.loads(self.ask("GET", path)[1])


def spellings(path: str) -> list[str]:
    once = quote(path, safe="")
    return [once, quote(once, safe=""), quote(path, safe="/."), once.replace("%2F", "/"), once + "%00.mp4"]


def traversal(client: Client, tries: int, rng: random.Random) -> Outcome:
    """Hostile values in every parameter and body of every operation, chosen at random."""
    outcome = Outcome("paths in every parameter of every operation")
    document = client.json(f"{API}/openapi.json")
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path not in ("/login", "/logout") and "events" not in path and not path.endswith(("/retry", "/cancel"))
    ]
    for _ in range(tries):
        path, method, operation = rng.choice(operations)
        attempt = rng.choice(spellings(rng.choice(PATHS)))
        where = path.replace("{id}", rng.choice([attempt, "1"]))
        names = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"]
        query = "&".join(
            f"{name}={rng.choice([attempt, 'csv', '1'])}" for name in rng.sample(names, min(2, len(names)))
        )
        body = None if method in ("get", "head") else {rng.choice(["folder", "token", "q", "kind", "video"]): attempt}
        outcome.take(*client.ask(method.upper(), f"{where}?{query}" if query else where, body))
    for attempt in PATHS:
        for spelling in spellings(attempt):
            for prefix in ("/", "/static/", "/js/", "/static/js/../../"):
                outcome.take(*client.ask("GET", prefix + spelling))
    return outcome


@contextmanager
def flicker(film: Path, target: Path) -> Iterator[None]:
    """A film that is, again and again for an instant, a link to another file; so is the folder it lies in."""
    stop = threading.Event()
    kept, folder = film.with_name("kept"), film.parent
    away = folder.with_name(folder.name + "-away")

    def work() -> None:
        while not stop.is_set():
            film.rename(kept)
            film.symlink_to(target)
            film.unlink()
            kept.rename(film)
            folder.rename(away)
            folder.symlink_to(target.parent, target_is_directory=True)
            folder.unlink()
            away.rename(folder)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def races(client: Client, film: Path, target: Path, tries: int) -> Outcome:
    """The film is played, pictured, cut and exported while a link takes its place and leaves it."""
    outcome = Outcome("a film that flickers: played, pictured, cut, exported")
    videos = client.json(f"{API}/videos")["videos"]
    id = next(video["id"] for video in videos if video["name"].endswith(film.name))
    whole = film.read_bytes()
    with flicker(film, target):
        for n in range(tries):
            if n % 40 == 39:
                answer = client.ask("POST", f"{API}/videos/{id}/clip", {"start": 1.0, "end": 2.0, "exact": False})
            elif n % 40 == 19:
                hits = [{"video_id": id, "start": 1.0, "end": 2.0}]
                answer = client.ask("POST", f"{API}/export", {"kind": "html", "hits": hits})
            elif n % 4:
                answer = client.ask("GET", f"{API}/videos/{id}/media")
                outcome.bad += answer[0] == 200 and answer[1] != whole
            else:
                answer = client.ask("GET", f"{API}/videos/{id}/thumbnail?t={n / 100}&w={16 + n % 900}")
            outcome.take(*answer)
    return outcome


def adding(client: Client, folder: Path, film: Path, target: Path, times: int) -> Outcome:
    """The folder is added while its film and the folder itself flicker; links in it lead out."""
    outcome = Outcome("folders with links are added, listed, and flicker")
    before = {video["name"] for video in client.json(f"{API}/videos")["videos"]}
    (folder / "link.mp4").symlink_to(target.parent / "outside.mp4")
    (folder / "out").symlink_to(target.parent, target_is_directory=True)
    with flicker(film, target):
        for _ in range(times):
            for root in client.json(f"{API}/folders")["folders"]:
                outcome.take(*client.ask("GET", f"{API}/folders/{root['id']}"))
                outcome.take(*client.ask("POST", f"{API}/jobs", {"folder": root["id"]}))
            while client.json(f"{API}/status")["busy"]:
                time.sleep(0.1)
    after = {video["name"] for video in client.json(f"{API}/videos")["videos"]}
    found = [name for name in after - before if "outside" in name or "link" in name]
    outcome.bad += len(found)
    outcome.note = f"({len(found)} videos from outside)"
    return outcome


def streams(client: Client, count: int) -> Outcome:
    """One client opens so many event streams and keeps them; somebody else wants an answer meanwhile."""
    outcome = Outcome("event streams held by one client")
    held = []
    request = f"GET {API}/jobs/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    slowest = 0.0
    for n in range(count):
        one = socket.create_connection(("127.0.0.1", client.port), timeout=60)
        one.sendall(request)
        held.append(one)
        outcome.tried += 1
        if n % 50 == 49:
            begun = time.perf_counter()
            status, _ = client.ask("GET", f"{API}/status")
            slowest = max(slowest, time.perf_counter() - begun)
            outcome.bad += status != 200
            outcome.statuses[str(status)] += 1
    for one in held:
        one.close()
    outcome.note = f"(slowest answer to others {slowest:.2f} s)"
    return outcome


def guesses(port: int, count: int) -> list[Outcome]:
    """Tokens in headers, and thousands of them in addresses; the answers and their times must tell nothing."""
    header, address = Outcome("tokens guessed in headers"), Outcome("tokens guessed in addresses")
    stranger = Client(port, None)
    body: dict[bool, bytes] = {}
    times: dict[bool, list[float]] = {False: [], True: []}
    per = 400
    for n in range(count):
        right = bool(n % 2)
        words = [f"guess-{n}-{i:05}-guess" for i in range(per)] + [TOKEN if right else TOKEN[::-1]]
        begun = time.perf_counter()
        status, data = stranger.ask("GET", f"{API}/search?q={','.join(words)}")
        times[right].append(time.perf_counter() - begun)
        address.take(status, data)
        address.bad += body.setdefault(True, data) != data or status != 401
    address.tried *= per + 1
    ratio = statistics.median(times[True]) / statistics.median(times[False])
    address.note = f"(time with the right one among them / without: {ratio:.2f})"
    begun = time.monotonic()
    for n in range(count):
        status, data = stranger.ask("GET", f"{API}/status", Authorization=f"Bearer guess-number-{n:012}")
        header.take(status, data)
    header.bad += header.statuses["401"] > 5 * (1 + (time.monotonic() - begun) // 60)
    header.note = "(401: compared, 429: not even looked at)"
    return [address, header]


def serve(library: Path, folder: Path) -> tuple[subprocess.Popen[str], int]:
    words = [sys.executable, "-m", "momentseek", "serve", "--library", library, "--port", "0", "--folder", folder]
    environment = {**os.environ, "MOMENTSEEK_TOKEN": TOKEN}
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    return process, int(process.stdout.readline().rsplit(":", 1)[1].strip().rstrip("/"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    bad = 0
    with tempfile.TemporaryDirectory() as room:
        demo, outside = Path(room).resolve() / "demo", Path(room).resolve() / "outside"
        subprocess.run(
            [sys.executable, "-m", "momentseek", "demo", "--into", str(demo)], check=True, capture_output=True
        )
        films = demo / "films"
        film = sorted(films.glob("*.mp4"))[0]
        outside.mkdir()
        (outside / "secret.txt").write_bytes(SECRET)
        (outside / film.name).write_bytes(SECRET)
        shutil.copy(sorted(films.glob("*.mp4"))[-1], outside / "outside.mp4")
        process, port = serve(demo / "library", films)
        client = Client(port)
        client.ask("GET", f"{API}/search?q=a+cat")
        attacks: list[Callable[[], list[Outcome]]] = [
            lambda: [traversal(client, asked.requests, rng)],
            lambda: [races(client, film, outside / "secret.txt", asked.requests // 2)],
            lambda: [adding(client, films, film, outside / "secret.txt", max(1, asked.requests // 300))],
            lambda: [streams(client, min(999, asked.requests // 3))],
            lambda: guesses(port, asked.requests // 3),
        ]
        try:
            for attack in attacks:
                for outcome in attack():
                    print(outcome, flush=True)
                    bad += outcome.bad
            print(f"afterwards the server {'answers' if client.ask('GET', '/')[0] == 200 else 'is broken'}")
        finally:
            process.kill()
            process.wait()
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
