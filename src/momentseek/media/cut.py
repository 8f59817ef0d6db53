"""Cutting a moment out of a video into a file of its own."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from momentseek.errors import MediaError, MomentseekError
from momentseek.media.container import FilePath, libav, regular_file
from momentseek.media.copying import copy_packets
from momentseek.media.probe import Probe, probe
from momentseek.media.recoding import CODECS, recode

_ROUNDING = 0.005  # seconds; Matroska counts in milliseconds


@dataclass(frozen=True)
class Cut:
    """A written clip: which seconds of the source it shows, and what is in it."""

    path: Path
    start: float
    end: float
    duration: float
    frames: int


def cut(path: FilePath, start: float, end: float, out: FilePath, *, exact: bool = True, pad: float = 0.0) -> Cut:
    """Write ``[start, end)`` of a video, ``pad`` seconds more on each side, as a clip of the kind of ``out``'s suffix.

    Exactly: encoded anew (H.264 and AAC; VP9 and Opus for .webm), the first frame is the one shown at ``start``, and
    the duration is right within one frame. Fast (``exact=False``): packets are copied from the last key frame at or
    before ``start``, so the clip may begin earlier; ``Cut.start`` says where. Times past either end are drawn in.
    The clip is looked at again before it takes its name; one of another duration than asked is not kept.
    """
    source, target = regular_file(path), Path(out)
    _check_target(source, target)
    info = probe(source)
    begin, finish = max(0.0, start - pad), min(info.duration, end + pad)
    if not begin < finish:
        raise MomentseekError(
            f"{source}: cannot cut {start:g} to {end:g} s out of {info.duration:g} s; "
            "the start must lie in the video and before the end"
        )
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".momentseek-") as room:
            temporary = Path(room) / f"clip{target.suffix.lower()}"
            write = recode if exact else copy_packets
            first, frames = write(source, begin, finish, temporary)
            duration = _checked(temporary, finish - begin, info, exact=exact, place=begin)
            temporary.replace(target)
    except (libav().FFmpegError, ValueError) as e:
        reason = getattr(e, "strerror", None) or e
        raise MomentseekError(f"{target}: cannot be written ({reason}); try .mkv, or cut exactly") from None
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror or e}); check the folder") from None
    return Cut(target, first, finish if exact else first + duration, duration, frames)


def _checked(clip: Path, asked: float, source: Probe, *, exact: bool, place: float) -> float:
    """The duration of the clip as it lies on disk, if it is what was asked for."""
    duration = probe(clip).duration
    leeway = float(1 / source.rate) + _ROUNDING
    if duration < asked - leeway or (exact and duration > asked + leeway):
        raise MediaError(
            f"{source.path}: the clip came out {duration:.2f} s long instead of {asked:.2f} s and was not kept; "
            f"the video is damaged after {place:.1f} s"
        )
    return duration


def _check_target(source: Path, target: Path) -> None:
    if target.suffix.lower() not in CODECS:
        raise MomentseekError(f"{target}: clips are written as {', '.join(CODECS)}; choose one of these")
    if target.is_dir():
        raise MomentseekError(f"{target}: is a folder; give the name of the clip to write")
    if target.exists() and os.path.samefile(source, target):
        raise MomentseekError(f"{target}: is the video itself, which is never written over; choose another name")
