"""How quickly the server answers: alone, for 200 clients at once while videos are added, and when sending a large file.

    python bench/serve.py [--searches 200]

The demo library is made first (a quarter of a minute) and served by a process of its own; requests go over real
sockets on this machine.

1. From the start of the process to the first answer, and to the first search.
2. One search after another, each of another query, as a person's first results after Enter; then the same again.
3. So many searches at the same instant, first with nothing else to do, then while new videos are being added: errors,
   median, p99 and slowest, and how many times as long the latter took.
4. A sparse file of 1 GB, whole and by seeking: speed, and how much the process grew.

Seconds depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

from record import Record

QUERIES = (
    "a cat", "a cup of coffee", "a rocket", "a flower", "an astronaut", "stars in the sky", "a dog on the beach",
    "two people talking", "a motorcycle", "a temple", "horses", "coins", "a page of text", "the moon", "red brick wall",
    "a woman smiles", "a microscope", "a retina", "a clock", "grass",
)  # fmt: skip


class Client:
    """One request at a time on a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes, float]:
        begun = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, time.perf_counter() - begun

    def search(self, query: str) -> tuple[int, float]:
        status, _, seconds = self.ask("GET", f"/api/v1/search?q={quote(query)}&k=20")
        return status, seconds


def start(library: Path, *more: object) -> tuple[subprocess.Popen[str], Client, float]:
    begun = time.perf_counter()
    words = [sys.executable, "-m", "momentseek", "serve", "--library", library, "--port", "0", *more]
    process = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    client = Client(int(process.stdout.readline().rsplit(":", 1)[1].strip().rstrip("/")))
    client.ask("GET", "/api/v1/status")
    return process, client, time.perf_counter() - begun


def new_films(films: Path, folder: Path, copies: int = 2) -> Path:
    """The demo's films with an empty box at the end: other bytes, so that they are encoded again."""
    folder.mkdir()
    for n in range(copies):
        for film in films.iterdir():
            if film.suffix == ".mp4":
                box = (16).to_bytes(4, "big") + b"free" + n.to_bytes(8, "big")
                (folder / f"{n}-{film.name}").write_bytes(film.read_bytes() + box)
    return folder


def line(name: str, seconds: list[float]) -> tuple[float, float]:
    """Print a line and return the median and the 99th percentile, in seconds."""
    ordered = sorted(seconds)
    median, p99 = statistics.median(ordered), ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    print(f"{name:<44} median {1e3 * median:7.1f} ms   p99 {1e3 * p99:7.1f} ms   "
          f"slowest {1e3 * ordered[-1]:7.1f} ms")  # fmt: skip
    return median, p99


def at_once(client: Client, name: str, searches: int) -> tuple[float, float]:
    """So many searches at the same instant, half of them of queries that nobody asked before."""
    with ThreadPoolExecutor(searches) as pool:
        every = [QUERIES[i % len(QUERIES)] + (f" {name} {i}" if i % 2 else "") for i in range(searches)]
        answers = list(pool.map(client.search, every))
    errors = sum(status != 200 for status, _ in answers)
    return line(f"{searches} at once {name}, {errors} errors", [seconds for _, seconds in answers])


def peak(pid: int) -> float:
    """The most memory that a process has held, in MB; 0 where the system does not say."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return int(next(row.split()[1] for row in status.splitlines() if row.startswith("VmHWM"))) / 1024


def idle(client: Client) -> dict[str, Any]:
    while True:
        status: dict[str, Any] = json.loads(client.ask("GET", "/api/v1/status")[1])
        if not status["busy"]:
            return status
        time.sleep(0.2)


def large_file(client: Client, pid: int, library: Path, place: Path) -> None:
    from momentseek.api.library import Library

    with place.open("wb") as file:
        file.truncate(1 << 30)
    values = (os.fsencode(place), place.stat().st_size, place.stat().st_mtime_ns)
    with Library.open(library) as opened:
        id = opened.videos()[0].id
        with opened.store.catalog.changes() as db:
            db.execute("UPDATE videos SET path = ?, size = ?, mtime_ns = ? WHERE id = ?", (*values, id))
    before = peak(pid)
    seeks = []
    for at in range(40):
        begun = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
        connection.request("GET", f"/api/v1/videos/{id}/media", headers={"Range": f"bytes={at * 26_000_000}-"})
        connection.getresponse().read(65536)
        connection.close()
        seeks.append(time.perf_counter() - begun)
    line("seek in 1 GB, first 64 kB", seeks)
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=120)
    connection.request("GET", f"/api/v1/videos/{id}/media")
    begun = time.perf_counter()
    answer = connection.getresponse()
    while answer.read(1 << 20):
        pass
    seconds = time.perf_counter() - begun
    print(
        f"1 GB whole: {1024 / seconds:,.0f} MB/s; the process grew by {peak(pid) - before:.0f} MB to {peak(pid):.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        demo = Path(room) / "demo"
        command = [sys.executable, "-m", "momentseek", "demo", "--into", str(demo), "--json"]
        subprocess.run(command, check=True, capture_output=True)
        more = new_films(demo / "films", Path(room) / "more")
        process, client, started = start(demo / "library", "--folder", more)
        try:
            record = Record("serve")
            print(f"process start to first answer: {started:.2f} s")
            record.figure("process start to first answer, by the clock", [started], "s")
            status, first = client.search("a first question")
            print(f"first search after that (encoders load meanwhile): {1e3 * first:.0f} ms, status {status}")
            for name in ("new queries one by one", "the same queries again"):
                seconds = [client.search(query)[1] for query in QUERIES]
                line(name, seconds)
                record.figure(name, [1e3 * s for s in seconds], "ms")
            alone = at_once(client, "with nothing else to do", asked.searches)
            folder = json.loads(client.ask("GET", "/api/v1/folders")[1])["folders"][0]["id"]
            client.ask("POST", "/api/v1/jobs", {"folder": folder})
            time.sleep(1.0)
            busy = at_once(client, "while adding", asked.searches)
            print(f"while adding / alone: median {busy[0] / alone[0]:.2f}, p99 {busy[1] / alone[1]:.2f}")
            for name, i in (("median", 0), ("99th percentile", 1)):
                what = f"{asked.searches} searches at once while adding, {name}"
                record.ratio(what, [busy[i]], "with nothing else to do", [alone[i]])
            print(f"videos in the library after adding: {idle(client)['library']['videos']}")
            large_file(client, process.pid, demo / "library", Path(room) / "large.mp4")
            begun = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            print(f"SIGTERM: exit code {process.wait(30)} after {time.perf_counter() - begun:.2f} s")
            record.save()
        finally:
            process.kill()


if __name__ == "__main__":
    main()
