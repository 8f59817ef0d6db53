"""Encode videos or queries once: read one batch at a time, items of like length together, kept without padding."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from momentseek.errors import MomentseekError
from momentseek.features.clips import bounds
from momentseek.models.batch import Clips, Encodings, Words
from momentseek.models.inference.ragged import EncodedCorpus, TensorShape
from momentseek.models.inputs import ClipFeatures, FeatureTable, Floats, clips_of, words_of
from momentseek.models.model import CorpusModel
from momentseek.models.moment_map import MapConvolution
from momentseek.moments.arrays import IntArray

StageCallback = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is."""
Precision = Literal["float32", "float16"]
MAX_MAP_NUMBERS = 1 << 25
"""Numbers in the maps of candidate moments that are held at once: 128 MB."""


class TimedClipFeatures(ClipFeatures, Protocol):
    """Clip features of videos with the length of a clip in seconds; ``features.data.Data`` is one."""

    @property
    def clip_seconds(self) -> float: ...
    def rows(self, video: str, /) -> int:
        """Number of clips of a video, before any fitting."""
        ...


class CountedFeatureTable(FeatureTable, Protocol):
    """Feature rows whose number is known without reading them; ``features.store.Features`` is one."""

    def rows(self, name: str, /) -> int: ...
    def read(self, name: str, /) -> Floats: ...


class CountedQueryFeatures(Protocol):
    """Word features of queries, with their number known; ``features.data.DataSplit`` is one."""

    @property
    def query(self) -> CountedFeatureTable: ...


def encode_corpus(
    model: CorpusModel,
    data: TimedClipFeatures,
    names: Sequence[str],
    *,
    batch: int = 64,
    precision: Precision = "float32",
    folder: Path | None = None,
    progress: StageCallback | None = None,
) -> EncodedCorpus:
    """Encode videos with a model, and keep its encodings in the order of ``names``.

    Videos are read and encoded ``batch`` at a time, those of like length together, so that little is padded. With
    ``precision="float16"`` the result takes half the space; with a ``folder`` it lies in mapped files there, which
    ``EncodedCorpus.open`` opens again.
    """
    config = model.config
    fitted = [len(bounds(data.rows(name), config.max_clips, config.fit)) - 1 for name in names]
    counts = np.array(fitted, dtype=np.int64)

    if model.retrieves and (numbers := map_numbers(model)):  # the map is made here, not when pairs are scored
        batch = max(1, min(batch, MAX_MAP_NUMBERS // numbers))

    def encode(index: IntArray, padding: int) -> Encodings:
        clips = clips_of(data, [names[i] for i in index], config)
        return model.encode_clips(_move(_pad(clips, padding), device_of(model)))

    return _encode_all(model, names, counts, encode, batch, precision, folder, "videos", progress)


def encode_queries(
    model: CorpusModel,
    split: CountedQueryFeatures,
    query_ids: Sequence[str],
    *,
    batch: int = 256,
    progress: StageCallback | None = None,
) -> EncodedCorpus:
    """Encode queries with a model, and keep its encodings in the order of ``query_ids``."""
    config = model.config
    counts = np.array([min(split.query.rows(q), config.max_words) for q in query_ids], dtype=np.int64)

    def encode(index: IntArray, padding: int) -> Encodings:
        words = words_of(split, [query_ids[i] for i in index], config)
        padded = dataclasses.replace(_pad(words, padding), ids=words.ids)  # which are as wide for any texts
        return model.encode_words(_move(padded, device_of(model)))

    return _encode_all(model, query_ids, counts, encode, batch, "float32", None, "queries", progress)


def _encode_all(
    model: CorpusModel,
    names: Sequence[str],
    counts: IntArray,
    encode: Callable[[IntArray, int], Encodings],
    batch: int,
    precision: Precision,
    folder: Path | None,
    what: str,
    progress: StageCallback | None,
) -> EncodedCorpus:
    if not len(names):
        raise MomentseekError(f"there are no {what} to encode; check the split")
    report = progress or _ignore
    order = np.argsort(counts, kind="stable")
    batches = [order[first : first + batch] for first in range(0, len(order), max(1, batch))]
    with inference_mode(model):
        report(what, 0, len(names))
        begun = encode(batches[0], 0)
        kept = EncodedCorpus.empty(names, counts, _shapes(counts, batches[0], begun, encode, precision), folder)
        done = 0
        for index in batches:
            kept.put(index, encode(index, 0) if done else begun)
            done += len(index)
            report(what, done, len(names))
    if folder is not None:
        kept.finish(folder)
    return kept


def _shapes(
    counts: IntArray,
    first: IntArray,
    begun: Encodings,
    encode: Callable[[IntArray, int], Encodings],
    precision: Precision,
) -> Mapping[str, TensorShape]:
    """Shapes of the model's tensors: which have a row per clip is found by comparing two encodings.

    One is that of the ``first`` items, which are the shortest; the other that of the shortest alone or, where these
    are of one length, of the same with padding. Where all items are of one length nothing grows.
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
        kind = precision if tensor.is_floating_point() else str(tensor.dtype).removeprefix("torch.")
        if not grows:
            shapes[key] = TensorShape(None, tuple(tensor.shape[1:]), kind)
        elif grows == [1] and other[key].shape[1] - tensor.shape[1] == change:
            shapes[key] = TensorShape(tensor.shape[1] - shortest, tuple(tensor.shape[2:]), kind)
        else:
            raise MomentseekError(f"the model's {key!r} grows with clips in axis {grows[-1]}; only axis 1 may grow")
    return shapes


P = TypeVar("P", Clips, Words)


def _pad(part: P, more: int) -> P:
    """The same with ``more`` places of padding."""

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
    """Numbers in one of the model's maps of candidate moments, (channels, clips, clips); 0 if it has none."""
    maps = [m for m in model.modules() if isinstance(m, MapConvolution)]
    return max((model.config.hidden * m.inside.numel() for m in maps), default=0)


def device_of(model: CorpusModel) -> torch.device:
    """The device that the model's parameters are on."""
    for tensor in chain(model.parameters(), model.buffers()):
        return tensor.device
    return torch.device("cpu")


@contextmanager
def inference_mode(model: CorpusModel) -> Iterator[None]:
    """A context without gradients and dropout; afterwards the model is as it was."""
    training = model.training
    if training:  # telling every layer takes a millisecond
        model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if training:
            model.train()


def _ignore(stage: str, done: int, total: int) -> None:
    """Report nothing."""
