"""The server as a process of its own: real sockets, signals, curl and memory."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from processes import start_momentseek

from momentseek.api.library import Library
from momentseek.server.process import serve
from momentseek.server.settings import ServerSettings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and /proc")


class Running:
    """A server that runs, and its port."""

    def __init__(self, *arguments: object, slow: float = 0.0) -> None:
        environment = {**os.environ, "LIGHT_SLOW": str(slow), "LIGHT_PACE": "0.2", "PYTHONUNBUFFERED": "1"}
        self.process = start_momentseek("serve", "--port", 0, *arguments, light=True, env=environment)
        self.first = self.process.stdout.readline()
        self.port = int(self.first.rsplit(":", 1)[1].strip().rstrip("/"))

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {"Content-Type": "application/json", **headers} if body is not None else headers
            connection.request(method, path, None if body is None else json.dumps(body), given)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def memory(self) -> int:
        """The most it has ever held, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code and what was printed."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.wait(), out, err


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def make(*arguments: object, **more: Any) -> Running:
        running.append(Running(*arguments, **more))
        return running[-1]

    yield make
    for one in running:
        one.process.kill()
        one.process.communicate()


def test_the_address_is_printed_and_ctrl_c_is_a_quiet_end(start: Callable[..., Running], shared: Path) -> None:
    server = start("--library", shared / "library")
    assert server.first == f"library: http://127.0.0.1:{server.port}/\n"
    assert server.request("GET", "/api/v1/status")[0] == 200
    assert server.request("GET", "/api/v1/search?q=private+words")[0] == 200
    assert server.request("GET", "/api/v1/status?token=private")[0] == 400
    assert server.stop(signal.SIGINT) == (0, "", "")


def test_a_signal_right_after_the_address_is_heard(tmp_path: Path) -> None:
    """Between the first line and the moment when uvicorn listens to signals."""
    lines: list[str] = []

    def interrupt(line: str) -> None:
        lines.append(line)
        signal.raise_signal(signal.SIGINT)

    Library.open(tmp_path / "library", create=True).close()
    serve(tmp_path / "library", ServerSettings(port=0), echo=interrupt)
    assert len(lines) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_for_others_a_token_is_made_and_asked_for(start: Callable[..., Running], shared: Path) -> None:
    server = start("--library", shared / "library", "--host", "0.0.0.0")
    token = server.process.stdout.readline().removeprefix("token: ").strip()
    assert len(token) > 30
    assert server.request("GET", "/api/v1/status")[0] == 401
    assert server.request("GET", "/api/v1/status", Authorization=f"Bearer {token}")[0] == 200
    while (line := server.process.stdout.readline()).startswith("on other machines: "):
        assert f":{server.port}/" in line
        assert "[" not in line  # it does not listen there
    assert "--allowed-host NAME" in line
    assert server.stop() == (0, "", "")


def test_second_library_is_served_and_open_stream_does_not_delay_shutdown(
    start: Callable[..., Running], shared: Path, other: Path
) -> None:
    server = start("--library", shared / "library", "--compare-with", other)
    assert server.request("GET", "/api/v1/status")[1]["encoders"] == ["colours", "colours-2"]
    assert server.request("GET", "/api/v1/compare?q=red&a=&b=encoder%3Dcolours-2")[0] == 200
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    stream.request("GET", "/api/v1/jobs/events")
    answer = stream.getresponse()
    assert answer.status == 200
    assert server.stop() == (0, "", "")
    assert answer.read() == b""
    stream.close()


def test_a_taken_port_is_said_in_a_sentence(shared: Path, light: None, momentseek: Callable[..., Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = momentseek("serve", "--library", shared / "library", "--port", taken.getsockname()[1])
    assert (done.returncode, done.stdout) == (2, "")
    assert "is taken" in done.stderr


def test_what_cannot_be_served_is_said_in_a_sentence(
    shared: Path, light: None, tmp_path: Path, momentseek: Callable[..., Any]
) -> None:
    wrong = {
        "has no library": ["--library", tmp_path / "none", "--no-changes"],
        "nothing to watch; name a folder (--folder FOLDER)": ["--library", shared / "library", "--watch"],
        "is not an address": ["--library", shared / "library", "--host", "203.0.113.7", "--token", "x" * 20],
        "16 or more": ["--library", shared / "library", "--token", "short"],
    }
    for words, arguments in wrong.items():
        done = momentseek("serve", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr


@pytest.fixture(scope="module")
def large(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video of 256 MB that takes no room, in a library beside it; only its last bytes are something."""
    big = tmp_path_factory.mktemp("large") / "large.mp4"
    place = Path(shutil.copytree(shared / "library", big.parent / "library"))
    with big.open("wb") as file:
        file.truncate(1 << 28)
        file.seek((1 << 28) - 1000)
        file.write(bytes(i % 251 for i in range(1000)))
    with Library.open(place) as library, library.store.catalog.changes() as db:
        values = (os.fsencode(big), big.stat().st_size, big.stat().st_mtime_ns)
        db.execute("UPDATE videos SET path = ?, size = ?, mtime_ns = ? WHERE id = 1", values)
    return big


@pytest.fixture(scope="module")
def sending(large: Path) -> Iterator[Running]:
    """A server that has the large video to send."""
    server = Running("--library", large.parent / "library")
    yield server
    assert server.stop()[0] == 0


@pytest.mark.slow
def test_a_large_file_is_sent_in_bounded_memory(sending: Running) -> None:
    server = sending
    assert server.request("GET", "/api/v1/search?q=green")[0] == 200
    before = server.memory()

    def fetch(headers: dict[str, str], limit: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", "/api/v1/videos/1/media", headers=headers)
        answer = connection.getresponse()
        got = 0
        while got < limit and (piece := answer.read(1 << 20)):
            got += len(piece)
        connection.close()  # as a browser does that seeks
        return got

    with ThreadPoolExecutor(8) as pool:
        seeks = [{"Range": f"bytes={i * 8_000_000}-"} for i in range(30)]
        assert min(pool.map(lambda h: fetch(h, 1 << 20), seeks)) >= 1 << 20
    assert fetch({}, 1 << 31) == 1 << 28  # the whole of it
    assert server.memory() - before < 64 << 20


def test_a_stop_with_a_client_that_does_not_read_is_quiet(start: Callable[..., Running], large: Path) -> None:
    server = start("--library", large.parent / "library")
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as one:
        one.sendall(b"GET /api/v1/videos/1/media HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one.recv(1 << 10).startswith(b"HTTP/1.1 200")
        assert server.request("GET", "/api/v1/status")[0] == 200
        assert server.stop() == (0, "", "")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_curl_gets_the_same_bytes(sending: Running, large: Path) -> None:
    size = large.stat().st_size

    def curl(*options: str) -> bytes:
        url = f"http://127.0.0.1:{sending.port}/api/v1/videos/1/media"
        return subprocess.run(["curl", "-sS", *options, url], capture_output=True, check=True, timeout=60).stdout

    with large.open("rb") as file:
        for first, last in ((0, 0), (size - 1500, size - 1), (size - 500, size + 500), (1 << 27, (1 << 27) + 300_000)):
            file.seek(first)
            assert curl("-r", f"{first}-{last}") == file.read(last - first + 1)
        file.seek(size - 700)
        assert curl("-r", "-700") == file.read()
    head = curl("-I").decode().lower()
    assert f"content-length: {size}" in head
    assert "accept-ranges: bytes" in head
    assert curl("-o", "/dev/null", "-w", "%{http_code}", "-r", f"{size}-") == b"416"


@pytest.fixture
def many(tmp_path: Path, make_video: Callable[..., Path]) -> Path:
    films = tmp_path / "many"
    films.mkdir()
    for i in range(20):
        make_video(films / f"{i}.mp4", [(6.0, (12 * i, 200, 90))], rate=5, size=(64, 48))
    return films


def test_nothing_is_lost_when_it_is_told_to_stop(
    start: Callable[..., Running], place: Path, many: Path, light: None
) -> None:
    server = start("--library", place, "--folder", many, slow=0.2)
    folder = server.request("GET", "/api/v1/folders")[1]["folders"][0]["id"]
    job = server.request("POST", "/api/v1/jobs", {"folder": folder})[1]
    following: list[str] = []

    def follow() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", f"/api/v1/jobs/{job['id']}/events")
        following.append(connection.getresponse().read().decode())
        connection.close()

    listener = threading.Thread(target=follow)
    listener.start()
    seen, begun = 0, time.monotonic()
    while seen < 3 and time.monotonic() < begun + 60:  # two were there before
        seen = server.request("GET", "/api/v1/status")[1]["library"]["videos"]
        time.sleep(0.02)
    code, _, err = server.stop()
    listener.join(20)
    assert (code, err) == (0, "")
    last = json.loads(following[0].strip().split("\n\n")[-1].split("data: ", 1)[1])
    assert last["state"] == "cancelled"
    with Library.open(place) as library:
        kept = {video.name for video in library.videos()}
        assert max(seen, 3) <= len(kept) < 22
        assert len(kept) - 2 == last["added"]
        report = library.verify()
        assert not report.problems
        library.add(many)
        assert len(library.videos()) == 22


@pytest.mark.slow
def test_200_searches_at_once_while_adding(start: Callable[..., Running], place: Path, many: Path) -> None:
    server = start("--library", place, "--folder", many, slow=0.02)
    folder = server.request("GET", "/api/v1/folders")[1]["folders"][0]["id"]
    assert server.request("POST", "/api/v1/jobs", {"folder": folder})[0] == 202
    with ThreadPoolExecutor(200) as pool:
        words = ("red", "green", "blue", "running dog")
        answers = list(
            pool.map(
                lambda i: server.request("GET", f"/api/v1/search?q={words[i % 4].replace(' ', '+')}&all=true"),
                range(200),
            )
        )
    assert {status for status, _ in answers} == {200}
    assert all(answer["hits"] for _, answer in answers)
    for _ in range(400):
        if not server.request("GET", "/api/v1/status")[1]["busy"]:
            break
        time.sleep(0.05)
    assert server.request("GET", "/api/v1/status")[1]["library"]["videos"] == 22
    assert server.stop()[0] == 0
