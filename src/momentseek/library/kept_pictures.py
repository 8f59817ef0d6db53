"""A cache of small pictures of clips, written when a video is first decoded, for the second encoder.

Without them the video would be decoded a second time, which takes longer than anything else. They are JPEGs of the
second encoder's input size, one file for each part of a video, deleted once they have been encoded. If they are
missing, damaged, or were not stored for lack of space, the second pass decodes the video file.
"""

from __future__ import annotations

import io
import shutil
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.database import PICTURES
from momentseek.library.timed_text import contents_without_track
from momentseek.library.video_parts import PARTS_FOLDER
from momentseek.media.pixels import Pixels, jpeg, read_picture
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Vectors

MIN_SAME_SCENE = 0.95
"""Cosine of the first encoder's vectors from which a clip counts as equal to the last chosen one."""
MAX_SECONDS_APART = 20.0
"""Longest time without a chosen picture, even if nothing changes."""
MIN_FREE_BYTES = 2 * 10**9
"""Free space on the disk below which no pictures are stored."""
PICTURES_SUFFIX = ".pictures"
PART_SUFFIX = ".npz"


class ClipChooser:
    """Chooses the clips that show something new, whose pictures the second encoder encodes."""

    def __init__(self, clip_seconds: float) -> None:
        self.clip_seconds = clip_seconds
        self._last: tuple[int, Vectors] | None = None

    def choose(self, clip: int, row: Vectors) -> bool:
        """Whether the next clip, with this vector by the first encoder, is chosen."""
        unit = row / max(float(np.linalg.norm(row)), 1e-6)
        if self._last is not None:
            last, before = self._last
            if (clip - last) * self.clip_seconds < MAX_SECONDS_APART and unit @ before >= MIN_SAME_SCENE:
                return False
        self._last = clip, unit
        return True


def choose_clips(rows: Vectors, clip_seconds: float) -> NDArray[np.int64]:
    """The clips whose pictures are encoded; each also represents the clips after it, up to the next chosen one.

    >>> rows = np.array([[1, 0], [0.99, 0.1], [0, 1], [0, 1]], np.float32)
    >>> choose_clips(rows, 1.5).tolist(), choose_clips(rows, 20.0).tolist()
    ([0, 2], [0, 1, 2, 3])
    """
    chooser = ClipChooser(clip_seconds)
    return np.array([clip for clip, row in enumerate(rows) if chooser.choose(clip, row)], np.int64)


def meanings_of(encoder: ImageTextEncoder) -> Callable[[Vectors], Vectors]:
    """The function that makes vectors of an encoder comparable: its ``meanings``, or the identity."""
    found: Callable[[Vectors], Vectors] = getattr(encoder, "meanings", np.asarray)
    return found


class KeptPictures:
    """The cached pictures of one video, by the hash of its content and the length of their shorter side."""

    def __init__(self, library: Path, content: str, short_side: int) -> None:
        self.short_side = short_side
        self.folder = library / PARTS_FOLDER / f"{content}{PICTURES_SUFFIX}{short_side}"
        self._held: tuple[int, dict[int, NDArray[np.uint8]]] = -1, {}

    def save(self, first: int, count: int, pictures: dict[int, bytes]) -> None:
        """Store pictures of some of ``count`` clips, starting with the clip ``first``, if there is space."""
        body = io.BytesIO()
        data = np.frombuffer(b"".join(pictures.values()), np.uint8)
        sizes = np.array([len(one) for one in pictures.values()], np.int64)
        np.savez(body, count=count, clips=np.array(list(pictures), np.int64), ends=np.cumsum(sizes), data=data)
        with suppress(OSError, MomentseekError):
            self.folder.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self.folder).free > MIN_FREE_BYTES:
                write_bytes(self.folder / f"{first:08d}{PART_SUFFIX}", body.getvalue(), flush=False)

    def clips(self, count: int) -> NDArray[np.int64] | None:
        """The clips that have a picture, of a video with ``count`` clips; None unless all parts are intact."""
        found: list[NDArray[np.int64]] = []
        at = 0
        while at < count:
            part = self._part(at)
            if part is None:
                return None
            at += part[0]
            found.append(np.array(list(part[1]), np.int64))
        return np.concatenate(found) if found and at == count else None

    def pictures(self, clips: Sequence[int]) -> Iterator[Pixels]:
        """Read the pictures of some clips, in order; each clip must have one."""
        firsts = sorted(int(path.stem) for path in self.folder.glob(f"*{PART_SUFFIX}"))
        for clip in clips:
            first = firsts[bisect_right(firsts, clip) - 1]
            if self._held[0] != first:
                part = self._part(first)
                self._held = first, {} if part is None else part[1]
            yield read_picture(self._held[1][clip].tobytes())

    def drop(self) -> None:
        """Delete the pictures, after they have been encoded or if the video is given up."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _part(self, first: int) -> tuple[int, dict[int, NDArray[np.uint8]]] | None:
        """The number of clips of a part, and the JPEGs of those that have one; None if it is missing or damaged."""
        try:
            body = io.BytesIO((self.folder / f"{first:08d}{PART_SUFFIX}").read_bytes())
            with np.load(body) as held:  # each array has a checksum
                pieces = np.split(held["data"], held["ends"][:-1])
                return int(held["count"]), dict(zip(held["clips"].tolist(), pieces, strict=True))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None


class PictureKeeper:
    """Stores pictures of a video while it is encoded for the first time, part by part.

    Clips are chosen in each part separately, so that a resumed run stores the same pictures as one without a break.
    """

    def __init__(self, kept: KeptPictures, encoder: ImageTextEncoder, clip_seconds: float, first: int = 0) -> None:
        self.kept, self.clip_seconds, self.first = kept, clip_seconds, first
        self._meanings = meanings_of(encoder)
        self._begin(first)

    def take(self, row: Vectors, pixels: Pixels) -> None:
        """Add the vector and the picture of the next clip."""
        clip = self.first + self._count
        self._count += 1
        if self._chooser.choose(clip, self._meanings(row[None])[0]):
            self._pictures[clip] = jpeg(pixels, self.kept.short_side)

    def save(self) -> None:
        """Store the pictures added so far; called when a part or the video is complete."""
        if self._count:
            self.kept.save(self.first, self._count, self._pictures)
            self._begin(self.first + self._count)

    def _begin(self, first: int) -> None:
        self.first, self._count = first, 0
        self._chooser = ClipChooser(self.clip_seconds)
        self._pictures: dict[int, bytes] = {}


def drop_unwanted_pictures(catalog: Catalog) -> None:
    """Delete pictures that no waiting video needs, except those of a video that is still being encoded."""
    work = catalog.path.parent / PARTS_FOLDER
    folders = {folder: folder.name.split(".")[0] for folder in work.glob(f"*{PICTURES_SUFFIX}*")}
    wanted = contents_without_track(catalog, PICTURES, folders.values()) if folders else set()
    for folder, content in folders.items():
        if content not in wanted and not any(work.glob(f"{content}-*")):
            shutil.rmtree(folder, ignore_errors=True)
