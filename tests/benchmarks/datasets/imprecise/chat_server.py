"""A chat endpoint on this machine that misbehaves as told."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Lines = list[tuple[int, str]]


class Server(ThreadingHTTPServer):
    """Answers line by line with ``rewrite``; ``plan`` holds what to do instead at the first requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, rewrite: Callable[[str], str], plan: list[Callable[[Handler, Lines], object] | int]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.rewrite = rewrite
        self.plan = plan
        self.requests: list[dict[str, object]] = []
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({**body, "key": self.headers.get("Authorization"), "path": self.path})
        asked = [(int(n), q) for n, q in re.findall(r"^(\d+)\. (.*)$", body["messages"][1]["content"], re.MULTILINE)]
        step = self.server.plan.pop(0) if self.server.plan else None
        if isinstance(step, int):
            self.reply(json.dumps({"error": {"message": f"no {self.headers.get('Authorization')}"}}).encode(), step)
        elif step is not None:
            step(self, asked)
        else:
            self.lines([(n, self.server.rewrite(q)) for n, q in asked])

    def lines(self, lines: Lines) -> None:
        content = "\n".join(f"{n}. {q}" for n, q in lines)
        self.reply(json.dumps({"choices": [{"message": {"content": content}}]}).encode())

    def reply(self, data: bytes, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def never(handler: Handler, _: Lines) -> None:
    """No answer until the test is over."""
    handler.server.release.wait(20)


def garbage(handler: Handler, _: Lines) -> None:
    handler.reply(b"<html>no</html>")


def wrong_shape(handler: Handler, _: Lines) -> None:
    handler.reply(b'{"choices": []}')


def chatter(handler: Handler, _: Lines) -> None:
    handler.reply(b'{"choices": [{"message": {"content": "I would love to help!"}}]}')


def reverse(handler: Handler, asked: Lines) -> None:
    handler.lines([(n, handler.server.rewrite(q)) for n, q in reversed(asked)])


def drop_second(handler: Handler, asked: Lines) -> None:
    handler.lines([(n, handler.server.rewrite(q)) for n, q in asked if n != 2])


def half_a_character(handler: Handler, asked: Lines) -> None:
    handler.lines([(n, "a \ud800 man") for n, _ in asked])


def short(handler: Handler, _: Lines) -> None:
    """Less than was announced."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')


def no_status(handler: Handler, _: Lines) -> None:
    handler.wfile.write(b"what?\r\n\r\n")


def drip(handler: Handler, _: Lines) -> None:
    """A byte now and then, for ever."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.release.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def drip_headers(handler: Handler, _: Lines) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while not handler.server.release.wait(0.02):
        handler.wfile.write(b"x")
        handler.wfile.flush()


def drip_refusal(handler: Handler, asked: Lines) -> None:
    handler.wfile.write(b"HTTP/1.1 500 No\r\n\r\n")
    while not handler.server.release.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def redirect(to: str, code: int = 302) -> Callable[[Handler, Lines], None]:
    def step(handler: Handler, _: Lines) -> None:
        handler.send_response(code)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return step


@contextmanager
def serving(rewrite: Callable[[str], str] = lambda q: q.replace("Ross", "a man"), *plan: object) -> Iterator[Server]:
    server = Server(rewrite, list(plan))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
