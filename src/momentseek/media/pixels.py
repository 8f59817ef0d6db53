"""Upright RGB pixels from decoded frames (colours, pixel aspect, rotation, size) and from picture files."""

from __future__ import annotations

import io
import warnings
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, optional_module

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.reformatter import VideoReformatter


Pixels = NDArray[np.uint8]


class Turn(NamedTuple):
    """How to make a stored frame upright: transpose it first, then mirror it if ``across`` or ``down`` is -1."""

    transposed: bool = False
    across: int = 1
    down: int = 1


def display_size(width: int, height: int, aspect: Fraction | None) -> tuple[int, int]:
    """Return width and height in square pixels; the wider side of a pixel is stretched, as players do.

    >>> display_size(720, 576, Fraction(64, 45))
    (1024, 576)
    >>> display_size(640, 480, Fraction(1, 2))
    (320, 480)
    """
    if aspect is None or not Fraction(1, 16) <= aspect <= 16:
        return width, height
    return max(1, round(width * aspect)), height


def shrunk(width: int, height: int, short_side: int | None) -> tuple[int, int]:
    """Return the size scaled down to a shorter side of ``short_side``; smaller sizes stay.

    >>> shrunk(1920, 1080, 224), shrunk(160, 120, 224)
    ((398, 224), (160, 120))
    """
    short = min(width, height)
    if short_side is None or short <= short_side:
        return width, height
    return max(1, round(width * short_side / short)), max(1, round(height * short_side / short))


def orientation(frame: VideoFrame) -> Turn:
    """Return the display matrix of a frame as quarter turns and mirrorings."""
    data = frame.side_data.get("DISPLAYMATRIX")
    matrix = np.frombuffer(b"" if data is None else bytes(data), np.int32)  # type: ignore[call-overload]
    if len(matrix) != 9:
        return Turn()
    a, b, c, d = (int(x) for x in matrix[[0, 1, 3, 4]])  # x' = ax + cy, y' = bx + dy
    transposed = abs(a) + abs(d) < abs(b) + abs(c)
    across, down = (c, b) if transposed else (a, d)
    return Turn(transposed, 1 if across >= 0 else -1, 1 if down >= 0 else -1)


def clockwise(turn: Turn) -> int:
    """Return the clockwise rotation in degrees that makes a frame upright.

    >>> clockwise(Turn(True, -1, 1)), clockwise(Turn(False, -1, -1)), clockwise(Turn())
    (90, 180, 0)
    """
    if turn.transposed:
        return 90 if turn.down > 0 else 270
    return 180 if turn.across < 0 and turn.down < 0 else 0


def upright(pixels: Pixels, turn: Turn) -> Pixels:
    """Apply a ``Turn`` to pixels.

    >>> upright(np.array([[[1], [2]]], np.uint8), Turn(True, -1, 1))[..., 0].tolist()
    [[1], [2]]
    """
    if turn.transposed:
        pixels = pixels.transpose(1, 0, 2)
    return np.ascontiguousarray(pixels[:: turn.down, :: turn.across])


POINTS_PER_PIXEL = 4
"""Sampled points per output pixel, across and down, in rough conversion."""


class FrameConverter:
    """Converts frames to pixels of a given size; keeps ffmpeg's scaler between frames.

    With ``roughly``, a much larger frame is sampled at some points only, which takes a quarter of the time.
    """

    def __init__(
        self,
        aspect: Fraction | None,
        short_side: int | None = None,
        width: int | None = None,
        *,
        roughly: bool = False,
    ) -> None:
        from av.video.reformatter import VideoReformatter

        self.aspect, self.short_side, self.width, self.roughly = aspect, short_side, width, roughly
        self._scaler: VideoReformatter = VideoReformatter()
        self._pointer: VideoReformatter = VideoReformatter()

    def pixels_of(self, frame: VideoFrame, turned: bool = True) -> Pixels:
        """Return the frame as (height, width, 3) RGB in square pixels, upright unless ``turned`` is false."""
        from av.video.reformatter import Colorspace, Interpolation

        width, height = display_size(frame.width, frame.height, self.aspect)
        turn = orientation(frame) if turned else Turn()
        if self.width is not None and (shown := height if turn.transposed else width) > self.width:
            ratio = self.width / shown
            width, height = max(1, round(width * ratio)), max(1, round(height * ratio))
        width, height = shrunk(width, height, self.short_side)
        smaller = width < frame.width or height < frame.height
        unnamed = frame.colorspace in (2, 3)  # unspecified, reserved: players guess from the size
        source = (Colorspace.ITU709 if frame.height >= 720 else Colorspace.ITU601) if unnamed else None
        across, down = POINTS_PER_PIXEL * width, POINTS_PER_PIXEL * height
        if self.roughly and 2 * across <= frame.width and 2 * down <= frame.height:
            frame = self._pointer.reformat(frame, across, down, interpolation=Interpolation.POINT, threads=1)
        rgb = self._scaler.reformat(
            frame,
            width,
            height,
            "rgb24",
            src_colorspace=source,
            interpolation=Interpolation.AREA if smaller else Interpolation.BICUBIC,
            threads=1,
        )
        return upright(np.asarray(rgb.to_ndarray(), np.uint8), turn)


JPEG_QUALITY = 98
"""High, without chroma subsampling: compression losses affect encoders more than people."""


def jpeg(pixels: Pixels, short_side: int | None = None, quality: int = JPEG_QUALITY) -> bytes:
    """Encode RGB pixels as JPEG, shrunk if the shorter side exceeds ``short_side``."""
    pillow = optional_module("PIL.Image", "search")
    image = pillow.fromarray(pixels)
    width, height = image.size
    size = shrunk(width, height, short_side)
    written = io.BytesIO()
    (image if size == image.size else image.resize(size, pillow.Resampling.BOX)).save(
        written, "JPEG", quality=quality, subsampling=0
    )
    return written.getvalue()


MAX_PICTURE_BYTES = 64 << 20
MAX_PICTURE_PIXELS = 100_000_000
LONG_SIDE = 1024
"""Maximum of the longer side in pixels; larger pictures are shrunk, and encoders use fewer pixels."""
PICTURE_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")


def read_picture(source: Path | bytes) -> Pixels:
    """Read a picture from a file or from bytes, rotated by its EXIF orientation; of an animation the first frame."""
    where = "the picture" if isinstance(source, bytes) else str(source)
    images, ops = optional_module("PIL.Image", "search"), optional_module("PIL.ImageOps", "search")
    try:
        if isinstance(source, bytes):
            data = source
        else:
            with source.open("rb") as file:
                data = file.read(MAX_PICTURE_BYTES + 1)
        if len(data) > MAX_PICTURE_BYTES:
            raise MomentseekError(f"{where}: is larger than {MAX_PICTURE_BYTES:,} bytes; make it smaller")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the metadata of pictures is often invalid, and not needed here
            with images.open(io.BytesIO(data), formats=PICTURE_FORMATS) as opened:
                width, height = opened.size
                if width * height > MAX_PICTURE_PIXELS:
                    raise MomentseekError(f"{where}: has {width} × {height} pixels, which is too many; make it smaller")
                opened.thumbnail((LONG_SIDE, LONG_SIDE))
                return np.asarray(ops.exif_transpose(opened).convert("RGB"), np.uint8)
    except MomentseekError:
        raise
    except FileNotFoundError:
        raise MomentseekError(f"{where}: does not exist; check the path") from None
    except Exception as e:  # Pillow's readers raise many kinds of errors on damaged files
        kind = type(e).__name__
        raise MomentseekError(f"{where}: cannot be read as a picture ({kind}); use JPEG, PNG or WebP") from None
