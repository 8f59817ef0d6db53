"""One video's vectors, in the two forms in which segments hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.segments import Segment, locate, quantise


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """Vectors as int8 with scales and as float16: 3 bytes a column, and the same bytes wherever they are copied."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    half: NDArray[np.float16]

    @classmethod
    def of(cls, vectors: NDArray[Any]) -> StoredVectors:
        """Vectors as an encoder gives them, in both forms.

        >>> len(StoredVectors.of(np.eye(3)))
        3
        """
        return cls(*quantise(vectors), np.asarray(vectors, np.float32).astype(np.float16))

    @classmethod
    def find(cls, segments: Sequence[Segment], video: int) -> StoredVectors | None:
        """A copy of a video's vectors, byte for byte, from whichever segment holds them; None if none does."""
        place = locate(segments, video)
        if place is None:
            return None
        part = segments[place[0]].part(place[1], place[1] + 1)
        return cls(np.array(part.codes), np.array(part.scales), np.array(part.half))

    def __len__(self) -> int:
        return len(self.scales)


def join_vectors(parts: Sequence[StoredVectors]) -> StoredVectors:
    """The vectors of several parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    return StoredVectors(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.half for part in parts]),
    )


def segment_of(stream: str, ids: Sequence[int], rows: Sequence[StoredVectors]) -> Segment:
    """A segment in memory that holds the vectors of several videos."""
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    whole = join_vectors(rows)
    return Segment("(memory)", stream, np.asarray(ids, np.int64), offsets, whole.codes, whole.scales, whole.half)
