"""``webdataset``: features in tar files, one ``NAME.npz`` (or npy, pt, safetensors) per video or query.

A tar file, or a folder of them (shards). Where the members lie is read once; after that each is read from its place.
A member such as ``NAME.features.npy`` belongs to NAME, as WebDataset splits names at the first dot.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from momentseek.core.errors import MomentseekError
from momentseek.core.limits import check_size
from momentseek.models.features.readers.folder import ARRAY_FILES, plain_names
from momentseek.models.features.sources import READERS, FeatureReader, StoredTable, TableSource, say_damage


class Member(NamedTuple):
    """Where the bytes of an array lie."""

    shard: Path
    offset: int
    size: int
    ending: str


class TarFeatures(TableSource):
    """Tar files of features."""

    def __init__(self, path: Path, what: str, key: str | None = None) -> None:
        super().__init__(path, what, key)
        _ = self._members

    @cached_property
    def _shards(self) -> list[Path]:
        return sorted(self.path.glob("*.tar")) if self.path.is_dir() else [self.path]

    @cached_property
    def _members(self) -> dict[str, Member]:
        found: dict[str, Member] = {}
        for shard in self._shards:
            with say_damage(f"{shard}: the list of members"), tarfile.open(shard, "r:") as archive:
                for name, member in _array_members(shard, archive):
                    if name in found:
                        raise MomentseekError(f"{shard}: has {name} twice, or another shard has it; keep one of them")
                    found[name] = member
        return {name: found[stored] for name, stored in plain_names(found, self.what).items()}

    @property
    def size(self) -> int:
        """Number of bytes of all shards."""
        return sum(shard.stat().st_size for shard in self._shards)

    def names(self) -> set[str]:
        """The names of the members, up to the first dot."""
        return set(self._members)

    def find(self, name: str) -> StoredTable | None:
        """The array of a member."""
        if name not in self._members:
            return None
        shard, offset, size, ending = self._members[name]
        check_size(f"{self.where(name)} (the member)", size, size)
        with shard.open("rb") as file:
            file.seek(offset)
            return ARRAY_FILES[ending](file.read(size), self.key, self.where(name))


def _array_members(shard: Path, archive: tarfile.TarFile) -> Iterator[tuple[str, Member]]:
    for entry in archive:
        path = PurePosixPath(entry.name)
        if entry.isfile() and path.suffix in ARRAY_FILES:
            yield path.name.partition(".")[0], Member(shard, entry.offset_data, entry.size, path.suffix)


def _claims(path: Path) -> bool:
    return path.suffix == ".tar" if path.is_file() else any(path.glob("*.tar"))


READERS.add("webdataset", FeatureReader("WebDataset tar files", _claims, TarFeatures))
