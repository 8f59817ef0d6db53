"""A vision endpoint on this machine: it answers each request with the next caption."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve_captions(captions: list[str], last: str, asked: list[int] | None = None) -> Iterator[str]:
    """The address of an endpoint and its model; ``last`` is said when no caption is left, ``asked`` gets how many
    pictures each request brought."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if asked is not None:
                asked.append(len(body["messages"][0]["content"]) - 1)
            text = captions.pop(0) if captions else last
            answer = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1#eye"
        server.shutdown()
        thread.join()
