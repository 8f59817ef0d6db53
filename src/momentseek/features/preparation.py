"""How rows of features become a model's input; one path for training, searching with torch, and exported models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from momentseek.features.clips import Array, endpoints, fit_rows, normalise_rows


@dataclass(frozen=True)
class Preparation:
    """How clips are fitted to a number of rows, what is normalised to length 1, and what is appended."""

    rows: int
    """Rows that a video has at most, or, where it is stretched, exactly."""
    fit: str
    video: bool = True
    """Normalise the rows of pictures."""
    subtitle: bool = True
    """Normalise the rows of subtitles."""
    words: bool = True
    """Normalise the rows of queries."""
    endpoints: bool = False
    fit_first: bool = True
    """Fit before normalising; otherwise after, so that each row counts the same in a mean."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Preparation:
        """The preparation that a model's settings ask for; what older settings lack is as it was then.

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
        )

    def prepare_clips(self, x: Array, modality: str) -> Array:
        """The rows of a video's ``video`` or ``subtitle`` features as a model takes them."""
        normalise = self.subtitle if modality == "subtitle" else self.video
        if self.fit_first:
            x = fit_rows(x, self.rows, self.fit)
            x = normalise_rows(x) if normalise else x
        else:
            x = fit_rows(normalise_rows(x) if normalise else x, self.rows, self.fit)
        x = np.concatenate([x, endpoints(len(x))], axis=1) if self.endpoints else x
        return np.asarray(x, dtype=np.float32)

    def prepare_words(self, x: Array) -> Array:
        """The rows of a query's words as a model takes them."""
        return np.asarray(normalise_rows(x) if self.words else x, dtype=np.float32)
