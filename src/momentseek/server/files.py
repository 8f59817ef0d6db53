"""Sending a file, or a part of it, piece by piece: memory does not depend on its size."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from momentseek.server.errors import ApiError
from momentseek.server.ranges import Span, Unsatisfiable, matches, parse, still_valid

PIECE = 256 * 1024
KINDS = {
    ".mp4": "video/mp4", ".m4v": "video/mp4", ".f4v": "video/mp4", ".mov": "video/quicktime", ".qt": "video/quicktime",
    ".webm": "video/webm", ".mkv": "video/x-matroska", ".mk3d": "video/x-matroska", ".ogv": "video/ogg",
    ".ogm": "video/ogg", ".avi": "video/x-msvideo", ".divx": "video/x-msvideo", ".mpg": "video/mpeg",
    ".mpeg": "video/mpeg", ".mpe": "video/mpeg", ".m2v": "video/mpeg", ".mpv": "video/mpeg", ".vob": "video/mpeg",
    ".ts": "video/mp2t", ".m2t": "video/mp2t", ".m2ts": "video/mp2t", ".mts": "video/mp2t", ".3gp": "video/3gpp",
    ".3g2": "video/3gpp2", ".flv": "video/x-flv", ".wmv": "video/x-ms-wmv", ".asf": "video/x-ms-asf",
    ".mxf": "application/mxf",
}  # fmt: skip


def kind_of(path: Path) -> str:
    """The media type of a video by its container.

    >>> kind_of(Path("a/Film.MP4")), kind_of(Path("film.y4m"))
    ('video/mp4', 'application/octet-stream')
    """
    return KINDS.get(path.suffix.lower(), "application/octet-stream")


def disposition(name: str, *, attachment: bool = True) -> str:
    r"""The header that names a download; also for names that are not ASCII, or want to break out of the header.

    >>> disposition("über \"x\".csv")
    'attachment; filename="_ber _x_.csv"; filename*=UTF-8\'\'%C3%BCber%20%22x%22.csv'
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1] or "file"
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()+") else "_" for c in last)
    how = "attachment" if attachment else "inline"
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(last.encode('utf-8', 'replace'), safe='')}"


class OpenFile:
    """A regular file, open for reading, and what tells its versions apart."""

    def __init__(self, path: Path) -> None:
        try:
            # a pipe in the file's place must not make us wait
            self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        except OSError:
            raise _missing() from None
        state = os.fstat(self.handle)
        if not stat.S_ISREG(state.st_mode):
            os.close(self.handle)
            raise _missing()
        self.size = state.st_size
        self.etag = f'"{state.st_size:x}-{state.st_mtime_ns:x}"'
        self.modified = formatdate(state.st_mtime, usegmt=True)

    def read(self, at: int, length: int) -> bytes:
        """Some of its bytes."""
        if hasattr(os, "pread"):
            return os.pread(self.handle, length, at)
        os.lseek(self.handle, at, os.SEEK_SET)
        return os.read(self.handle, length)

    def close(self) -> None:
        """Let go of it."""
        os.close(self.handle)


class FileAnswer(Response):
    """A file as an answer; to GET or HEAD with ranges and conditions. ``ended`` is called when all is sent, or not."""

    def __init__(
        self, file: OpenFile, media_type: str, headers: dict[str, str], ended: Callable[[], None] | None = None
    ) -> None:
        self.file, self.ended = file, ended
        self.status_code = 200
        self.body = b""
        self.background = None
        self.media_type = media_type
        self.init_headers({"Accept-Ranges": "bytes", "ETag": file.etag, "Last-Modified": file.modified, **headers})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            part = self.prepared(Headers(scope=scope), scope["method"])
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if part is not None and scope["method"] != "HEAD":
                gone = asyncio.create_task(_gone(receive))
                try:
                    await self.stream(part, send, gone)
                finally:
                    gone.cancel()
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.file.close()
            if self.ended is not None:
                self.ended()

    def prepared(self, headers: Headers, method: str) -> Span | None:
        """Status and headers for a request, and the bytes to send."""
        file = self.file
        if method in ("GET", "HEAD") and matches(headers.get("if-none-match"), file.etag):
            self.status_code = 304
            return None
        part = None
        if method == "GET" and still_valid(headers.get("if-range"), file.etag, file.modified):
            try:
                part = parse(headers.get("range"), file.size)
            except Unsatisfiable:
                raise ApiError(
                    416,
                    f"the file has {file.size:,} bytes, and the range lies outside; ask for less",
                    headers={"Content-Range": f"bytes */{file.size}", "Accept-Ranges": "bytes"},
                ) from None
        if part is not None:
            self.status_code = 206
            self.headers["Content-Range"] = f"bytes {part.first}-{part.last}/{file.size}"
        whole = part or Span(0, file.size - 1)
        self.headers["Content-Length"] = str(len(whole))
        return whole if len(whole) else None

    async def stream(self, part: Span, send: Send, gone: asyncio.Task[None]) -> None:
        """The bytes, until the client hangs up, as a player does that seeks.

        If the file was cut short meanwhile, the connection ends early, which clients notice.
        """
        at = part.first
        while at <= part.last and not gone.done():
            piece = await asyncio.to_thread(self.file.read, at, min(PIECE, part.last + 1 - at))
            if not piece:
                return
            at += len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": at <= part.last})


async def _gone(receive: Receive) -> None:
    """Returns when the client has hung up; sending would not tell."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _missing() -> ApiError:
    return ApiError(
        404,
        "the video's file is not there; connect the drive it lies on, or add it again where it is now",
        code="file_missing",
    )
