"""What re-ranking reads of a video, and which spans of it count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.encoders.protocol import Vectors
from momentseek.encoders.trained.joint import About, Joint, Seen
from momentseek.encoders.trained.manifest import Source

WORDS = np.ones((2, 3), np.float32)


class Blank(Joint):
    """A model whose spans all score alike: only where they lie matters."""

    read = 0

    def _grids(self, asked: Mapping[str, Any], parts: Sequence[Mapping[str, Vectors]]) -> Iterator[Vectors]:
        self.read += len(parts)
        exists = np.add.outer(np.arange(8), np.arange(8)) < 8
        return (np.where(exists, np.float32(part["video"].max()), -np.inf) for part in parts)


def model(clip_seconds: float = 1.5, window: int = 8) -> Blank:
    source = Source("words", "words-1", 3)
    return Blank(
        About(
            folder=Path("model"), model="tan2d", fingerprint="0" * 64, clip_seconds=clip_seconds, video=source,
            subtitle=None, query=source, max_words=30, max_clips=8, fit="stretch", normalise=False, endpoints=False,
            shortest=1, roles=False, end_time="inclusive", nms=None, window=window * clip_seconds,
        )
    )  # fmt: skip


@pytest.mark.parametrize("clip_seconds", [0.1, 0.7, 1 / 3, 1.1, 2.3])
def test_a_span_on_the_seam_of_two_windows_counts_once(clip_seconds: float) -> None:
    """Whatever the length of a clip: times in seconds are rounded, and clips are whole."""

    def spans(seconds: float) -> list[tuple[float, float]]:
        video = Seen(np.ones((131, 3), np.float32), None, 131 * seconds)
        (found,) = model(seconds).spans_of(WORDS, "", [video], most=100_000)
        rows = zip((found.start / seconds).round(6).tolist(), (found.end / seconds).round(6).tolist(), strict=True)
        return sorted(rows)

    wanted = spans(1.0)
    assert len(set(wanted)) == len(wanted) > 500
    assert spans(clip_seconds) == wanted
