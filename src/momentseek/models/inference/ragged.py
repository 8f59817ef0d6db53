"""What a model keeps of many videos (or queries), without padding: rows one after another, in memory or on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.models.batch import Encoded
from momentseek.moments.arrays import IntArray, offsets_of

CONTENTS = "contents.json"


@dataclass(frozen=True)
class Shape:
    """How one of a model's tensors grows: ``(items, count + extra, *rest)``, or ``(items, *rest)`` if extra is None."""

    extra: int | None
    rest: tuple[int, ...]
    dtype: str

    def rows(self, counts: IntArray) -> IntArray:
        """Rows that items of these counts take."""
        return np.ones_like(counts) if self.extra is None else counts + self.extra

    def space(self, counts: IntArray) -> tuple[int, ...]:
        """Shape of the array that holds them all."""
        return (int(self.rows(counts).sum()), *self.rest)


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Encodings of named videos, or of queries: each name's rows lie together, in the order of the names."""

    names: tuple[str, ...]
    counts: IntArray
    """Clips (or words) of each."""
    shapes: Mapping[str, Shape]
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
        """Bytes of all of it."""
        return sum(int(v.nbytes) for v in self.values.values())

    @cached_property
    def width(self) -> int:
        """Numbers kept per clip."""
        return sum(int(np.prod(s.rest)) for s in self.shapes.values() if s.extra is not None) or 1

    @cached_property
    def fixed(self) -> int:
        """Numbers kept per video, whatever its clips."""
        return sum(int(np.prod(s.rest)) for s in self.shapes.values() if s.extra is None)

    def rows(self, i: int) -> dict[str, NDArray[Any]]:
        """What is kept of one of them."""
        found = {}
        for key, shape in self.shapes.items():
            a, b = self.offsets[key][i], self.offsets[key][i + 1]
            found[key] = self.values[key][a] if shape.extra is None else self.values[key][a:b]
        return found

    def take(self, index: IntArray, device: torch.device | str = "cpu") -> Encoded:
        """Those at ``index`` as the model gave them, padded by zeros to the longest of them."""
        longest = int(self.counts[index].max(initial=0))
        found: Encoded = {}
        for key, shape in self.shapes.items():
            values, offsets = self.values[key], self.offsets[key]
            wide = np.float32 if values.dtype == np.float16 else values.dtype
            if shape.extra is None:
                block = np.asarray(values[index], dtype=wide)
            else:
                block = np.zeros((len(index), longest + shape.extra, *shape.rest), dtype=wide)
                for row, a, b in zip(block, offsets[index].tolist(), offsets[index + 1].tolist(), strict=True):
                    row[: b - a] = values[a:b]
            found[key] = torch.from_numpy(block).to(device)
        return found

    @classmethod
    def empty(
        cls, names: Sequence[str], counts: IntArray, shapes: Mapping[str, Shape], folder: Path | None
    ) -> EncodedCorpus:
        """Room for encodings, in memory or as mapped files in a folder."""
        values: dict[str, NDArray[Any]] = {}
        for key, shape in shapes.items():
            if folder is None:
                values[key] = np.empty(shape.space(counts), shape.dtype)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / CONTENTS).unlink(missing_ok=True)
                values[key] = np.lib.format.open_memmap(
                    folder / f"{key}.npy", mode="w+", dtype=shape.dtype, shape=shape.space(counts)
                )
        return cls(tuple(names), counts, dict(shapes), values)

    def put(self, index: IntArray, encoded: Encoded) -> None:
        """Keep the model's output for the names at ``index``."""
        for key, shape in self.shapes.items():
            block, values, offsets = encoded[key].cpu().numpy(), self.values[key], self.offsets[key]
            for row, i in zip(block, index.tolist(), strict=True):
                a, b = offsets[i], offsets[i + 1]
                values[a:b] = row if shape.extra is None else row[: b - a]

    def finish(self, folder: Path) -> None:
        """Say that the files in ``folder`` are complete; without this they are never opened."""
        for values in self.values.values():
            if isinstance(values, np.memmap):
                values.flush()
        shapes = {key: [s.extra, list(s.rest), s.dtype] for key, s in self.shapes.items()}
        contents = {"names": self.names, "counts": self.counts.tolist(), "shapes": shapes}
        write_bytes(folder / CONTENTS, json.dumps(contents).encode())

    @classmethod
    def open(cls, folder: Path) -> EncodedCorpus:
        """Encodings that were kept in a folder, mapped: only what is searched is read."""
        try:
            contents = json.loads((folder / CONTENTS).read_bytes())
            shapes = {key: Shape(e, tuple(rest), kind) for key, (e, rest, kind) in contents["shapes"].items()}
            counts = np.array(contents["counts"], dtype=np.int64)
            values = {key: np.load(folder / f"{key}.npy", mmap_mode="r") for key in shapes}
            names = tuple(contents["names"])
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise MomentseekError(f"{folder}: holds no complete encoded corpus ({e}); encode it again") from None
        if any(values[key].shape != shape.space(counts) for key, shape in shapes.items()):
            raise MomentseekError(f"{folder}: files and contents do not agree; encode the corpus again")
        return cls(names, counts, shapes, values)
