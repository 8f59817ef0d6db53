"""Clip vectors on disk: immutable files, mapped into memory, named by the hash of their bytes.

A segment holds one stream's vectors of many videos, each video's rows together and in order of time: as int8 with one
scale per row for the scan, and as float16 for exact scores. A file is written under a temporary name and renamed, and
counts only once the catalog names it, so a reader never meets half of one. Layout: a magic word, the length of a JSON
header, the header (dtype, shape and place of each array), then the arrays, each at a multiple of 64 bytes. One of them
holds a checksum per video, made when its vectors are first written, which then travels with them through every rewrite:
so what was damaged on the way never gets a fresh checksum, and of a damaged file the videos that are sound are known.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.atomic import drop_temporary, flush_file, flush_folder, usual_mode
from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.core.moments.arrays import runs_of_true
from momentseek.library.origin import origin_of
from momentseek.recognition.encoders.protocol import Vectors

Sums = NDArray[np.uint64]
DAMAGE_ERRNOS = {
    getattr(errno, name) for name in ("EIO", "ENOENT", "ENODATA", "EBADMSG", "EUCLEAN", "EILSEQ", "EISDIR", "ENOTDIR")
    if hasattr(errno, name)
}  # fmt: skip
"""Errors that mean that a file is lost or unreadable; others (permissions, memory, open files) are temporary."""


class DamagedSegmentError(LibraryError):
    """A segment whose file is lost, unreadable or damaged."""


def sum_videos(
    ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    half: NDArray[np.float16],
) -> Sums:
    """The first 64 bits of the SHA-256 of each video's id, number of rows and rows; 0 where offsets lead nowhere.

    >>> rows = np.eye(3, dtype=np.float32)
    >>> arrays = rows.astype(np.int8), rows[0], rows.astype(np.float16)
    >>> one, two = sum_videos(np.array([4, 5]), np.array([0, 1, 3]), *arrays).tolist()
    >>> [one, two] == sum_videos(np.array([4, 5]), np.array([0, 1, 3]), *arrays).tolist(), one == two
    (True, False)
    """
    found = np.zeros(len(ids), np.uint64)
    edges = offsets.tolist()
    rows = min(len(codes), len(scales), len(half))
    for at, id in enumerate(ids.tolist()):
        first, last = edges[at : at + 2]
        if not 0 <= first <= last <= rows:
            continue
        digest = hashlib.sha256(struct.pack("<qq", id, last - first))
        for array in (codes, scales, half):
            digest.update(np.ascontiguousarray(array[first:last]).reshape(-1).view(np.uint8).data)
        found[at] = int.from_bytes(digest.digest()[:8], "little")
    return found


def checksum(path: Path) -> str:
    """The hash of a file's bytes, which for a whole segment is its name."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


SEGMENT_MAGIC = b"momentseek-segment-1\n"
SEGMENT_SUFFIX = ".vec"
TEMPORARY_PREFIX = ".segment-"
ALIGN_BYTES = 64
ROWS_PER_WRITE = 1 << 14
"""Rows written at a time."""
MAX_CODE = 127
"""The largest int8 code."""
VECTOR_STREAMS = ("vision", "spans", "speech")
"""Streams that have vectors: of clips, for spans of a trained model (of any length), and of cues."""
NEW_STREAM_SUFFIX = ".new"
"""Suffix of the name of a stream whose vectors are being made again and are not in use yet."""
MAX_JOINED_ROWS = 1_000_000
"""A segment with this many rows is not joined with others."""
MAX_READ_BYTES = 64 * 2**20
"""A file up to this size is read into memory, so that it cannot be truncated in use; a larger one is mapped."""
MAX_HEADER_BYTES = 1 << 20
ARRAY_TYPES = {
    "ids": np.int64, "offsets": np.int64, "sums": np.uint64, "codes": np.int8, "scales": np.float32, "half": np.float16,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Segment:
    """Vectors of some videos: rows ``offsets[i]`` to ``offsets[i + 1]`` belong to the video ``ids[i]``."""

    name: str
    stream: str
    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    codes: NDArray[np.int8]
    """``round(vector / scale)``; ``codes * scale`` is the vector to within half a scale."""
    scales: NDArray[np.float32]
    half: NDArray[np.float16]
    sums: Sums | None = None
    """A checksum of each video's id and rows; None for a segment in memory."""
    mapped: mmap.mmap | None = None
    """The map of the file, if it was not read into memory."""

    @property
    def dim(self) -> int:
        """Number of columns of the vectors."""
        return int(self.half.shape[1])

    @property
    def rows(self) -> int:
        """Number of rows of all videos of the segment."""
        return len(self.scales)

    def part(self, first: int, last: int) -> Segment:
        """A view of a part of the segment: the videos from position ``first`` up to, but not including, ``last``."""
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        return Segment(
            self.name, self.stream, self.ids[first:last], offsets - offsets[0],
            self.codes[rows], self.scales[rows], self.half[rows],
            sums=None if self.sums is None else self.sums[first:last], mapped=self.mapped,
        )  # fmt: skip

    def check_size(self) -> None:
        """Refuse a file that was truncated since it was mapped."""
        check_map(self.mapped, f"segment {self.name}")

    def vectors(self, at: int) -> Vectors:
        """The rows of the video at place ``at``, as float32."""
        rows: Vectors = self.half[self.offsets[at] : self.offsets[at + 1]].astype(np.float32)
        return rows


def check_map(mapped: mmap.mmap | None, name: str) -> None:
    """Refuse a mapped file that was truncated, because reading beyond its end would kill the process (SIGBUS)."""
    if mapped is not None and mapped.size() < len(mapped):
        raise LibraryError(f"{name}: its file was cut short while it was in use; run: momentseek verify --repair")


def quantise(vectors: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise vectors to int8 codes and one scale per row, the largest component at ±127.

    >>> codes, scales = quantise(np.array([[0.6, -0.8], [0, 0]], np.float32))
    >>> codes.tolist(), scales.tolist()
    ([[95, -127], [0, 0]], [0.006299212574958801, 0.0])
    """
    wide = np.asarray(vectors, dtype=np.float32)
    scales = np.abs(wide).max(axis=1, initial=0) / np.float32(MAX_CODE)
    codes = np.rint(wide / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return codes, scales.astype(np.float32)


def build_segment(stream: str, ids: Sequence[int], vectors: Sequence[Vectors], name: str = "(memory)") -> Segment:
    """A segment in memory, from each video's rows.

    >>> two = build_segment("vision", [7, 9], [np.eye(2, dtype=np.float32), np.array([[0.6, 0.8]], np.float32)])
    >>> two.offsets.tolist(), two.rows, two.vectors(1).round(2).tolist()
    ([0, 2, 3], 3, [[0.6000000238418579, 0.800000011920929]])
    """
    rows = np.concatenate([np.asarray(v, dtype=np.float32) for v in vectors])
    codes, scales = quantise(rows)
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in vectors])]).astype(np.int64)
    return Segment(name, stream, np.asarray(ids, np.int64), offsets, codes, scales, rows.astype(np.float16))


def write_segment(folder: Path, content: Segment) -> str:
    """Write a segment into a folder, flushed to the disk; returns its name, which is its bytes' hash."""
    return write_joined(folder, content.stream, [content])


def write_joined(folder: Path, stream: str, parts: Sequence[Segment]) -> str:
    """Write several segments as one, using only the memory of a write buffer.

    Videos keep their checksums. The caller must have checked segments that were read from files.
    """
    dim = parts[0].dim if parts else 0
    rows, videos = sum(part.rows for part in parts), sum(len(part.ids) for part in parts)
    start, _ = _start_of_file(stream, videos, rows, dim)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=TEMPORARY_PREFIX, delete=False) as file:
            temporary = Path(file.name)
            digest = hashlib.blake2b(digest_size=16)
            for piece in _pieces(start, parts):
                file.write(piece)
                digest.update(piece)
            file.flush()
            flush_file(file.fileno())
        name = digest.hexdigest()
        temporary.chmod(usual_mode(0o666))
        temporary.replace(folder / f"{name}{SEGMENT_SUFFIX}")
        flush_folder(folder)
    except OSError as e:
        raise MomentseekError(
            f"{folder}: vectors cannot be written ({e.strerror}); make room or check the rights"
        ) from e
    finally:
        drop_temporary(temporary)
    return name


def _start_of_file(stream: str, videos: int, rows: int, dim: int) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a file before its first array, which follow from its shape, and the header in them."""
    shapes: dict[str, tuple[int, ...]] = {
        "ids": (videos,), "offsets": (videos + 1,), "sums": (videos,),
        "codes": (rows, dim), "scales": (rows,), "half": (rows, dim),
    }  # fmt: skip
    layout = {}
    place = 0
    for name, kind in ARRAY_TYPES.items():
        layout[name] = {"dtype": np.dtype(kind).str, "shape": shapes[name], "at": place}
        place += -(-math.prod(shapes[name]) * np.dtype(kind).itemsize // ALIGN_BYTES) * ALIGN_BYTES
    header = {"stream": stream, "arrays": layout, "bytes": place}
    text = json.dumps(header).encode()
    start = SEGMENT_MAGIC + len(text).to_bytes(8, "little") + text
    return start + b"\0" * (-len(start) % ALIGN_BYTES), header


def _pieces(start: bytes, parts: Sequence[Segment]) -> Iterator[Any]:
    """The file's bytes in order, each array padded to a multiple of 64."""
    yield start
    for name, kind in ARRAY_TYPES.items():
        size = 0
        for array in _arrays(name, parts):
            for at in range(0, max(len(array), 1), ROWS_PER_WRITE):
                piece = np.ascontiguousarray(array[at : at + ROWS_PER_WRITE], dtype=kind).reshape(-1).view(np.uint8)
                size += piece.nbytes
                yield piece.data
        yield b"\0" * (-size % ALIGN_BYTES)


def _arrays(name: str, parts: Sequence[Segment]) -> Iterator[NDArray[Any]]:
    if name == "offsets":
        return _offsets(parts)
    if name == "sums":
        return (sum_segment(part) if part.sums is None else part.sums for part in parts)
    return (getattr(part, name) for part in parts)


def sum_segment(content: Segment) -> Sums:
    """The checksum of each video of a segment, from its vectors as they are now."""
    return sum_videos(content.ids, content.offsets, content.codes, content.scales, content.half)


def _offsets(parts: Sequence[Segment]) -> Iterator[NDArray[np.int64]]:
    yield np.zeros(1, np.int64)
    row = 0
    for part in parts:
        yield part.offsets[1:] + row
        row += part.rows


def parts_without(content: Segment, gone: NDArray[np.int64]) -> list[Segment]:
    """Views of a segment without some videos, one for each run of remaining videos.

    >>> three = build_segment("vision", [1, 2, 3], [np.eye(2, dtype=np.float32)] * 3)
    >>> [(part.ids.tolist(), part.offsets.tolist(), part.rows) for part in parts_without(three, np.array([2]))]
    [([1], [0, 2], 2), ([3], [0, 2], 2)]
    """
    runs = runs_of_true(~np.isin(content.ids, gone))
    return [content.part(int(first), int(last)) for first, last in zip(*runs, strict=True)]


def read_segment(folder: Path, name: str) -> Segment:
    """Open a segment: a small file is read into memory, a large one is mapped."""
    path = folder / f"{name}{SEGMENT_SUFFIX}"
    if not path.exists():
        origin = origin_of(folder.parent)
        if origin is not None:
            origin.ensure_segment(name)
    try:
        raw, mapped = read_or_map(path)
        size = int.from_bytes(raw[len(SEGMENT_MAGIC) : len(SEGMENT_MAGIC) + 8].tobytes(), "little")
        first = len(SEGMENT_MAGIC) + 8
        if raw[: len(SEGMENT_MAGIC)].tobytes() != SEGMENT_MAGIC or size > MAX_HEADER_BYTES:
            raise DamagedSegmentError(_damage_message(path))
        header = json.loads(raw[first : first + size].tobytes())
        return _segment(name, raw, -(-(first + size) // ALIGN_BYTES) * ALIGN_BYTES, header, mapped)
    except OSError as e:
        raise unreadable(path, e) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedSegmentError(_damage_message(path)) from None


def unreadable(path: Path, e: OSError) -> LibraryError:
    """Turn an error of reading a library's file into one that says whether it is damaged or temporarily unreadable."""
    if e.errno in DAMAGE_ERRNOS:
        return DamagedSegmentError(f"{path}: cannot be read ({e.strerror}); run: momentseek verify")
    return LibraryError(f"{path}: cannot be read now ({e.strerror}); check the rights, or run the command again")


def read_by_shape(folder: Path, name: str, stream: str, videos: int, rows: int, dim: int) -> Segment:
    """Open a damaged segment by its expected shape, ignoring its header; missing bytes are zeros.

    Only the checksums tell which of its videos are intact.
    """
    start, header = _start_of_file(stream, videos, rows, dim)
    whole = np.zeros(len(start) + header["bytes"], np.uint8)
    found = np.fromfile(folder / f"{name}{SEGMENT_SUFFIX}", np.uint8, count=len(whole))
    whole[: len(found)] = found
    return _segment(name, whole, len(start), header, None)


def read_or_map(path: Path) -> tuple[NDArray[np.uint8], mmap.mmap | None]:
    """The bytes of a file, read or, if it is large, mapped into memory; also returns the map, or None."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size <= MAX_READ_BYTES:
            return np.frombuffer(file.read(), np.uint8), None
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, np.uint8), mapped


def _segment(name: str, raw: NDArray[np.uint8], base: int, header: dict[str, Any], mapped: mmap.mmap | None) -> Segment:
    if base + int(header["bytes"]) != len(raw):
        raise ValueError
    arrays = {key: _view(raw, base, header["arrays"][key], kind) for key, kind in ARRAY_TYPES.items()}
    return Segment(name, header["stream"], **arrays, mapped=mapped)


def locate(segments: Sequence[Segment], video: int) -> tuple[int, int] | None:
    """The index of the segment that has a video, and the video's position there; None if none has it.

    >>> two = build_segment("vision", [7, 9], [np.eye(2, dtype=np.float32)] * 2)
    >>> locate([two], 9), locate([two], 8)
    ((0, 1), None)
    """
    for index, segment in enumerate(segments):
        places = np.flatnonzero(np.asarray(segment.ids) == video)
        if len(places):
            return index, int(places[0])
    return None


def vectors_of(segments: Sequence[Segment], video: int) -> Vectors | None:
    """The rows of a video as float32, from the segment that has it; None if none has it."""
    place = locate(segments, video)
    return None if place is None else segments[place[0]].vectors(place[1])


def _view(raw: NDArray[np.uint8], base: int, layout: dict[str, Any], kind: Any) -> Any:
    shape = tuple(int(n) for n in layout["shape"])
    start = base + int(layout["at"])
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if layout["dtype"] != np.dtype(kind).str or start + size > len(raw) or start % np.dtype(kind).itemsize:
        raise ValueError
    return raw[start : start + size].view(kind).reshape(shape)


def _damage_message(path: Path) -> str:
    return f"{path}: is damaged or not a segment; run: momentseek verify"


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """Vectors in both stored forms, int8 with scales and float16; copies have the same bytes."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    half: NDArray[np.float16]

    @classmethod
    def of(cls, vectors: NDArray[Any]) -> StoredVectors:
        """Convert an encoder's vectors to both forms.

        >>> len(StoredVectors.of(np.eye(3)))
        3
        """
        return cls(*quantise(vectors), np.asarray(vectors, np.float32).astype(np.float16))

    @classmethod
    def find(cls, segments: Sequence[Segment], video: int) -> StoredVectors | None:
        """An exact copy of a video's vectors, from the segment that has it; None if none has it."""
        place = locate(segments, video)
        if place is None:
            return None
        part = segments[place[0]].part(place[1], place[1] + 1)
        return cls(np.array(part.codes), np.array(part.scales), np.array(part.half))

    def __len__(self) -> int:
        return len(self.scales)


def join_vectors(parts: Sequence[StoredVectors]) -> StoredVectors:
    """The vectors of several parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    return StoredVectors(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.half for part in parts]),
    )


def segment_of(stream: str, ids: Sequence[int], rows: Sequence[StoredVectors]) -> Segment:
    """A segment in memory that holds the vectors of several videos."""
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    whole = join_vectors(rows)
    return Segment("(memory)", stream, np.asarray(ids, np.int64), offsets, whole.codes, whole.scales, whole.half)
