"""Encodings of many videos (or queries) without padding: rows one after another, in memory or on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.models.batch import Encodings
from momentseek.moments.arrays import IntArray, offsets_of

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_keys, dict_values

CONTENTS_FILE = "contents.json"


class LazyTensors(dict[str, Tensor]):
    """Tensors by name that are made when first used: matching needs other tensors than spans do.

    >>> made = LazyTensors(["a", "b"], lambda key: torch.tensor([len(key)]))
    >>> made["a"].item(), dict.__len__(made), sorted(made), {**made}.keys()
    (1, 1, ['a', 'b'], dict_keys(['a', 'b']))
    """

    def __init__(self, names: Iterable[str], make: Callable[[str], Tensor]) -> None:
        super().__init__()
        self._names, self._make = tuple(names), make

    def __missing__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        self[name] = self._make(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def keys(self) -> dict_keys[str, Tensor]:
        """All names; makes every tensor, as ``values`` and ``items`` do."""
        return self._all().keys()

    def values(self) -> dict_values[str, Tensor]:
        return self._all().values()

    def items(self) -> dict_items[str, Tensor]:
        return self._all().items()

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self._names else default

    def _all(self) -> dict[str, Tensor]:
        return {name: self[name] for name in self._names}


@dataclass(frozen=True)
class TensorShape:
    """Shape of one of a model's tensors: ``(items, count + extra, *rest)``, or ``(items, *rest)`` if extra is None."""

    extra: int | None
    rest: tuple[int, ...]
    dtype: str

    def rows(self, counts: IntArray) -> IntArray:
        """Number of rows that items with these numbers of clips take."""
        return np.ones_like(counts) if self.extra is None else counts + self.extra

    def space(self, counts: IntArray) -> tuple[int, ...]:
        """Shape of the array that holds the rows of all items."""
        return (int(self.rows(counts).sum()), *self.rest)


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Encodings of named videos, or of queries: each name's rows lie together, in the order of the names."""

    names: tuple[str, ...]
    counts: IntArray
    """Number of clips (or words) of each name."""
    shapes: Mapping[str, TensorShape]
    values: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def offsets(self) -> Mapping[str, IntArray]:
        """Where each name's rows of each tensor begin."""
        return {key: offsets_of(shape.rows(self.counts).tolist()) for key, shape in self.shapes.items()}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Name → its place in ``names``."""
        return {name: i for i, name in enumerate(self.names)}

    @property
    def nbytes(self) -> int:
        """Bytes of all encodings."""
        return sum(int(v.nbytes) for v in self.values.values())

    @cached_property
    def width(self) -> int:
        """Numbers kept for each clip, over all tensors."""
        return sum(int(np.prod(s.rest)) for s in self.shapes.values() if s.extra is not None) or 1

    @cached_property
    def fixed(self) -> int:
        """Numbers kept for each video, whatever its number of clips."""
        return sum(int(np.prod(s.rest)) for s in self.shapes.values() if s.extra is None)

    def rows(self, i: int) -> dict[str, NDArray[Any]]:
        """The encodings of the name at place ``i``, by tensor."""
        found = {}
        for key, shape in self.shapes.items():
            a, b = self.offsets[key][i], self.offsets[key][i + 1]
            found[key] = self.values[key][a] if shape.extra is None else self.values[key][a:b]
        return found

    def take(self, index: IntArray, device: torch.device | str = "cpu") -> Encodings:
        """The encodings at places ``index``, padded by zeros to the longest; each tensor is fetched when used."""
        return LazyTensors(self.shapes, lambda key: self._tensor(key, index).to(device))

    def spread(self, index: IntArray, device: torch.device | str = "cpu") -> Encodings:
        """What ``take`` returns, for an ``index`` with many repetitions: each distinct place is fetched once."""
        distinct, inverse = np.unique(index, return_inverse=True)
        if np.array_equal(distinct, index):
            return self.take(index, device)
        at = torch.from_numpy(inverse).to(device)
        return LazyTensors(self.shapes, lambda key: self._tensor(key, distinct).to(device).index_select(0, at))

    def _tensor(self, key: str, index: IntArray) -> Tensor:
        shape, values, offsets = self.shapes[key], self.values[key], self.offsets[key]
        if shape.extra is None:
            return _wide(torch.from_numpy(np.ascontiguousarray(values[index])))
        longest = int(self.counts[index].max(initial=0))
        block = np.zeros((len(index), longest + shape.extra, *shape.rest), dtype=values.dtype)
        for row, a, b in zip(block, offsets[index].tolist(), offsets[index + 1].tolist(), strict=True):
            row[: b - a] = values[a:b]
        return _wide(torch.from_numpy(block))

    @classmethod
    def empty(
        cls, names: Sequence[str], counts: IntArray, shapes: Mapping[str, TensorShape], folder: Path | None
    ) -> EncodedCorpus:
        """Space for encodings, in memory or as mapped files in a folder."""
        values: dict[str, NDArray[Any]] = {}
        for key, shape in shapes.items():
            if folder is None:
                values[key] = np.empty(shape.space(counts), shape.dtype)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / CONTENTS_FILE).unlink(missing_ok=True)
                values[key] = np.lib.format.open_memmap(
                    folder / f"{key}.npy", mode="w+", dtype=shape.dtype, shape=shape.space(counts)
                )
        return cls(tuple(names), counts, dict(shapes), values)

    def put(self, index: IntArray, encoded: Encodings) -> None:
        """Store the model's encodings of the names at places ``index``."""
        for key, shape in self.shapes.items():
            block, values, offsets = encoded[key].cpu().numpy(), self.values[key], self.offsets[key]
            for row, i in zip(block, index.tolist(), strict=True):
                a, b = offsets[i], offsets[i + 1]
                values[a:b] = row if shape.extra is None else row[: b - a]

    def finish(self, folder: Path) -> None:
        """Mark the files in ``folder`` as complete; ``open`` refuses them otherwise."""
        for values in self.values.values():
            if isinstance(values, np.memmap):
                values.flush()
        shapes = {key: [s.extra, list(s.rest), s.dtype] for key, s in self.shapes.items()}
        contents = {"names": self.names, "counts": self.counts.tolist(), "shapes": shapes}
        write_bytes(folder / CONTENTS_FILE, json.dumps(contents).encode())

    @classmethod
    def open(cls, folder: Path) -> EncodedCorpus:
        """Open the encodings of a folder as mapped files: only what is searched is read."""
        try:
            contents = json.loads((folder / CONTENTS_FILE).read_bytes())
            shapes = {key: TensorShape(e, tuple(rest), kind) for key, (e, rest, kind) in contents["shapes"].items()}
            counts = np.array(contents["counts"], dtype=np.int64)
            values = {key: np.load(folder / f"{key}.npy", mmap_mode="r") for key in shapes}
            names = tuple(contents["names"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
            raise MomentseekError(f"{folder}: holds no complete encoded corpus ({e}); encode it again") from None
        if any(values[key].shape != shape.space(counts) for key, shape in shapes.items()):
            raise MomentseekError(f"{folder}: files and contents do not agree; encode the corpus again")
        return cls(names, counts, shapes, values)


def _wide(tensor: Tensor) -> Tensor:
    """Half precision is for storage; models calculate in single precision."""
    return tensor.float() if tensor.dtype == torch.float16 else tensor
