"""Folders with a file per video or query: ``.npz``, ``.npy``, ``.pt`` or ``.safetensors``.

Moment-DETR, its successors and lighthouse store ``<video>.npz`` with the key ``features``, in a folder per stream, and
``qid<N>.npz`` with the key ``last_hidden_state`` for queries. Code in a file is never run: pickles in numpy files are
refused, and torch files may hold only tensors and plain values.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Collection
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.core.limits import check_size
from momentseek.models.features.sources import READERS, FeatureReader, StoredTable, TableSource

ARRAY_KEYS = ("features", "last_hidden_state")
"""The usual keys of the features of a video, and of the words of a query."""
QUERY_PREFIX = "qid"
"""The prefix of the names of query files, before the number."""
PICKLED = "holds Python objects, which are never loaded; save it as numbers"


def choose_key(keys: Collection[str], key: str | None, where: str) -> str:
    """Choose the array of a file: ``key`` if given, else the only array, or the one with a usual name.

    >>> choose_key(["pooler_output", "last_hidden_state"], None, "qid1.npz")
    'last_hidden_state'
    """
    if key is not None and key not in keys:
        raise MomentseekError(f"{where} has no array {key!r}; it has {', '.join(sorted(keys)) or 'none'}")
    usual = next((name for name in ARRAY_KEYS if name in keys), None)
    chosen = key or (next(iter(keys)) if len(keys) == 1 else usual)
    if chosen is None:
        raise MomentseekError(
            f"{where} has several arrays ({', '.join(sorted(keys))}); name one by key = … in data.toml"
        )
    return chosen


def find_npy(source: Path | bytes, key: str | None, where: str) -> StoredTable:
    """Find the array of an ``.npy`` file."""
    with _open(source) as file:
        shape, dtype = _npy_header(file, where)
    return StoredTable(shape, dtype, _size(source), partial(_read_npy, source))


def _read_npy(source: Path | bytes) -> Any:
    with _open(source) as file:
        return npy.read_array(file, allow_pickle=False)


def find_npz(source: Path | bytes, key: str | None, where: str) -> StoredTable:
    """Find an array of an ``.npz`` file."""
    with _open(source) as file, zipfile.ZipFile(file) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
        member = archive.getinfo(members[choose_key(members, key, where)])
        check_size(where, member.file_size, member.compress_size)
        with archive.open(member) as stream:
            shape, dtype = _npy_header(stream, where)
    return StoredTable(shape, dtype, member.compress_size, partial(_read_member, source, member.filename))


def _read_member(source: Path | bytes, member: str) -> Any:
    with _open(source) as file, zipfile.ZipFile(file) as archive, archive.open(member) as stream:
        return npy.read_array(stream, allow_pickle=False)


def _npy_header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise MomentseekError(f"{where} {PICKLED}")
    return shape, dtype


def find_pt(source: Path | bytes, key: str | None, where: str) -> StoredTable:
    """Find a tensor in a file of ``torch.save``, alone or in a dict."""
    return tensor_table(load_tensors(source, where), key, where, _size(source))


def load_tensors(source: Path | bytes, where: str) -> Any:
    """Load a file of ``torch.save`` that holds tensors and plain values only; zip files are memory-mapped."""
    torch = optional_module("torch", "train")
    check_size(f"{where} (the file)", _size(source), _size(source))
    with_map = isinstance(source, Path) and zipfile.is_zipfile(source)
    given = source if isinstance(source, Path) else io.BytesIO(source)
    try:
        return torch.load(given, map_location="cpu", weights_only=True, mmap=with_map)
    except pickle.UnpicklingError:
        raise MomentseekError(f"{where} {PICKLED}") from None


def tensor_table(found: Any, key: str | None, where: str, stored: int) -> StoredTable:
    """Describe a tensor, alone or in a dict, as a stored table."""
    if isinstance(found, dict):
        found = found[choose_key([name for name in found if isinstance(name, str)], key, where)]
    if not hasattr(found, "numel") or found.is_sparse or found.is_quantized:
        raise MomentseekError(f"{where} holds no tensor but {type(found).__name__}; save the features themselves")

    def read() -> Any:
        return found.detach().float().numpy()

    whole = not found.is_complex() and str(found.dtype) != "torch.bool"
    return StoredTable(tuple(found.shape), str(found.dtype) if whole else np.dtype(bool), stored, read)


def find_safetensors(source: Path | bytes, key: str | None, where: str) -> StoredTable:
    """Find a tensor of a safetensors file."""
    torch_format = optional_module("safetensors.torch", "train")
    check_size(f"{where} (the file)", _size(source), _size(source))
    data = source if isinstance(source, bytes) else source.read_bytes()
    return tensor_table(torch_format.load(data), key, where, len(data))


def _open(source: Path | bytes) -> IO[bytes]:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _size(source: Path | bytes) -> int:
    return len(source) if isinstance(source, bytes) else source.stat().st_size


ARRAY_FILES: dict[str, Callable[[Path | bytes, str | None, str], StoredTable]] = {
    ".npz": find_npz,
    ".npy": find_npy,
    ".pt": find_pt,
    ".pth": find_pt,
    ".safetensors": find_safetensors,
}
"""The function that finds the array in a file, by suffix."""


def plain_names(names: Collection[str], what: str) -> dict[str, str]:
    """Name of a video or query → name of its file; if all queries begin with ``qid``, it is removed.

    >>> plain_names(["qid3", "qid12"], "query"), plain_names(["qid3", "x"], "query")
    ({'3': 'qid3', '12': 'qid12'}, {'qid3': 'qid3', 'x': 'x'})
    """
    before = QUERY_PREFIX if what == "query" and all(name.startswith(QUERY_PREFIX) for name in names) else ""
    return {name.removeprefix(before): name for name in names}


class FeatureFolder(TableSource):
    """A folder with one file per video or query."""

    @cached_property
    def _files(self) -> dict[str, Path]:
        files: dict[str, Path] = {}
        for path in sorted(self.path.iterdir()):
            if path.suffix in ARRAY_FILES and not path.name.startswith("."):
                if path.stem in files:
                    raise MomentseekError(
                        f"{self.path}: has both {files[path.stem].name} and {path.name}; keep one file for each"
                    )
                files[path.stem] = path
        return {name: files[stem] for name, stem in plain_names(files, self.what).items()}

    def names(self) -> set[str]:
        """The names of the files, without suffixes."""
        return set(self._files)

    @cached_property
    def size(self) -> int:
        """Number of bytes of all files."""
        return sum(path.stat().st_size for path in self._files.values())

    def find(self, name: str) -> StoredTable | None:
        """The array of a file."""
        path = self._files.get(name)
        return None if path is None else ARRAY_FILES[path.suffix](path, self.key, self.where(name))


def _claims(path: Path) -> bool:
    return path.is_dir() and any(file.suffix in ARRAY_FILES for file in path.iterdir())


READERS.add("folder", FeatureReader("folders of .npz, .npy, .pt or .safetensors", _claims, FeatureFolder))
