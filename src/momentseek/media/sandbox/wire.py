"""Messages between a program and the process that decodes for it: a JSON object, and bytes that go with it.

No pickles: the process has read hostile files, so what it says is believed as data only, and within bounds.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from io import RawIOBase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.pinned_file import PinnedFile
from momentseek.media.container import FilePath

MAX_TEXT_BYTES = 2**28
MAX_PAYLOAD_BYTES = 2**29
"""Bytes that go with one message: an RGB picture of the largest size there is takes 300 MB."""
FileText = str | list[Any]
"""A file as a message names it: its path, or path, size and time of one that must be the very file meant."""
_LENGTHS = struct.Struct("<II")


@dataclass(frozen=True)
class Message:
    """What is said, by its ``kind``, and the bytes that go with it."""

    kind: str
    content: dict[str, Any] = field(default_factory=dict)
    payload: NDArray[np.uint8] | bytes = b""


class WireError(Exception):
    """The other side is gone, or says what cannot be understood."""


def file_as_json(path: FilePath) -> FileText:
    """A file as a message names it."""
    if isinstance(path, PinnedFile):
        return [os.fspath(path), path.size, path.mtime_ns]
    return os.fspath(path)


def file_of_json(text: FileText) -> Path | PinnedFile:
    """The file that a message names."""
    return Path(text) if isinstance(text, str) else PinnedFile(Path(text[0]), text[1], text[2])


def send_message(out: RawIOBase, message: Message) -> None:
    """Write a message, waiting until there is room."""
    text = json.dumps([message.kind, message.content]).encode()
    payload = message.payload if isinstance(message.payload, bytes) else message.payload.data.cast("B")
    _write_all(out, _LENGTHS.pack(len(text), len(payload)) + text)
    if len(payload):
        _write_all(out, payload)


def receive_message(source: RawIOBase, wait: Callable[[], None] = lambda: None) -> Message:
    """Read one message; ``wait`` is called before each read, and may raise if it must wait too long."""
    lengths = bytearray(_LENGTHS.size)
    _read_all(source, memoryview(lengths), wait)
    text_length, payload_length = _LENGTHS.unpack(lengths)
    if text_length > MAX_TEXT_BYTES or payload_length > MAX_PAYLOAD_BYTES:
        raise WireError
    text = bytearray(text_length)
    _read_all(source, memoryview(text), wait)
    payload = np.empty(payload_length, np.uint8)
    if payload_length:
        _read_all(source, payload.data, wait)
    try:
        kind, content = json.loads(text)
    except (ValueError, RecursionError):
        raise WireError from None
    if not isinstance(kind, str) or not isinstance(content, dict):
        raise WireError
    return Message(kind, content, payload)


def _read_all(source: RawIOBase, into: memoryview, wait: Callable[[], None]) -> None:
    at = 0
    while at < len(into):
        wait()
        try:
            count = source.readinto(into[at:])
        except (OSError, ValueError):
            raise WireError from None
        if not count:
            raise WireError
        at += count


def _write_all(out: RawIOBase, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while len(rest):
        try:
            rest = rest[out.write(rest) or 0 :]
        except (OSError, ValueError):
            raise WireError from None
