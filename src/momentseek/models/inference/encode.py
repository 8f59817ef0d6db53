"""Encode videos or queries once, in batches of similar length, and store the encodings without padding."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import IntArray, offsets_of
from momentseek.models.batch import Clips, Encodings, Words
from momentseek.models.features.data import Data, DataSplit
from momentseek.models.inputs import clips_of, words_of
from momentseek.models.layers.moment_map import MapConvolution
from momentseek.models.model import CorpusModel
from momentseek.recognition.exported.preparation import bounds

StageCallback = Callable[[str, int, int], None]
"""Called with the name of a stage, its finished amount and its total."""
QUERIES_AT_ONCE = 256
MAX_MAP_NUMBERS = 1 << 25
"""Maximum number of values in maps of candidate moments in memory (128 MB)."""
P = TypeVar("P", Clips, Words)


class LazyTensors(Mapping[str, Tensor]):
    """Tensors by name that are created when first used, because matching and spans need different ones.

    >>> made = LazyTensors(["a", "b"], lambda key: torch.tensor([len(key)]))
    >>> made["a"].item(), sorted(made), {**made}.keys()
    (1, ['a', 'b'], dict_keys(['a', 'b']))
    """

    def __init__(self, names: Iterable[str], make: Callable[[str], Tensor]) -> None:
        self._names, self._make = tuple(names), make
        self._made: Encodings = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)


@dataclass(frozen=True)
class TensorShape:
    """The shape of a model's tensor: ``(items, count + extra, *rest)``, or ``(items, *rest)`` if extra is None."""

    extra: int | None
    rest: tuple[int, ...]
    dtype: str

    def rows(self, counts: IntArray) -> IntArray:
        """Number of rows of each item, given the numbers of clips."""
        return np.ones_like(counts) if self.extra is None else counts + self.extra

    def space(self, counts: IntArray) -> tuple[int, ...]:
        """Shape of the array that holds the rows of all items."""
        return (int(self.rows(counts).sum()), *self.rest)


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Encodings of named videos or queries; the rows of a name are contiguous, in the order of the names."""

    names: tuple[str, ...]
    counts: IntArray
    """Number of clips (or words) of each name."""
    shapes: Mapping[str, TensorShape]
    values: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def offsets(self) -> Mapping[str, IntArray]:
        """The first row of each name, by tensor."""
        return {key: offsets_of(shape.rows(self.counts).tolist()) for key, shape in self.shapes.items()}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Name → its index in ``names``."""
        return {name: i for i, name in enumerate(self.names)}

    @property
    def has_rows_of_clips(self) -> bool:
        """Whether each clip has a row; if all videos have the same length, each video is one block instead."""
        return self.shapes["mask"].extra is not None

    @property
    def nbytes(self) -> int:
        """Bytes of all encodings."""
        return sum(int(v.nbytes) for v in self.values.values())

    @cached_property
    def width(self) -> int:
        """Number of values per clip, over all tensors."""
        return sum(int(np.prod(s.rest)) for s in self.shapes.values() if s.extra is not None) or 1

    @cached_property
    def fixed(self) -> int:
        """Number of values per video that do not depend on its number of clips."""
        return sum(int(np.prod(s.rest)) for s in self.shapes.values() if s.extra is None)

    def rows(self, i: int) -> dict[str, NDArray[Any]]:
        """The encodings of the name at place ``i``, by tensor."""
        found = {}
        for key, shape in self.shapes.items():
            a, b = self.offsets[key][i], self.offsets[key][i + 1]
            found[key] = self.values[key][a] if shape.extra is None else self.values[key][a:b]
        return found

    def take(self, index: IntArray, device: torch.device | str = "cpu") -> Encodings:
        """The encodings at positions ``index``, padded with zeros to the longest; each tensor is created when used."""
        return cast(Encodings, LazyTensors(self.shapes, lambda key: self._tensor(key, index).to(device)))

    def spread(self, index: IntArray, device: torch.device | str = "cpu") -> Encodings:
        """Like ``take``, for an ``index`` with many repetitions: each distinct place is copied once."""
        distinct, inverse = np.unique(index, return_inverse=True)
        if np.array_equal(distinct, index):
            return self.take(index, device)
        at = torch.from_numpy(inverse).to(device)
        found = LazyTensors(self.shapes, lambda key: self._tensor(key, distinct).to(device).index_select(0, at))
        return cast(Encodings, found)

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
    def empty(cls, names: Sequence[str], counts: IntArray, shapes: Mapping[str, TensorShape]) -> EncodedCorpus:
        """Allocate memory for encodings."""
        values = {key: np.empty(shape.space(counts), shape.dtype) for key, shape in shapes.items()}
        return cls(tuple(names), counts, dict(shapes), values)

    def put(self, index: IntArray, encoded: Encodings) -> None:
        """Store the model's encodings of the names at the positions ``index``."""
        for key, shape in self.shapes.items():
            block, values, offsets = encoded[key].cpu().numpy(), self.values[key], self.offsets[key]
            for row, i in zip(block, index.tolist(), strict=True):
                a, b = offsets[i], offsets[i + 1]
                values[a:b] = row if shape.extra is None else row[: b - a]


def _wide(tensor: Tensor) -> Tensor:
    """Convert half precision, which is only for storage, to single precision."""
    return tensor.float() if tensor.dtype == torch.float16 else tensor


def encode_corpus(
    model: CorpusModel,
    data: Data,
    names: Sequence[str],
    *,
    batch: int = 64,
    progress: StageCallback | None = None,
) -> EncodedCorpus:
    """Encode videos with a model, in the order of ``names``.

    Videos are read and encoded in batches of similar length, ``batch`` at a time, to avoid padding.
    """
    config = model.config
    fitted = [len(bounds(data.rows(name), config.max_clips, config.fit)) - 1 for name in names]
    counts = np.array(fitted, dtype=np.int64)

    if model.retrieves and (numbers := map_numbers(model)):  # this model computes its map when encoding
        batch = max(1, min(batch, MAX_MAP_NUMBERS // numbers))

    def encode(index: IntArray, padding: int) -> Encodings:
        clips = clips_of(data, [names[i] for i in index], config)
        return model.encode_clips(_move(_pad(clips, padding), device_of(model)))

    return _encode_all(model, names, counts, encode, batch, "videos", progress)


def encode_queries(
    model: CorpusModel, split: DataSplit, query_ids: Sequence[str], *, progress: StageCallback | None = None
) -> EncodedCorpus:
    """Encode queries with a model, in the order of ``query_ids``."""
    config = model.config
    counts = np.array([min(split.query.rows(q), config.max_words) for q in query_ids], dtype=np.int64)

    def encode(index: IntArray, padding: int) -> Encodings:
        words = words_of(split, [query_ids[i] for i in index], config)
        padded = dataclasses.replace(_pad(words, padding), ids=words.ids)  # ids have a fixed width
        return model.encode_words(_move(padded, device_of(model)))

    return _encode_all(model, query_ids, counts, encode, QUERIES_AT_ONCE, "queries", progress)


def _encode_all(
    model: CorpusModel,
    names: Sequence[str],
    counts: IntArray,
    encode: Callable[[IntArray, int], Encodings],
    batch: int,
    what: str,
    progress: StageCallback | None,
) -> EncodedCorpus:
    if not len(names):
        raise MomentseekError(f"there are no {what} to encode; check the split")
    report = progress or (lambda stage, done, total: None)
    order = np.argsort(counts, kind="stable")
    batches = [order[first : first + batch] for first in range(0, len(order), max(1, batch))]
    with inference_mode(model):
        report(what, 0, len(names))
        begun = encode(batches[0], 0)
        kept = EncodedCorpus.empty(names, counts, _shapes(counts, batches[0], begun, encode))
        done = 0
        for index in batches:
            kept.put(index, encode(index, 0) if done else begun)
            done += len(index)
            report(what, done, len(names))
    return kept


def _shapes(
    counts: IntArray, first: IntArray, begun: Encodings, encode: Callable[[IntArray, int], Encodings]
) -> Mapping[str, TensorShape]:
    """The shapes of the model's tensors; comparing two encodings shows which have a row per clip.

    One encoding is of the ``first`` items, which are the shortest. The other is of the shortest item alone or, if the
    first items have one length, of the same items with padding. If all items have one length, no tensor grows.
    """
    shortest, reached = int(counts[first[0]]), int(counts[first].max())
    one = other = begun
    if reached > shortest:
        one, change = encode(first[:1], 0), reached - shortest
    else:
        change = int(shortest < counts.max())
        other = encode(first, change) if change else begun
    shapes = {}
    for key, tensor in one.items():
        grows = [axis for axis in range(1, tensor.ndim) if tensor.shape[axis] != other[key].shape[axis]]
        kind = str(tensor.dtype).removeprefix("torch.")
        if not grows:
            shapes[key] = TensorShape(None, tuple(tensor.shape[1:]), kind)
        elif grows == [1] and other[key].shape[1] - tensor.shape[1] == change:
            shapes[key] = TensorShape(tensor.shape[1] - shortest, tuple(tensor.shape[2:]), kind)
        else:
            raise MomentseekError(f"the model's {key!r} grows with clips in axis {grows[-1]}; only axis 1 may grow")
    return shapes


def _pad(part: P, more: int) -> P:
    """Add ``more`` rows of padding to every tensor."""

    def pad(tensor: Tensor) -> Tensor:
        return torch.cat([tensor, tensor.new_zeros((len(tensor), more, *tensor.shape[2:]))], dim=1)

    return _each(part, pad) if more else part


def _move(part: P, device: torch.device) -> P:
    return _each(part, lambda tensor: tensor.to(device))


def _each(part: P, change: Callable[[Tensor], Tensor]) -> P:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(part):
        tensor = getattr(part, field.name)
        values[field.name] = None if tensor is None else change(tensor)
    return dataclasses.replace(part, **values)


def map_numbers(model: CorpusModel) -> int:
    """Number of values in a model's map of candidate moments, (channels, clips, clips); 0 if it has none."""
    maps = [m for m in model.modules() if isinstance(m, MapConvolution)]
    return max((model.config.hidden * m.inside.numel() for m in maps), default=0)


def device_of(model: nn.Module) -> torch.device:
    """The device of the model's parameters."""
    for tensor in chain(model.parameters(), model.buffers()):
        return tensor.device
    return torch.device("cpu")


def refuse_nan(scores: NDArray[Any]) -> None:
    """Raise an error if scores are NaN, which means that the model's training has diverged."""
    if np.isnan(scores).any():
        raise MomentseekError("the model's scores are NaN; its training has diverged")


@contextmanager
def inference_mode(model: nn.Module) -> Iterator[None]:
    """A context without gradients and dropout; restores the model's mode at the end."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)
