"""Whole searches, in a process and by a server with many clients, of several versions in turns.

    python bench/searches.py LIBRARY [--version NAME=SOURCES]... [--queries FILE] [--clients 1,32] [--seconds 6]
                             [--rounds 3] [--processes 2]
    python bench/searches.py LIBRARY --soak 50000

A version is a folder of sources (``git worktree add OLD COMMIT``, then build the kernels in it); without any, only
these sources are measured. ``NAME=SOURCES=LIBRARY`` gives a version a library of its own, if it reads no other. Every
query is asked once: lines of FILE, or sentences of two nouns, so no cache of whole queries can help; words come again,
as they do in what people ask.

1. In a process with one thread: milliseconds of the processor for a search, those in the text encoder and the others,
   and by the clock.
2. A server over sockets, with clients that each ask again as soon as they have an answer: searches a second, latency,
   the processor's time, and cores that were used (fewer than there are: others use the machine, or threads wait).
3. ``--soak``: memory of the server's processes after each tenth of so many requests.

``--clients ''`` leaves the server out, ``--searches 0`` the process.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from momentseek.core.reports import text_table
from record import Record

WARM_SEARCHES = 30
HERE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Version:
    """Sources of the package, the library that they search, and more arguments of its server."""

    name: str
    sources: Path
    library: Path
    arguments: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.sources / "src")}


@dataclass
class Load:
    """What clients saw of a server, over all rounds."""

    seconds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    errors: int = 0


def read_queries(file: Path | None) -> list[str]:
    if file is not None:
        return file.read_text().splitlines()
    from momentseek.recognition.encoders.things import kind_names

    nouns = [noun for noun in kind_names() if noun.isalpha()]
    order = np.random.default_rng(5).permutation(len(nouns))
    pairs = itertools.product(range(0, len(nouns), 2), range(1, len(nouns), 2))
    found = [f"a {nouns[order[a]]} next to a {nouns[order[b]]}" for a, b in itertools.islice(pairs, 200_000)]
    np.random.default_rng(6).shuffle(found)
    return found


# in a process


def measure_process(library: str, queries: Sequence[str]) -> None:
    """In a process of its own: milliseconds of each search, printed as JSON."""
    import onnxruntime

    import momentseek

    spent = 0.0
    run = onnxruntime.InferenceSession.run

    def timed(self: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal spent
        begun = time.process_time()
        try:
            return run(self, *arguments, **more)
        finally:
            spent += time.process_time() - begun

    onnxruntime.InferenceSession.run = timed
    rows = []
    with momentseek.Library.open(library, create=False) as opened:
        for number, query in enumerate(queries):
            spent, clock, begun = 0.0, time.perf_counter(), time.process_time()
            opened.search(query, 21)
            used, wall = time.process_time() - begun, time.perf_counter() - clock
            if number >= WARM_SEARCHES:
                rows.append((1e3 * used, 1e3 * spent, 1e3 * (used - spent), 1e3 * wall))
    print(json.dumps(rows))


def ask_process(version: Version, queries: Sequence[str]) -> list[list[float]]:
    command = [sys.executable, __file__, str(version.library), "--child"]
    one = {"MOMENTSEEK_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, input=json.dumps(queries), env=version.environment | one, check=True, capture_output=True, text=True
    )
    rows: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return rows


# by a server


class Server:
    """A server that runs, with what its processes have used."""

    def __init__(self, version: Version) -> None:
        command = [sys.executable, "-m", "momentseek", "serve", "--library", version.library, "--port", "0"]
        self._process = subprocess.Popen(
            [str(word) for word in (*command, *version.arguments)],
            stdout=subprocess.PIPE, text=True, env=version.environment,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rsplit(":", 1)[1].strip().rstrip("/"))

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _pids(self) -> list[int]:
        found = [self._process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        return found

    def processor(self) -> float:
        """Seconds of the processor that all its processes have had."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._pids()]
        return sum(int(some[11]) + int(some[12]) for some in fields) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Megabytes that its processes have of their own; what they map of files is shared."""
        lines = [line for pid in self._pids() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


class Client:
    """One connection, which stays open."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)

    async def search(self, query: str) -> int:
        """The status of the answer, all of which has come."""
        request = f"GET /api/v1/search?q={quote(query)}&k=20 HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n\r\n"
        self._writer.write(request.encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await self._reader.readexactly(int(length.split(b":")[1]))
        return int(head.split()[1])

    def close(self) -> None:
        self._writer.close()


async def warm_up(port: int, queries: Iterator[str]) -> None:
    client = Client(port)
    await client.open()
    for wait in (4.0, 0.0):  # processes load their encoders after the first answers
        for _ in range(WARM_SEARCHES):
            await client.search(next(queries))
        await asyncio.sleep(wait)
    client.close()


async def ask_server(port: int, clients: int, queries: Iterator[str], seconds: float) -> list[tuple[float, int]]:
    """Seconds and status of every search that clients made in a time."""
    found: list[tuple[float, int]] = []
    until = time.perf_counter() + seconds

    async def go_on() -> None:
        client = Client(port)
        await client.open()
        while time.perf_counter() < until and (query := next(queries, None)) is not None:
            begun = time.perf_counter()
            status = await client.search(query)
            found.append((time.perf_counter() - begun, status))
        client.close()

    await asyncio.gather(*(go_on() for _ in range(clients)))
    return found


def measure_server(version: Version, clients: Sequence[int], queries: Iterator[str], seconds: float,
                   into: dict[int, Load]) -> None:  # fmt: skip
    """One round of a version with each number of clients."""
    server = Server(version)
    try:
        asyncio.run(warm_up(server.port, queries))
        for number in clients:
            before, begun = server.processor(), time.perf_counter()
            found = asyncio.run(ask_server(server.port, number, queries, seconds))
            took, used = time.perf_counter() - begun, server.processor() - before
            load = into.setdefault(number, Load())
            load.seconds += [one for one, _ in found]
            load.rates.append(len(found) / took)
            load.processor.append(1e3 * used / max(1, len(found)))
            load.cores.append(used / took)
            load.errors += sum(status != 200 for _, status in found)
    finally:
        server.stop()


def soak(version: Version, queries: Iterator[str], requests: int, clients: int) -> None:
    """Print the server's memory after each tenth of some requests."""
    server = Server(version)
    try:
        asyncio.run(warm_up(server.port, queries))
        print(f"{version.name}: {server.memory():,.0f} MB before")
        for part in range(1, 11):
            some = itertools.islice(queries, requests // 10)
            found = asyncio.run(ask_server(server.port, clients, some, 1e9))
            errors = sum(status != 200 for _, status in found)
            print(f"{part * requests // 10:,} requests: {server.memory():,.0f} MB, {errors} errors", flush=True)
    finally:
        server.stop()


# tables


def middle(values: Sequence[float]) -> str:
    """A median, with the least and the greatest of several."""
    several = f" [{min(values):.3g}, {max(values):.3g}]" if len(values) > 1 else ""
    return f"{statistics.median(values):.3g}{several}"


def print_processes(found: dict[str, list[list[float]]], record: Record) -> None:
    rows = []
    for name, searches in found.items():
        medians = [statistics.median(column) for column in zip(*searches, strict=True)]
        rows.append([name, *(f"{value:.1f}" for value in medians)])
        record.figure(f"{name}, a search in the process", [one[0] for one in searches], "ms")
    print(text_table(["in a process, ms", "processor", "encoder", "the rest", "by the clock"], rows))


def print_loads(loads: dict[str, dict[int, Load]], record: Record) -> None:
    head = ["server", "clients", "searches a second", "p50, ms", "p95, ms", "processor, ms", "cores", "errors"]
    rows = []
    for name, by_clients in loads.items():
        for clients, load in by_clients.items():
            half, most = 1e3 * np.quantile(load.seconds, [0.5, 0.95])
            numbers = [middle(load.rates), f"{half:.0f}", f"{most:.0f}", middle(load.processor), middle(load.cores)]
            rows.append([name, str(clients), *numbers, str(load.errors)])
            record.figure(f"{name}, {clients} clients", load.rates, "searches a second", "more")
    print(text_table(head, rows))
    first, *others = loads
    for name in others:
        for clients in loads[first]:
            old, new = loads[first][clients].rates, loads[name][clients].rates
            ratios = [b / a for a, b in zip(old, new, strict=True)]
            print(f"{name} / {first}, {clients} clients: {middle(ratios)} times the searches a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--version", action="append", default=[], metavar="NAME=SOURCES[=LIBRARY]")
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--clients", default="1,32")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2, help="also a server with this many; 0 for none")
    parser.add_argument("--searches", type=int, default=200, help="searches in the process, in each round; 0 for none")
    parser.add_argument("--soak", type=int, metavar="REQUESTS")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        measure_process(str(asked.library), json.load(sys.stdin))
        return
    versions = []
    for given in asked.version:
        name, sources, *library = given.split("=")
        versions.append(Version(name, Path(sources), Path(library[0]) if library else asked.library))
    versions.append(Version("these sources", HERE, asked.library))
    if asked.processes:
        arguments = ("--search-processes", str(asked.processes))
        versions.append(Version(f"these sources, {asked.processes} processes", HERE, asked.library, arguments))
    queries = iter(read_queries(asked.queries))
    if asked.soak:
        soak(versions[-1], queries, asked.soak, max(map(int, asked.clients.split(","))))
        return
    record = Record("searches")
    clients = [int(number) for number in asked.clients.split(",") if number]
    found: dict[str, list[list[float]]] = {}
    loads: dict[str, dict[int, Load]] = {version.name: {} for version in versions}
    for _ in range(asked.rounds):
        some = list(itertools.islice(queries, asked.searches + WARM_SEARCHES)) if asked.searches else []
        for version in versions:
            if some and not version.arguments:
                found.setdefault(version.name, []).extend(ask_process(version, some))
            if clients:
                measure_server(version, clients, queries, asked.seconds, loads[version.name])
    if found:
        print_processes(found, record)
    if clients:
        print_loads(loads, record)
    record.save()


if __name__ == "__main__":
    main()
