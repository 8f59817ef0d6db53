"""ShardState: the list of a shard's files in object storage, kept in one object that is replaced at each change.

Every file of the shard consists of one or more objects, which are named by the hash of their bytes. The catalog is cut
into chunks, so that after an ``add``, which changes a few pages, only those are sent. The state also names the writer.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from momentseek.core.errors import LibraryError
from momentseek.library.database import CATALOG_FILE

STATE_FILE = "state.json"
OBJECTS_FOLDER = "objects"
STATE_FORMAT = "momentseek-shard"
STATE_VERSION = 1
CHUNK_BYTES = 1 << 18
"""Size of the chunks of a catalog; a multiple of its pages."""
TEMPORARY_PREFIX = ".segment-"
"""Prefix of the name of a file that is being fetched or written."""
SEGMENTS_FOLDER, PLAN_FOLDER, MODELS_FOLDER = "segments", "plan", "models"


@dataclass(frozen=True)
class Chunk:
    """A part of a file, stored as an object that is named by the hash of its bytes."""

    hash: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> Chunk:
        """The chunk with these bytes."""
        return cls(hash_bytes(data), len(data))

    @property
    def object(self) -> str:
        """The name of its object in the shard."""
        return f"{OBJECTS_FOLDER}/{self.hash}"


Files = dict[str, tuple[Chunk, ...]]
"""The files of a shard: path relative to its folder → chunks."""


LEASE_SECONDS = 30.0
"""A writer that has not renewed its lease for this many seconds counts as dead."""


@dataclass(frozen=True)
class Lease:
    """The writer of a shard: its id, its name, and the times of its start and last renewal (seconds since 1970)."""

    holder: str
    name: str
    since: float
    at: float

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Lease:
        """The lease that a state names."""
        return cls(str(found["holder"]), str(found["name"]), float(found["since"]), float(found["at"]))

    def is_dead(self, watched: float) -> bool:
        """Whether the lease was not renewed for too long, by the holder's clock or, as clocks differ, by ours."""
        return max(time.time() - self.at, watched) > LEASE_SECONDS


@dataclass(frozen=True)
class ShardState:
    """All files of a shard at one moment, and its writer."""

    files: Files
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    dropped: tuple[str, ...] = ()
    """Hashes of objects that the previous state named and this one does not; they are deleted after the next change."""
    lease: Lease | None = None

    @property
    def chunks(self) -> dict[str, Chunk]:
        """All chunks, by their hashes."""
        return {chunk.hash: chunk for parts in self.files.values() for chunk in parts}

    def size(self, path: str) -> int:
        """Size of a file in bytes."""
        return sum(chunk.size for chunk in self.files[path])

    def below(self, folder: str) -> Files:
        """The files in a folder of the shard."""
        return {path: parts for path, parts in self.files.items() if path.startswith(f"{folder}/")}

    def to_bytes(self) -> bytes:
        """Encode the state as the bytes of its object."""
        files = {path: [[chunk.hash, chunk.size] for chunk in parts] for path, parts in sorted(self.files.items())}
        document = {"format": STATE_FORMAT, "version": STATE_VERSION, "id": self.id, "files": files}
        lease = {} if self.lease is None else {"lease": asdict(self.lease)}
        return json.dumps({**document, "dropped": list(self.dropped), **lease}, indent=0).encode()


def read_state(data: bytes, where: str) -> ShardState:
    """Decode a state; raises an error if it is damaged, or written by a newer release."""
    try:
        found = json.loads(data)
        if found["format"] != STATE_FORMAT:
            raise ValueError
        if found["version"] != STATE_VERSION:
            raise LibraryError(f"{where}: is of another release (version {found['version']}); update momentseek")
        files = {
            str(path): tuple(Chunk(_checked_hash(hash), int(size)) for hash, size in parts)
            for path, parts in found["files"].items()
        }
        if CATALOG_FILE not in files or not all(map(_is_inside, files)):
            raise ValueError
        lease = Lease.of_json(found["lease"]) if "lease" in found else None
        return ShardState(files, str(found["id"]), tuple(map(_checked_hash, found["dropped"])), lease)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LibraryError(f"{where}: is not the state of a shard, or damaged; restore it from a copy") from None


def segment_path(name: str) -> str:
    """The path of a segment's file in a shard.

    >>> segment_path("3f2a")
    'segments/3f2a.vec'
    """
    return f"{SEGMENTS_FOLDER}/{name}.vec"


def hash_bytes(data: bytes) -> str:
    """The hash by which an object with these bytes is named; ``checksum`` computes the same for a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _checked_hash(text: str) -> str:
    if len(bytes.fromhex(text)) != 16:
        raise ValueError
    return str(text)


def _is_inside(path: str) -> bool:
    """Whether a path is one that a file of a shard may have.

    >>> [_is_inside(path) for path in ("catalog.sqlite", "segments/ab.vec", "../a", "/a", "segments/../../a", "lock")]
    [True, True, False, False, False, False]
    """
    parts = PurePosixPath(path).parts
    if path == CATALOG_FILE:
        return True
    return len(parts) > 1 and parts[0] in (SEGMENTS_FOLDER, PLAN_FOLDER, MODELS_FOLDER) and ".." not in parts
