from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.pinned_file import PinnedFile
from momentseek.server.files import OpenFile, OpenFileResponse, content_disposition

CHUNK_BYTES = OpenFileResponse.chunk_size


def _send(answer: OpenFileResponse, messages: list[dict[str, Any]], hang_up_after: int | None) -> None:
    left = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(message)
        if hang_up_after is not None and len(messages) > hang_up_after:
            left.set()
        await asyncio.sleep(0)

    asyncio.run(answer({"type": "http", "method": "GET", "headers": []}, receive, send))


@pytest.fixture
def file(tmp_path: Path) -> OpenFile:
    (tmp_path / "a.mp4").write_bytes(bytes(20 * CHUNK_BYTES + 5))
    return OpenFile(PinnedFile(tmp_path.resolve() / "a.mp4"))


def test_a_file_is_sent_in_pieces(file: OpenFile) -> None:
    ended: list[bool] = []
    messages: list[dict[str, Any]] = []
    _send(OpenFileResponse(file, "video/mp4", {}, lambda: ended.append(True)), messages, None)
    bodies = [m["body"] for m in messages[1:]]
    assert (len(bodies), max(map(len, bodies)), sum(map(len, bodies))) == (21, CHUNK_BYTES, file.size)
    assert [m["more_body"] for m in messages[1:]] == [True] * 20 + [False]
    assert ended == [True]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file.handle)


def test_nothing_more_is_read_when_the_client_hangs_up(file: OpenFile) -> None:
    ended: list[bool] = []
    messages: list[dict[str, Any]] = []
    _send(OpenFileResponse(file, "video/mp4", {}, lambda: ended.append(True)), messages, 3)
    assert len(messages) < 8
    assert ended == [True]


def test_a_file_that_is_cut_short_meanwhile_ends_early(file: OpenFile, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"x" * 10)
    messages: list[dict[str, Any]] = []
    _send(OpenFileResponse(file, "video/mp4", {}), messages, None)
    promised = dict(messages[0]["headers"])[b"content-length"]
    assert sum(len(m["body"]) for m in messages[1:]) < int(promised)  # the connection is closed for that


def test_an_empty_file_is_sent(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    messages: list[dict[str, Any]] = []
    _send(OpenFileResponse(OpenFile(PinnedFile(tmp_path.resolve() / "empty.mp4")), "video/mp4", {}), messages, None)
    assert [m.get("body") for m in messages] == [None, b""]


@pytest.mark.parametrize("name", ['a"b.mp4', "a\r\nSet-Cookie: x=1.mp4", "ü/日本.mp4", "\\..\\x", "", "a\udce9.mp4"])
def test_names_are_safe_in_a_header(name: str) -> None:
    header = content_disposition(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
