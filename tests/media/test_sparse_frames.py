"""One frame per interval, wherever key frames lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MediaError
from momentseek.media.decode import sparse_frames
from momentseek.media.sandbox.calls import sparse_frames as safe_glimpses

SLOTS = [(0.0, 3.0), (3.0, 6.0), (6.0, 9.0), (9.0, 12.0)]
SCENES = [(3.0, (20 + 60 * i, 20, 20)) for i in range(4)]


def _reds(frames: list[np.ndarray]) -> list[int]:
    return [round(float(pixels[..., 0].mean()) - 20, -1) // 60 for pixels in frames]  # type: ignore[misc]


@pytest.mark.parametrize("keys", [4, 300])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".ts"])
def test_one_frame_per_interval(make_video: Callable[..., Path], tmp_path: Path, suffix: str, keys: int) -> None:
    options = {"g": str(keys), "sc_threshold": "0"}
    film = make_video(tmp_path / f"film{suffix}", SCENES, rate=5, size=(64, 48), options=options)
    found = list(sparse_frames(film, SLOTS))
    assert _reds([frame.pixels for frame in found]) == [0, 1, 2, 3]
    assert all(start <= frame.time < end for frame, (start, end) in zip(found, SLOTS, strict=True))
    (last,) = sparse_frames(film, SLOTS[3:])  # as a run that is resumed
    assert _reds([last.pixels]) == [3]
    assert np.abs(last.pixels.astype(int) - found[3].pixels).max() <= 2


def test_sandbox_gives_the_same_frames(make_video: Callable[..., Path], tmp_path: Path) -> None:
    film = make_video(tmp_path / "film.mp4", SCENES, rate=5, size=(64, 48))
    for one, other in zip(sparse_frames(film, SLOTS), safe_glimpses(film, SLOTS), strict=True):
        assert one.time == other.time
        assert (one.pixels == other.pixels).all()


def test_intervals_after_the_end_give_nothing(make_video: Callable[..., Path], tmp_path: Path) -> None:
    film = make_video(tmp_path / "film.mp4", SCENES[:1], rate=5, size=(64, 48))
    assert len(list(sparse_frames(film, SLOTS))) == 1
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(film.read_bytes()[:600])
    with pytest.raises(MediaError):
        list(sparse_frames(broken, SLOTS))
