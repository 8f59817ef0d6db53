"""A captioner behind HTTP, with a local server that fails as requested."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.captions.scenes import BudgetSpent, CaptionBudget, EndpointCaptioner, open_captioner
from momentseek.recognition.chat import KEY_VARIABLES

JPEG = b"\xff\xd8 a picture"


def told(caption: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": caption}}]}).encode()


class Server(ThreadingHTTPServer):
    """Answers as planned, (status, headers, body) each, and then with a caption."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list[tuple[int, dict[str, str], bytes] | None] = []
        self.asked: list[dict[str, Any]] = []
        self.release = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        step = self.server.plan.pop(0) if self.server.plan else (200, {}, told(" A dog\nruns. "))
        if step is None:
            self.server.release.wait(20)
            return
        status, headers, body = step
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.release.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def captioner(server: Server, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> EndpointCaptioner:
    for variable in KEY_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    made = open_captioner(f"http://127.0.0.1:{server.server_address[1]}/v1", "some-model", timeout=5)
    return replace(made, chat=replace(made.chat, attempts=3, sleep=pauses.append))


def test_sends_frames_in_order_and_returns_a_sentence(captioner: EndpointCaptioner, server: Server) -> None:
    assert captioner.describe([JPEG, JPEG + b"2"], "hello there") == "A dog runs."
    (asked,) = server.asked
    text, *pictures = asked["messages"][0]["content"]
    assert "hello there" in text["text"]
    sent = [base64.b64decode(p["image_url"]["url"].removeprefix("data:image/jpeg;base64,")) for p in pictures]
    assert sent == [JPEG, JPEG + b"2"]
    assert asked["model"] == "some-model"


def test_retries_respect_retry_after(captioner: EndpointCaptioner, server: Server, pauses: list[float]) -> None:
    server.plan = [(500, {}, b"oh"), (429, {"Retry-After": "7"}, b"")]
    assert captioner.describe([JPEG]) == "A dog runs."
    assert pauses == [1.0, 7.0]


def test_ignores_absurd_retry_after(captioner: EndpointCaptioner, server: Server, pauses: list[float]) -> None:
    server.plan = [(429, {"Retry-After": "9999999"}, b""), (429, {"Retry-After": "Fri, 31 Dec 2999"}, b"")]
    assert captioner.describe([JPEG]) == "A dog runs."
    assert pauses == [60.0, 2.0]


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ((500, {}, b"x"), "answered HTTP 500, 3 times"),
        ((200, {}, b"<html>"), "no chat completion, 3 times"),
        ((200, {}, told(None)), "no chat completion, 3 times"),
        ((200, {}, b" " * (5 << 20)), "no chat completion, 3 times"),
        ((302, {"Location": "http://elsewhere/"}, b""), "redirects to 'http://elsewhere/' are not followed"),
        ((401, {}, b""), "set MOMENTSEEK_CHAT_KEY"),
        ((200, {}, told(" \x00\n…")), "answered without words"),
    ],
    ids=["broken", "page", "nothing", "huge", "redirect", "key", "wordless"],
)
def test_permanent_errors_are_one_sentence(
    answer: tuple[int, dict[str, str], bytes], what: str, captioner: EndpointCaptioner, server: Server
) -> None:
    server.plan = [answer] * 3
    with pytest.raises(MomentseekError, match=what) as refused:
        captioner.describe([JPEG])
    assert "\n" not in str(refused.value)


def test_silent_endpoint_times_out(captioner: EndpointCaptioner, server: Server) -> None:
    server.plan = [None] * 2
    quick = replace(captioner, chat=replace(captioner.chat, timeout=0.1, attempts=2))
    with pytest.raises(MomentseekError, match=r"gave no answer within 0\.1 s, 2 times"):
        quick.describe([JPEG])


def test_cached_answers_are_free(captioner: EndpointCaptioner, server: Server, tmp_path: Path) -> None:
    kept = replace(captioner, cache=tmp_path / "kept", budget=CaptionBudget(requests=1))
    assert kept.describe([JPEG]) == kept.describe([JPEG]) == "A dog runs."
    assert len(server.asked) == 1
    with pytest.raises(BudgetSpent, match="budget of 1 requests is used up"):
        kept.describe([JPEG, JPEG])
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(b"{")
    with pytest.raises(BudgetSpent):  # a damaged answer is no answer
        kept.describe([JPEG])
    other = replace(kept, chat=replace(kept.chat, model="other"), budget=CaptionBudget())
    assert other.describe([JPEG]) == "A dog runs."
    assert len(server.asked) == 2


def test_time_budget(captioner: EndpointCaptioner, server: Server) -> None:
    with pytest.raises(BudgetSpent, match="budget of 0 s is used up"):
        replace(captioner, budget=CaptionBudget(seconds=0)).describe([JPEG])
    assert server.asked == []


def test_long_answer_is_shortened_and_bad_frame_refused(captioner: EndpointCaptioner, server: Server) -> None:
    server.plan = [(200, {}, told("word " * 1000))]
    assert len(captioner.describe([JPEG])) <= 502
    for frames, what in (([], "1 to 8 frames, not 0"), ([b"PNG"], "must be a JPEG"), ([JPEG] * 9, "not 9")):
        with pytest.raises(MomentseekError, match=what):
            captioner.describe(frames)
    assert len(server.asked) == 1


def test_rejects_invalid_address() -> None:
    with pytest.raises(MomentseekError, match="not a web address"):
        open_captioner("file:///etc/passwd", "m")
    with pytest.raises(MomentseekError, match="needs an address"):
        open_captioner("https://host/v1", None)
