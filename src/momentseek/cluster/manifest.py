"""The manifest of a sharded library: the names of its shards, and which shard a video belongs to."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.library.location import SHARDS_FILE

MANIFEST_FILE = SHARDS_FILE
MANIFEST_FORMAT = "momentseek-shards"
MANIFEST_VERSION = 1
MAX_SHARDS = 4096


@dataclass(frozen=True)
class ShardManifest:
    """The names of a library's shards, and their common settings."""

    shards: tuple[str, ...]
    """Names of the shards' folders, in the order of their numbers."""
    clip_seconds: float
    encoder: str
    """The spec of the image encoder of the shards."""

    @classmethod
    def of(cls, shards: int, clip_seconds: float, encoder: str) -> ShardManifest:
        """The manifest of a new library with N shards.

        >>> ShardManifest.of(2, 1.5, "things").shards
        ('shard-000', 'shard-001')
        """
        if not 1 <= shards <= MAX_SHARDS:
            raise MomentseekError(f"a library cannot have {shards} shards; choose 1 to {MAX_SHARDS}")
        return cls(tuple(f"shard-{number:03d}" for number in range(shards)), clip_seconds, encoder)

    def shard_of(self, content: str) -> int:
        """The number of the shard that a video with this hash belongs to, always the same one.

        >>> manifest = ShardManifest.of(4, 1.5, "things")
        >>> [manifest.shard_of(content) for content in ("a", "b", "c")]
        [1, 2, 0]
        """
        digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") * len(self.shards) >> 64

    def folders(self, library: Path) -> list[Path]:
        """The folders of the shards of the library in a folder."""
        return [library / name for name in self.shards]


def is_sharded(folder: Path) -> bool:
    """Whether a folder contains a sharded library."""
    return (folder / MANIFEST_FILE).is_file()


def read_manifest(folder: Path) -> ShardManifest:
    """Read the manifest of the library in a folder; raises an error if it is damaged, or from a newer release."""
    path = folder / MANIFEST_FILE
    try:
        return parse_manifest(path.read_bytes(), str(path))
    except OSError as e:
        raise LibraryError(f"{path}: cannot be read ({e.strerror}); check the folder") from None


def parse_manifest(data: bytes, path: str) -> ShardManifest:
    """Parse a manifest from a file or an object; raises an error if it is damaged, or from a newer release."""
    try:
        found: dict[str, Any] = json.loads(data)
        if found["format"] != MANIFEST_FORMAT:
            raise ValueError
        if found["version"] != MANIFEST_VERSION:
            raise LibraryError(f"{path}: is of another release (version {found['version']}); update momentseek")
        names = [str(name) for name in found["shards"]]
        if not names or len(set(names)) < len(names) or any(Path(name).name != name for name in names):
            raise ValueError
        return ShardManifest(tuple(names), float(found["clip_seconds"]), str(found["encoder"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise LibraryError(f"{path}: is not a manifest of shards, or damaged; restore it from a copy") from None


def write_manifest(folder: Path, manifest: ShardManifest) -> None:
    """Write the manifest of a library into its folder, completely or not at all."""
    document = {
        "format": MANIFEST_FORMAT,
        "version": MANIFEST_VERSION,
        "shards": list(manifest.shards),
        "clip_seconds": manifest.clip_seconds,
        "encoder": manifest.encoder,
    }
    write_bytes(folder / MANIFEST_FILE, json.dumps(document, indent=2).encode() + b"\n")
