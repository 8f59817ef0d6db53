"""Frames of a video for a model, each with its time, within a budget of number, size and quality."""

from __future__ import annotations

import base64
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.errors import MomentseekError, parameter
from momentseek.library.files import VIDEO_SUFFIXES
from momentseek.library.tracks.captions import jpeg
from momentseek.media.sandbox.calls import sparse_frames

MAX_FRAMES = 256


@dataclass(frozen=True)
class FrameBudget:
    """How much of a video a request may send."""

    frames: int = 16
    """Maximum number of frames, evenly spaced over the span in question."""
    per_second: float = 1.0
    """Maximum number of frames per second, so that short videos do not send nearly equal frames."""
    long_side: int = 512
    """Length of the longer side, in pixels."""
    quality: int = 80
    """Quality of the JPEG, from 1 to 95."""

    def __post_init__(self) -> None:
        limits = {"frames": (1, MAX_FRAMES), "long_side": (32, 4096), "quality": (1, 95)}
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise MomentseekError(f"{parameter(name, getattr(self, name))} is not between {low} and {high}")
        if not self.per_second > 0:
            raise MomentseekError(f"{parameter('per_second', self.per_second)} must be above 0")

    def times(self, start: float, end: float) -> list[tuple[float, float]]:
        """Divide a span into parts; one frame of each is sent.

        >>> FrameBudget(frames=3).times(10.0, 16.0), FrameBudget().times(0.0, 0.5)
        ([(10.0, 12.0), (12.0, 14.0), (14.0, 16.0)], [(0.0, 0.5)])
        """
        count = max(1, min(self.frames, round((end - start) * self.per_second)))
        step = (end - start) / count
        return [(start + i * step, start + (i + 1) * step) for i in range(count)]


def find_video(folder: Path, name: str) -> Path:
    """Find the file of a video in a folder, by its name with or without a video extension."""
    plain = folder / name
    if plain.is_file():
        return plain
    found = sorted(p for p in folder.glob(f"{_escape(name)}.*") if p.suffix.lower() in VIDEO_SUFFIXES)
    if not found:
        raise MomentseekError(f"{folder}: has no video {name!r}; give the folder of the videos ({parameter('media')})")
    return found[0]


def _escape(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def picture_parts(path: Path, start: float, end: float, budget: FrameBudget) -> list[dict[str, Any]]:
    """Return the frames of a span as parts of a chat message: each frame's time as text, then the picture as JPEG."""
    parts: list[dict[str, Any]] = []
    with closing(sparse_frames(path, budget.times(start, end))) as frames:
        for frame in frames:
            data = base64.b64encode(jpeg(frame.pixels, budget.long_side, budget.quality)).decode()
            parts.append({"type": "text", "text": f"t = {frame.time:.1f} s"})
            parts.append({"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}})
    if not parts:
        raise MomentseekError(f"{path}: has no picture between {start:g} and {end:g} s")
    return parts
