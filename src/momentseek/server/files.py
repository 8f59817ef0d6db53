"""Send a file, or a range of it, in chunks, so that memory does not depend on its size."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from momentseek.core.pinned_file import FileChangedError, PinnedFile
from momentseek.server.errors import ApiError

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,400})\s*-\s*(\d{0,400})\s*", re.IGNORECASE)
VIDEO_MEDIA_TYPES = {
    ".mp4": "video/mp4", ".m4v": "video/mp4", ".f4v": "video/mp4", ".mov": "video/quicktime", ".qt": "video/quicktime",
    ".webm": "video/webm", ".mkv": "video/x-matroska", ".mk3d": "video/x-matroska", ".ogv": "video/ogg",
    ".ogm": "video/ogg", ".avi": "video/x-msvideo", ".divx": "video/x-msvideo", ".mpg": "video/mpeg",
    ".mpeg": "video/mpeg", ".mpe": "video/mpeg", ".m2v": "video/mpeg", ".mpv": "video/mpeg", ".vob": "video/mpeg",
    ".ts": "video/mp2t", ".m2t": "video/mp2t", ".m2ts": "video/mp2t", ".mts": "video/mp2t", ".3gp": "video/3gpp",
    ".3g2": "video/3gpp2", ".flv": "video/x-flv", ".wmv": "video/x-ms-wmv", ".asf": "video/x-ms-asf",
    ".mxf": "application/mxf", ".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".m4b": "audio/mp4", ".aac": "audio/aac",
    ".flac": "audio/flac", ".ogg": "audio/ogg", ".oga": "audio/ogg", ".opus": "audio/ogg", ".wav": "audio/wav",
    ".mka": "audio/x-matroska", ".wma": "audio/x-ms-wma", ".aif": "audio/aiff", ".aiff": "audio/aiff",
}  # fmt: skip


def video_media_type(path: Path) -> str:
    """The media type of a video file by its suffix.

    >>> video_media_type(Path("a/Film.MP4")), video_media_type(Path("film.y4m"))
    ('video/mp4', 'application/octet-stream')
    """
    return VIDEO_MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream")


def file_responses(about: str, *media_types: str, ranges: bool = False) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that sends a file, as the OpenAPI document lists them."""
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in media_types}
    answers: dict[int | str, dict[str, Any]] = {200: {"description": about, "content": content}}
    if ranges:
        answers[206] = {"description": "The range asked for.", "content": content}
        answers[304] = {"description": "The client's copy is up to date."}
    return answers


def content_disposition(name: str, *, attachment: bool = True) -> str:
    r"""The Content-Disposition header that names a download, safe for any file name.

    >>> content_disposition("über \"x\".csv")
    'attachment; filename="_ber _x_.csv"; filename*=UTF-8\'\'%C3%BCber%20%22x%22.csv'
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1] or "file"
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()+") else "_" for c in last)
    how = "attachment" if attachment else "inline"
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(last.encode('utf-8', 'replace'), safe='')}"


def attachment(data: bytes, media_type: str, name: str) -> Response:
    """An answer that browsers save as a file with a name."""
    return Response(data, media_type=media_type, headers={"Content-Disposition": content_disposition(name)})


class OpenFile:
    """A regular file that is open for reading, with its size and ETag."""

    def __init__(self, file: PinnedFile) -> None:
        try:
            self.handle = file.descriptor()
        except FileChangedError:
            raise _file_replaced() from None
        except (OSError, ValueError):
            raise _file_missing() from None
        self.path = Path(f"/dev/fd/{self.handle}") if os.name == "posix" else file.path
        """A path to the open file itself, even if another file takes its name meanwhile.

        Windows has no such path, but it does not let an open file be renamed or replaced.
        """
        self.state = os.fstat(self.handle)
        self.size = self.state.st_size
        self.etag = f'"{self.state.st_size:x}-{self.state.st_mtime_ns:x}"'

    def close(self) -> None:
        """Close the file."""
        os.close(self.handle)


class OpenFileResponse(FileResponse):
    """A response that sends an open file, with one range and conditional requests, and closes it.

    A range that cannot be parsed, and several ranges at once, are answered with the whole file.
    """

    chunk_size = 256 * 1024

    def __init__(
        self, file: OpenFile, media_type: str, headers: dict[str, str], on_end: Callable[[], None] | None = None
    ) -> None:
        super().__init__(
            file.path, headers={**headers, "ETag": file.etag}, media_type=media_type, stat_result=file.state
        )
        self.file, self.on_end = file, on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            given = Headers(scope=scope)
            if scope["method"] in ("GET", "HEAD") and etag_matches(given.get("if-none-match"), self.file.etag):
                del self.headers["content-length"]
                await send({"type": "http.response.start", "status": 304, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
                return
            headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
            unchanged = given.get("if-range") in (None, self.file.etag, self.headers["last-modified"])
            if scope["method"] == "GET" and unchanged:
                span = parse_range(given.get("range"), self.file.size)
                headers += [(b"range", f"bytes={span[0]}-{span[1]}".encode())] if span else []
            await super().__call__({**scope, "headers": headers, "extensions": {}}, receive, send)
        finally:
            self.file.close()
            if self.on_end is not None:
                self.on_end()


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First and last byte of a ``Range`` header (RFC 9110, section 14); 416 if the file has none of these bytes.

    None means the whole file: there is no header, it cannot be parsed, or it has several ranges.

    >>> parse_range("bytes=0-99", 1000), parse_range("bytes=-10", 1000), parse_range("bytes=990-", 1000)
    ((0, 99), (990, 999), (990, 999))
    >>> parse_range("bytes=5-2", 1000), parse_range("bytes=0-1,5-6", 1000), parse_range("lines=1-2", 1000)
    (None, None, None)
    """
    match = _RANGE.fullmatch(header) if header is not None else None
    if match is None or match[1] == match[2] == "":
        return None
    first = int(match[1]) if match[1] else max(0, size - int(match[2]))
    last = int(match[2]) if match[1] and match[2] else size - 1
    if match[1] and match[2] and last < first:
        return None
    if first >= size:
        raise ApiError(
            416,
            f"the file has {size:,} bytes, and the range lies outside of it; ask for another range",
            headers={"Content-Range": f"bytes */{size}", "Accept-Ranges": "bytes"},
        )
    return first, min(last, size - 1)


def etag_matches(if_none_match: str | None, etag: str) -> bool:
    """Whether ``If-None-Match`` names the current version, so that the client's copy is up to date.

    >>> etag_matches('W/"x", "a"', '"a"'), etag_matches("*", '"a"'), etag_matches(None, '"a"')
    (True, True, False)
    """
    if if_none_match is None:
        return False
    given = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return "*" in given or etag in given


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
