"""Prepare rows of features as a model's input: fitted to a number of clips, normalised, with their times.

Training, inference with torch and exported models share this code. ``edges`` gives the start and end of the fitted
clips in seconds, so that labels (``labels``) and predicted spans are exact whether a long video was truncated or
averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError

Array = NDArray[np.float32]
Times = NDArray[np.float64]
FIT_METHODS = ("truncate", "resample", "stretch", "rounded")
EndLabel = Literal["inclusive", "official", "whole"]


def bounds(rows: int, max_rows: int, how: str) -> Times:
    """Return the rows at which the fitted clips begin, and the end of the last: ``fitted + 1`` numbers.

    >>> bounds(5, 2, "resample").tolist(), bounds(5, 2, "truncate").tolist(), bounds(2, 4, "resample").tolist()
    ([0.0, 2.0, 5.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    >>> bounds(2, 4, "stretch").tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    if how not in FIT_METHODS:
        raise MomentseekError(f"videos are fitted by {', '.join(FIT_METHODS)}, not by {how!r}")
    if how in ("stretch", "rounded") and rows:
        return np.arange(max_rows + 1) * rows / max_rows
    if rows <= max_rows or how == "truncate":
        return np.arange(min(rows, max_rows) + 1, dtype=np.float64)
    return np.floor(np.arange(max_rows + 1) * rows / max_rows)


def fit_rows(x: Array, max_rows: int, how: str) -> Array:
    """Fit rows to at most ``max_rows`` by the method ``how``.

    ``truncate`` keeps the first ones (XML). ``resample`` replaces longer videos by means over even spans of whole rows
    (ReLoCLNet). ``stretch`` resamples every video, shorter ones too, to exactly N = ``max_rows`` parts of equal time,
    each the mean of what it covers (2D-TAN). ``rounded`` does so by whole rows, as the public code of 2D-TAN and MMN:
    part i is the mean of rows round(i n/N) to round((i+1) n/N) - 1, or the first of them alone; the last row is never
    reached from below.

    >>> fit_rows(np.float32([[1], [3], [5], [7], [9]]), 2, "resample").ravel().tolist()
    [2.0, 7.0]
    >>> fit_rows(np.float32([[1], [3], [5]]), 2, "stretch").ravel().round(3).tolist()
    [1.6670000553131104, 4.333000183105469]
    >>> fit_rows(np.float32([[1], [3], [5]]), 2, "rounded").ravel().tolist()
    [2.0, 5.0]
    """
    at = bounds(len(x), max_rows, how)
    if how == "rounded" and len(x):
        begin = np.minimum(np.rint(at).astype(np.int64), len(x) - 1)
        return np.stack([x[s : max(e, s + 1)].mean(0) for s, e in pairwise(begin)])
    if not len(x) or how == "truncate" or (how == "resample" and len(x) <= max_rows):
        return x[: len(at) - 1]
    # The integral of the rows up to any time, rows being constant during their clip; a mean is a difference of two.
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0, dtype=np.float64)])
    whole = np.minimum(at.astype(np.int64), len(x) - 1)
    upto = sums[whole] + (at - whole)[:, None] * x[whole]
    return np.asarray(np.diff(upto, axis=0) / np.diff(at)[:, None], dtype=np.float32)


def edges(rows: int, max_rows: int, how: str, clip_seconds: float = 1.5, duration: float = float("nan")) -> Times:
    """Return the starts of the fitted clips and the end of the last in seconds, within the video.

    >>> edges(3, 10, "truncate", 1.5, duration=4.0).tolist()
    [0.0, 1.5, 3.0, 4.0]
    """
    seconds = bounds(rows, max_rows, how) * clip_seconds
    if duration == duration and len(seconds) > 1 and seconds[-2] < duration < seconds[-1]:
        seconds[-1] = duration
    return seconds


def labels(
    start: Times, end: Times, clip_edges: Times, end_label: EndLabel = "inclusive"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and last clip (inclusive) of moments ``[start, end)``: floor(s / 1.5) and ceil(e / 1.5) - 1.

    ``official`` labels the clip after the last one, as the public code of XML and ReLoCLNet does. ``whole`` labels the
    last clip that ends in the moment, even if it began in a later one or after the video, as Moment-DETR's does.

    >>> moment = np.array([2.0]), np.array([6.0])
    >>> [x.tolist() for x in labels(*moment, edges(10, 10, "truncate"))]
    [[1], [3]]
    >>> [x.tolist() for x in labels(*moment, edges(10, 10, "truncate"), "official")]
    [[1], [4]]
    >>> [x.tolist() for x in labels(np.array([2.0]), np.array([5.9]), edges(10, 10, "truncate"), "whole")]
    [[1], [2]]
    """
    last = len(clip_edges) - 2
    first = np.searchsorted(clip_edges, start, side="right") - 1
    if end_label == "whole":
        return first, np.clip(np.searchsorted(clip_edges, end, side="right") - 2, 0, last)
    first = np.clip(first, 0, last)
    after = np.searchsorted(clip_edges, end, side="left")
    final = np.clip(after if end_label == "official" else after - 1, first, last)
    return first.astype(np.int64), final.astype(np.int64)


def normalise_rows(x: Array, eps: float = 1e-5) -> Array:
    """Divide rows by their length plus ``eps``; rows of zeros (silence) stay zero.

    >>> normalise_rows(np.float32([[3, 4], [0, 0]])).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    length = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float32))[:, None]
    result: Array = x / (length + np.float32(eps))
    return result


def endpoints(length: int) -> Array:
    """Return the temporal endpoint features (TEF): clip i of L is at ``[i/L, (i+1)/L]``.

    >>> endpoints(2).tolist()
    [[0.0, 0.5], [0.5, 1.0]]
    """
    at = np.arange(length + 1, dtype=np.float32) / np.float32(max(length, 1))
    return np.stack([at[:-1], at[1:]], axis=1)


@dataclass(frozen=True)
class Preparation:
    """Settings for fitting clips to a number of rows, normalising them to length 1, and appending features."""

    rows: int
    """Maximum number of rows of a video; the exact number if it is stretched."""
    fit: str
    video: bool = True
    """Normalise the rows of pictures."""
    subtitle: bool = True
    """Normalise the rows of subtitles."""
    words: bool = True
    """Normalise the rows of queries."""
    endpoints: bool = False
    fit_first: bool = True
    """Fit before normalising; if false, after it, so that each row has the same weight in a mean."""
    streams: tuple[int, ...] = ()
    """Column counts of the streams in the video features, each normalised separately; empty: all as one."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Preparation:
        """Return the preparation of a model's settings; settings missing in older models have their former values.

        >>> old = {"max_clips": 16, "normalise": True, "endpoints": False, "fit": "stretch"}
        >>> Preparation.of(old) == Preparation(16, "stretch")
        True
        >>> Preparation.of(old | {"stride": 4, "normalise_words": False}).rows
        64
        """
        every = bool(config["normalise"])
        words, subtitle = (config.get(f"normalise_{part}") for part in ("words", "subtitles"))
        return cls(
            rows=int(config["max_clips"]) * int(config.get("stride", 1)),
            fit=str(config["fit"]),
            video=every,
            subtitle=every if subtitle is None else bool(subtitle),
            words=every if words is None else bool(words),
            endpoints=bool(config["endpoints"]),
            fit_first=bool(config.get("fit_first", True)),
            streams=tuple(config.get("streams") or ()),
        )

    def prepare_clips(self, x: Array, modality: str) -> Array:
        """Prepare the rows of a video's ``video`` or ``subtitle`` features for a model."""
        if self.fit_first:
            x = self._normalise(fit_rows(x, self.rows, self.fit), modality)
        else:
            x = fit_rows(self._normalise(x, modality), self.rows, self.fit)
        x = np.concatenate([x, endpoints(len(x))], axis=1) if self.endpoints else x
        return np.asarray(x, dtype=np.float32)

    def _normalise(self, x: Array, modality: str) -> Array:
        if not (self.subtitle if modality == "subtitle" else self.video):
            return x
        if modality == "subtitle" or not self.streams:
            return normalise_rows(x)
        if sum(self.streams) != x.shape[1]:
            raise MomentseekError(
                f"model: streams of {' + '.join(map(str, self.streams))} columns are not the {x.shape[1]:,} of the "
                "video features; set streams as the feature files have them"
            )
        return np.concatenate([normalise_rows(part) for part in np.split(x, np.cumsum(self.streams)[:-1], 1)], 1)

    def prepare_words(self, x: Array) -> Array:
        """Prepare the rows of a query's words for a model."""
        return np.asarray(normalise_rows(x) if self.words else x, dtype=np.float32)


MODALITIES = ("video", "subtitle")


def parse_modalities(text: str) -> tuple[str, ...]:
    """Parse a setting such as ``video+subtitle`` into modalities, in its order.

    >>> parse_modalities("subtitle+video")
    ('subtitle', 'video')
    """
    names = tuple(text.split("+"))
    if set(names) - set(MODALITIES) or len(set(names)) < len(names):
        raise MomentseekError(f"model: modalities must be video, subtitle or video+subtitle, not {text!r}")
    return names
