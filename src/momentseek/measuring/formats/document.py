"""Load a file into memory safely: gzip, size limits, and JSON errors that name the position."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import stat
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from momentseek.core.errors import MomentseekError
from momentseek.core.limits import MAX_EXPANSION, is_bomb, max_bytes
from momentseek.measuring.formats.record_lists import RecordLists, cut_records


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause garbage collection while building many long-lived objects.

    >>> with pause_gc():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Document:
    """A file's bytes, parsed on demand."""

    path: Path
    data: bytes

    @property
    def name(self) -> str:
        """Name of the file without ``.gz``."""
        return self.path.name.removesuffix(".gz")

    @property
    def suffix(self) -> str:
        """Extension without ``.gz``, lower case: ``.jsonl``."""
        return Path(self.name).suffix.lower()

    @cached_property
    def text(self) -> str:
        """The content of the file as text."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as e:
            raise _not_utf8(self.path, f"byte {e.start:,}") from None

    @cached_property
    def is_json(self) -> bool:
        """Whether the file begins like JSON or JSON Lines."""
        return self.data[:64].removeprefix(_BOM).lstrip()[:1] in (b"{", b"[")

    @cached_property
    def may_hold_booleans(self) -> bool:
        """Whether the file may have true or false in place of numbers; False makes a slower check unnecessary."""
        return not self.is_json or b"true" in self.data or b"false" in self.data

    @cached_property
    def json(self) -> Any:
        """The JSON value; JSON Lines become a list of their values."""
        with pause_gc():  # parsing creates millions of containers, none of them garbage
            data = self.data.removeprefix(_BOM)
            try:
                return orjson.loads(data)
            except orjson.JSONDecodeError as whole:
                self._require_utf8()
                lines = [line for line in data.splitlines() if not line.isspace()]
                if len(lines) > 1 and _stands_alone(lines[0]):
                    return self._json_lines(lines)
                return self._json_with_nan(whole)

    @cached_property
    def record_lists(self) -> RecordLists | None:
        """The file's lists of uniform records as columns, without parsing them; None for any other file."""
        return cut_records(self.data.removeprefix(_BOM)) if self.is_json else None

    @cached_property
    def outline(self) -> Any:
        """The JSON value by which a format is recognised; long lists of records may be cut to their first element."""
        return self.json if self.record_lists is None else self.record_lists.outline()

    @property
    def first_record(self) -> Any:
        """The first element of a JSON list or JSON Lines file, or the JSON value itself, from the outline."""
        value = self.outline if self.is_json else None
        return value[0] if isinstance(value, list) and value else value

    def _require_utf8(self) -> None:
        try:
            self.data.decode()
        except UnicodeDecodeError as e:
            if e.reason != "unexpected end of data":  # that is a file cut off within a character
                raise _not_utf8(self.path, f"byte {e.start:,}") from None

    def reject_repeated_names(self) -> None:
        """Raise an error for an object with a repeated name, of which parsers silently keep the last."""
        with suppress(RecursionError, ValueError):
            json.loads(self.data.removeprefix(_BOM), object_pairs_hook=self._unique)

    def reject_repeats(self, key: str, expected: int) -> None:
        """Raise an error for objects with repeated names, quickly enough for large files.

        ``key`` occurs once in each of the ``expected`` values that were read. If the file has more of them, some were
        lost, and only then does the slow parser that sees all names run.
        """
        if self.data.count(f'"{key}"'.encode()) > expected:
            self.reject_repeated_names()

    def _unique(self, pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise MomentseekError(f"{self.path}: {twice} occurs more than once; keep one entry")

    @property
    def records(self) -> list[Any]:
        """The JSON as a list of records; a single object is a list of one."""
        return self.json if isinstance(self.json, list) else [self.json]

    def _json_lines(self, lines: list[bytes]) -> list[Any]:
        try:
            values: list[Any] = orjson.loads(b"[" + b",".join(lines) + b"]")
            return values
        except orjson.JSONDecodeError:
            return [self._line(number, line) for number, line in enumerate(lines, 1) if line]

    def _line(self, number: int, line: bytes) -> Any:
        try:
            return _loads(line)
        except (ValueError, RecursionError) as e:
            raise MomentseekError(
                f"{self.path}: line {number:,} is not valid JSON ({e}); is the file cut off?"
            ) from None

    def _json_with_nan(self, error: orjson.JSONDecodeError) -> Any:
        # NaN and Infinity are not JSON, but Python writes them; read them so that the message can name the query.
        if any(word in self.data for word in (b"NaN", b"Infinity")):
            with suppress(ValueError, RecursionError):
                return _loads(self.data.removeprefix(_BOM))
        remedy = "nest it less deeply" if "depth limit" in str(error) else "is the file cut off?"
        raise MomentseekError(f"{self.path}: not valid JSON ({error}); {remedy}")


def open_document(path: str | os.PathLike[str]) -> Document:
    """Read a file, decompressing ``.gz`` (recognised by content) within safe limits."""
    path = Path(path)
    try:
        data = _read(path, max_bytes())
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the path") from None
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(data, path)
    if not data.strip():
        raise MomentseekError(f"{path}: the file is empty")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or _is_wide(data[:4]):
        raise _not_utf8(path, "but UTF-16 or UTF-32")
    return Document(path, data)


def _read(path: Path, limit: int) -> bytes:
    about = path.stat()
    if stat.S_ISCHR(about.st_mode) or stat.S_ISBLK(about.st_mode):
        raise MomentseekError(f"{path}: is a device, not a file; give a file")
    size, parts = about.st_size, []
    if size == 0:  # a pipe does not say how long it is
        with path.open("rb") as file:
            while size <= limit and (part := file.read(_CHUNK)):
                size += len(part)
                parts.append(part)
    if size > limit:
        raise MomentseekError(f"{path}: larger than {limit:,} bytes; set MOMENTSEEK_MAX_BYTES to read it all the same")
    return b"".join(parts) if parts else path.read_bytes() if about.st_size else b""


def _is_wide(start: bytes) -> bool:
    """Whether the first two characters are ASCII in two bytes each, as in UTF-16 without a byte order mark."""
    even, odd = start[0::2], start[1::2]
    pairs = ((even, odd), (odd, even))
    return any(zeros == b"\0\0" and letters.isascii() and b"\0" not in letters for letters, zeros in pairs)


def _not_utf8(path: Path, what: str) -> MomentseekError:
    return MomentseekError(f"{path}: not UTF-8 text ({what}); convert it to UTF-8")


def _gunzip(data: bytes, path: Path) -> bytes:
    parts: list[bytes] = []
    size = used = 0
    limit = max_bytes()
    member = zlib.decompressobj(wbits=31)
    view = memoryview(data)
    try:
        while used < len(data):
            if member.eof:  # a gzip file may have several members
                member = zlib.decompressobj(wbits=31)
            slice_ = view[used : used + _CHUNK]
            parts.append(member.decompress(slice_, 16 * _CHUNK))
            used += len(slice_) - len(member.unconsumed_tail) - len(member.unused_data)
            size += len(parts[-1])
            if size > limit or is_bomb(size, used):
                raise MomentseekError(
                    f"{path}: expands more than {MAX_EXPANSION}-fold or past {limit:,} bytes, as a decompression "
                    "bomb does; decompress it yourself if you trust it"
                )
    except zlib.error as e:
        raise MomentseekError(f"{path}: damaged gzip data ({e})") from None
    if not member.eof:
        raise MomentseekError(f"{path}: the gzip data ends too early; the file is cut off")
    return b"".join(parts)


def _stands_alone(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _loads(data: bytes) -> Any:
    """Parse like orjson, but accept NaN; half a surrogate pair raises an error, because it cannot be written."""
    value = json.loads(data)
    if b"\\ud" in data.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


LONGEST_HEADER = 4096


def header_of(document: Document) -> list[str]:
    """Return the columns of the first line; empty if the document is JSON or binary."""
    if document.is_json or b"\0" in document.data[:LONGEST_HEADER]:
        return []
    text = document.data[:LONGEST_HEADER].decode("utf-8-sig", errors="replace")
    try:
        return [name.strip() for name in next(csv.reader(io.StringIO(text, newline="")), [])]
    except csv.Error:
        return []


def rows_of(document: Document, *columns: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and ``columns`` of every row that is not blank."""
    reader = csv.reader(io.StringIO(document.text, newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
        for missing in (c for c in columns if c not in header):
            raise MomentseekError(f"{document.path}: the header has no column {missing!r}")
        for repeated in (c for c in columns if header.count(c) > 1):
            raise MomentseekError(f"{document.path}: the header has the column {repeated!r} twice; keep one of them")
        positions = [header.index(c) for c in columns]
        for row in reader:
            if not row:
                continue
            if len(row) <= max(positions):
                raise MomentseekError(f"{document.path}: line {reader.line_num:,} has only {len(row)} columns")
            yield reader.line_num, {c: row[p] for c, p in zip(columns, positions, strict=True)}
    except csv.Error as e:
        raise MomentseekError(f"{document.path}: line {reader.line_num:,} is not CSV ({e})") from None
