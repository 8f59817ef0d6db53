"""A real HTTP server on this machine, which can resume, drop connections, redirect and fail."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Files:
    """The files to serve, and the failures to simulate."""

    def __init__(self, files):
        self.files = dict(files)
        self.drop_after = []
        """Bytes after which successive answers are cut off."""
        self.fail_with = []
        """Status codes of successive answers."""
        self.redirect = {}
        self.etag = '"v1"'
        self.asked = []
        self.url = ""


@contextmanager
def served(files):
    state = Files(files)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            name = self.path.lstrip("/")
            if self.command == "GET":
                state.asked.append((name, self.headers.get("Range")))
            if state.fail_with:
                return self.send_error(state.fail_with.pop(0))
            if name in state.redirect:
                self.send_response(302)
                self.send_header("Location", state.redirect[name])
                return self.end_headers()
            if name not in state.files:
                return self.send_error(404)
            return self._send(state.files[name])

        def _send(self, data):
            begin = 0
            if (asked := self.headers.get("Range")) and self.headers.get("If-Range") == state.etag:
                begin = int(asked.removeprefix("bytes=").rstrip("-"))
                if begin >= len(data):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(data)}")
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - begin))
            if self.path.endswith("/"):  # a page of a package index
                self.send_header("Content-Type", "text/html")
            if state.etag:
                self.send_header("ETag", state.etag)
            self.end_headers()
            if self.command == "HEAD":
                return None
            if state.drop_after:
                self.wfile.write(data[begin : begin + state.drop_after.pop(0)])
                return self.connection.close()
            return self.wfile.write(data[begin:])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
