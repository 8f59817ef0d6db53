"""Frames of a video for a model: as many, as large and as good as a budget allows, each with its time."""

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
    """Frames at most, evenly over the stretch that is asked about."""
    per_second: float = 1.0
    """Frames per second at most, so that short videos are not sent many times over."""
    long_side: int = 512
    """Pixels of the longer side."""
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
        """The stretches of which one frame each is sent.

        >>> FrameBudget(frames=3).times(10.0, 16.0), FrameBudget().times(0.0, 0.5)
        ([(10.0, 12.0), (12.0, 14.0), (14.0, 16.0)], [(0.0, 0.5)])
        """
        count = max(1, min(self.frames, round((end - start) * self.per_second)))
        step = (end - start) / count
        return [(start + i * step, start + (i + 1) * step) for i in range(count)]


def find_video(folder: Path, name: str) -> Path:
    """The file of a video in a folder: of that name, or of that name and a video's ending."""
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
    """The frames of a stretch as parts of a chat message: each one's time in words, then the picture as JPEG."""
    parts: list[dict[str, Any]] = []
    with closing(sparse_frames(path, budget.times(start, end))) as frames:
        for frame in frames:
            data = base64.b64encode(jpeg(frame.pixels, budget.long_side, budget.quality)).decode()
            parts.append({"type": "text", "text": f"t = {frame.time:.1f} s"})
            parts.append({"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}})
    if not parts:
        raise MomentseekError(f"{path}: has no picture between {start:g} and {end:g} s")
    return parts
