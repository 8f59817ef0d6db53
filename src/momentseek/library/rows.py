"""One video's vectors, in the two forms in which segments hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.segments import Segment, quantised


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """Vectors as int8 with scales and as float16: 3 bytes a column, and the same bytes wherever they are copied."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    half: NDArray[np.float16]

    @classmethod
    def of(cls, vectors: NDArray[Any]) -> StoredVectors:
        """From an encoder's rows.

        >>> len(StoredVectors.of(np.eye(3)))
        3
        """
        return cls(*quantised(vectors), np.asarray(vectors, np.float32).astype(np.float16))

    @classmethod
    def copied(cls, source: Segment, at: int) -> StoredVectors:
        """Those of the video at place ``at`` of a segment, as they are."""
        part = source.part(at, at + 1)
        return cls(np.array(part.codes), np.array(part.scales), np.array(part.half))

    def __len__(self) -> int:
        return len(self.scales)


def joined(parts: Sequence[StoredVectors]) -> StoredVectors:
    """Rows one after another."""
    if len(parts) == 1:
        return parts[0]
    return StoredVectors(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.half for part in parts]),
    )


def pooled(stream: str, ids: Sequence[int], rows: Sequence[StoredVectors]) -> Segment:
    """A segment of several videos."""
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    whole = joined(rows)
    return Segment("(memory)", stream, np.asarray(ids, np.int64), offsets, whole.codes, whole.scales, whole.half)


def find(segments: Sequence[Segment], video: int) -> StoredVectors | None:
    """A video's rows, from whichever segment holds them."""
    for segment in segments:
        at = np.flatnonzero(segment.ids == video)
        if len(at):
            return StoredVectors.copied(segment, int(at[0]))
    return None
