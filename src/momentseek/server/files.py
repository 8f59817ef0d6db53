"""Send a file, or a range of it, in chunks, so that memory does not depend on its size."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from momentseek.core.pinned_file import FileChangedError, PinnedFile
from momentseek.server.errors import ApiError

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,400})\s*-\s*(\d{0,400})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ByteRange:
    """The bytes ``first`` to ``last`` of a file, both included."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


class UnsatisfiableRangeError(Exception):
    """A well-formed range that holds no byte of the file."""


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """The range of bytes that a ``Range`` header asks for; None means the whole file.

    Without a header, with one that cannot be parsed, or with several ranges at once, the whole file is sent.

    >>> parse_range("bytes=0-99", 1000), parse_range("bytes=-10", 1000), parse_range("bytes=990-", 1000)
    (ByteRange(first=0, last=99), ByteRange(first=990, last=999), ByteRange(first=990, last=999))
    >>> parse_range("bytes=5-2", 1000), parse_range("bytes=0-1,5-6", 1000), parse_range("lines=1-2", 1000)
    (None, None, None)
    >>> parse_range("bytes=1000-", 1000)
    Traceback (most recent call last):
        ...
    momentseek.server.files.UnsatisfiableRangeError
    """
    match = _RANGE.fullmatch(header) if header is not None else None
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        length = min(int(match[2]), size)
        if length == 0:
            raise UnsatisfiableRangeError
        return ByteRange(size - length, size - 1)
    first = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    if first >= size:
        raise UnsatisfiableRangeError
    return ByteRange(first, min(last, size - 1))


def if_range_matches(if_range: str | None, etag: str, modified: str) -> bool:
    """Whether ``If-Range`` names the present version of the file, so that a range fits what the client has.

    >>> if_range_matches('"a"', '"a"', "…"), if_range_matches('W/"a"', '"a"', "…"), if_range_matches(None, '"a"', "…")
    (True, False, True)
    """
    return if_range is None or if_range.strip() in (etag, modified)


def etag_matches(if_none_match: str | None, etag: str) -> bool:
    """Whether ``If-None-Match`` names the present version, so that the client's copy is still good.

    >>> etag_matches('W/"x", "a"', '"a"'), etag_matches("*", '"a"'), etag_matches(None, '"a"')
    (True, True, False)
    """
    if if_none_match is None:
        return False
    given = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return "*" in given or etag in given


CHUNK_BYTES = 256 * 1024
VIDEO_MEDIA_TYPES = {
    ".mp4": "video/mp4", ".m4v": "video/mp4", ".f4v": "video/mp4", ".mov": "video/quicktime", ".qt": "video/quicktime",
    ".webm": "video/webm", ".mkv": "video/x-matroska", ".mk3d": "video/x-matroska", ".ogv": "video/ogg",
    ".ogm": "video/ogg", ".avi": "video/x-msvideo", ".divx": "video/x-msvideo", ".mpg": "video/mpeg",
    ".mpeg": "video/mpeg", ".mpe": "video/mpeg", ".m2v": "video/mpeg", ".mpv": "video/mpeg", ".vob": "video/mpeg",
    ".ts": "video/mp2t", ".m2t": "video/mp2t", ".m2ts": "video/mp2t", ".mts": "video/mp2t", ".3gp": "video/3gpp",
    ".3g2": "video/3gpp2", ".flv": "video/x-flv", ".wmv": "video/x-ms-wmv", ".asf": "video/x-ms-asf",
    ".mxf": "application/mxf",
}  # fmt: skip


def video_media_type(path: Path) -> str:
    """The media type of a video file by its suffix.

    >>> video_media_type(Path("a/Film.MP4")), video_media_type(Path("film.y4m"))
    ('video/mp4', 'application/octet-stream')
    """
    return VIDEO_MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream")


def content_disposition(name: str, *, attachment: bool = True) -> str:
    r"""The Content-Disposition header that names a download, safe for any file name.

    >>> content_disposition("über \"x\".csv")
    'attachment; filename="_ber _x_.csv"; filename*=UTF-8\'\'%C3%BCber%20%22x%22.csv'
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1] or "file"
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()+") else "_" for c in last)
    how = "attachment" if attachment else "inline"
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(last.encode('utf-8', 'replace'), safe='')}"


class OpenFile:
    """A regular file that is open for reading, with its size, ETag and modification date."""

    def __init__(self, file: PinnedFile) -> None:
        try:
            self.handle = file.descriptor()
        except FileChangedError:
            raise _file_replaced() from None
        except (OSError, ValueError):
            raise _file_missing() from None
        state = os.fstat(self.handle)
        self.size = state.st_size
        self.etag = f'"{state.st_size:x}-{state.st_mtime_ns:x}"'
        self.modified = formatdate(state.st_mtime, usegmt=True)

    def read(self, at: int, length: int) -> bytes:
        """Read up to ``length`` bytes from the offset ``at``."""
        if hasattr(os, "pread"):
            return os.pread(self.handle, length, at)
        os.lseek(self.handle, at, os.SEEK_SET)
        return os.read(self.handle, length)

    def close(self) -> None:
        """Close the file that is being sent."""
        os.close(self.handle)


class RangeFileResponse(Response):
    """A response that sends a file, with ranges and conditional requests; calls ``on_end`` when sending has ended."""

    def __init__(
        self, file: OpenFile, media_type: str, headers: dict[str, str], on_end: Callable[[], None] | None = None
    ) -> None:
        self.file, self.on_end = file, on_end
        self.status_code = 200
        self.body = b""
        self.background = None
        self.media_type = media_type
        self.init_headers({"Accept-Ranges": "bytes", "ETag": file.etag, "Last-Modified": file.modified, **headers})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            part = self.prepare(Headers(scope=scope), scope["method"])
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if part is not None and scope["method"] != "HEAD":
                hung_up = asyncio.create_task(_wait_for_disconnect(receive))
                try:
                    await self.stream(part, send, hung_up)
                finally:
                    hung_up.cancel()
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.file.close()
            if self.on_end is not None:
                self.on_end()

    def prepare(self, headers: Headers, method: str) -> ByteRange | None:
        """Set status and headers for a request; returns the bytes to send, or None."""
        file = self.file
        if method in ("GET", "HEAD") and etag_matches(headers.get("if-none-match"), file.etag):
            self.status_code = 304
            return None
        part = None
        if method == "GET" and if_range_matches(headers.get("if-range"), file.etag, file.modified):
            try:
                part = parse_range(headers.get("range"), file.size)
            except UnsatisfiableRangeError:
                raise ApiError(
                    416,
                    f"the file has {file.size:,} bytes, and the range lies outside of it; ask for another range",
                    headers={"Content-Range": f"bytes */{file.size}", "Accept-Ranges": "bytes"},
                ) from None
        if part is not None:
            self.status_code = 206
            self.headers["Content-Range"] = f"bytes {part.first}-{part.last}/{file.size}"
        whole = part or ByteRange(0, file.size - 1)
        self.headers["Content-Length"] = str(len(whole))
        return whole if len(whole) else None

    async def stream(self, part: ByteRange, send: Send, hung_up: asyncio.Task[None]) -> None:
        """Send the bytes until the client hangs up, as a player does when it seeks.

        If the file has been truncated meanwhile, the connection ends early, which clients notice.
        """
        at = part.first
        while at <= part.last and not hung_up.done():
            chunk = await asyncio.to_thread(self.file.read, at, min(CHUNK_BYTES, part.last + 1 - at))
            if not chunk:
                return
            at += len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": at <= part.last})


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has hung up, which sending would not tell."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _file_missing() -> ApiError:
    return ApiError(
        404,
        "the video's file cannot be found; connect the drive it is on, or add it again from where it is now",
        code="file_missing",
    )


def _file_replaced() -> ApiError:
    return ApiError(
        409,
        "the video's file has changed or become a link since it was added, so it is not shown; add its folder again",
        code="file_changed",
    )
