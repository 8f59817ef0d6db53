"""A server in this process that speaks as much of S3 as a library needs, in memory, and counts what is asked of it.

It is for tests alone: buckets that exist are given, signatures are not checked, and a path can be forbidden.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import pytest


class S3Server:
    """Objects by ``bucket/key``; ``calls`` lists each request as its method and path."""

    def __init__(self, *buckets: str, host: str = "127.0.0.1", port: int = 0) -> None:
        self.buckets = set(buckets)
        self.objects: MutableMapping[str, bytes] = {}
        self.forbidden: str | None = None
        """What requests may not have in their paths."""
        self.calls: list[tuple[str, str]] = []
        self.sent = 0
        """Bytes of objects that were fetched."""
        self.lock = threading.Lock()
        self._uploads: dict[str, dict[int, bytes]] = {}
        handler = type("Handler", (_Handler,), {"store": self})
        self._server = ThreadingHTTPServer((host, port), handler)
        self.address = f"http://{host}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, query: dict[str, list[str]], headers: Any, body: bytes) -> tuple[int, Any]:
        """The status of the answer, and its XML text, bytes, or None."""
        bucket, _, key = path.partition("/")
        if self.forbidden is not None and self.forbidden in path:
            return 403, "<Error><Code>AccessDenied</Code></Error>"
        if bucket not in self.buckets:
            return 404, "<Error><Code>NoSuchBucket</Code></Error>"
        if not key and method == "POST":
            keys = [unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", body.decode())]
            for one in keys:
                self.objects.pop(f"{bucket}/{one}", None)
            done = "".join(f"<Deleted><Key>{escape(one)}</Key></Deleted>" for one in keys)
            return 200, f"<DeleteResult>{done}</DeleteResult>"
        if not key:
            return 200, self._list(bucket, query.get("prefix", [""])[0])
        if method == "POST" and "uploads" in query:
            number = str(len(self._uploads))
            self._uploads[number] = {}
            return 200, f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
        if "uploadId" in query:
            return self._part(method, path, query, body)
        there = self.objects.get(path)
        if method == "PUT":
            expected = headers.get("If-Match")
            if expected is not None and (there is None or expected != etag(there)):
                return 412, "<Error><Code>PreconditionFailed</Code></Error>"
            if headers.get("If-None-Match") is not None and there is not None:
                return 412, "<Error><Code>PreconditionFailed</Code></Error>"
            self.objects[path] = body
            return 200, None
        if method == "DELETE":
            self.objects.pop(path, None)
            return 204, None
        if there is None:
            return 404, "<Error><Code>NoSuchKey</Code></Error>"
        self.sent += len(there)
        return 200, there

    def _part(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> tuple[int, Any]:
        parts = self._uploads[query["uploadId"][0]]
        if method == "PUT":
            parts[int(query["partNumber"][0])] = body
            return 200, None
        whole = b"".join(data for _, data in sorted(parts.items()))
        self.objects[path] = whole
        tag = escape(etag(whole))
        return 200, f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"

    def _list(self, bucket: str, prefix: str) -> str:
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(etag(data))}</ETag><Size>{len(data)}</Size></Contents>"
            for path, data in sorted(self.objects.items())
            for key in [path.removeprefix(f"{bucket}/")]
            if path.startswith(f"{bucket}/") and key.startswith(prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"


def etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    store: S3Server
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        path = unquote(parts.path).strip("/")
        with self.store.lock:
            self.store.calls.append((self.command, path))
            query = parse_qs(parts.query, keep_blank_values=True)
            status, said = self.store.answer(self.command, path, query, self.headers, body)
            now = self.store.objects.get(path, body)
        data = said.encode() if isinstance(said, str) else said or b""
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked and status == 200:
            first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            data = data[first : last + 1]
        else:
            self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", etag(now))
        self.send_header("Last-Modified", formatdate(1767225600, usegmt=True))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = _do

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve_s3(monkeypatch: pytest.MonkeyPatch, *buckets: str) -> Iterator[S3Server]:
    """A server for the time of a ``with``, and the environment by which obstore finds it."""
    server = S3Server(*buckets)
    settings = {"ENDPOINT_URL": server.address, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "here"}
    with monkeypatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(f"AWS_{name}", value)
        try:
            yield server
        finally:
            server.close()
