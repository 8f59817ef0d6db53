"""Upright RGB pixels: of decoded frames, with colours, sample aspect, rotation and size, and of pictures in files."""

from __future__ import annotations

import io
import warnings
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, optional_module

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.reformatter import VideoReformatter


Pixels = NDArray[np.uint8]

_UPRIGHT = (1, 0, 0, 1)


def display_size(width: int, height: int, aspect: Fraction | None) -> tuple[int, int]:
    """Width and height in square pixels: the wider side of a pixel is stretched, as players do.

    >>> display_size(720, 576, Fraction(64, 45))
    (1024, 576)
    >>> display_size(640, 480, Fraction(1, 2))
    (320, 480)
    """
    if aspect is None or not Fraction(1, 16) <= aspect <= 16:
        return width, height
    return max(1, round(width * aspect)), height


def shrunk(width: int, height: int, short_side: int | None) -> tuple[int, int]:
    """The size at which the shorter side is ``short_side``; never larger than it was.

    >>> shrunk(1920, 1080, 224), shrunk(160, 120, 224)
    ((398, 224), (160, 120))
    """
    short = min(width, height)
    if short_side is None or short <= short_side:
        return width, height
    return max(1, round(width * short_side / short)), max(1, round(height * short_side / short))


def orientation(frame: VideoFrame) -> tuple[int, int, int, int]:
    """The display matrix as quarter turns and mirrorings: ``(a, b, c, d)`` with x' = ax + cy, y' = bx + dy."""
    data = frame.side_data.get("DISPLAYMATRIX")
    if data is None:
        return _UPRIGHT
    matrix = np.frombuffer(bytes(data), np.int32)  # type: ignore[call-overload]
    if len(matrix) != 9:
        return _UPRIGHT
    a, b, c, d = (int(x) for x in matrix[[0, 1, 3, 4]])
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return (1 if a >= 0 else -1), 0, 0, (1 if d >= 0 else -1)
    return 0, (1 if b >= 0 else -1), (1 if c >= 0 else -1), 0


def clockwise(turn: tuple[int, int, int, int]) -> int:
    """Degrees a frame is turned clockwise to stand upright.

    >>> clockwise((0, 1, -1, 0)), clockwise((-1, 0, 0, -1)), clockwise((1, 0, 0, 1))
    (90, 180, 0)
    """
    a, b, _, d = turn
    if a:
        return 180 if a < 0 and d < 0 else 0
    return 90 if b > 0 else 270


def upright(pixels: Pixels, turn: tuple[int, int, int, int]) -> Pixels:
    """Turn and mirror pixels as the display matrix says.

    >>> upright(np.array([[[1], [2]]], np.uint8), (0, 1, -1, 0))[..., 0].tolist()
    [[1], [2]]
    >>> upright(np.array([[[1], [2]]], np.uint8), (-1, 0, 0, -1))[..., 0].tolist()
    [[2, 1]]
    """
    if turn == _UPRIGHT:
        return pixels
    a, b, c, d = turn
    if a == 0:
        pixels = pixels.transpose(1, 0, 2)
        across, down = c, b
    else:
        across, down = a, d
    if across < 0:
        pixels = pixels[:, ::-1]
    if down < 0:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


class FrameConverter:
    """Turns frames into pixels of a wanted size; keeps ffmpeg's scaler between frames."""

    def __init__(self, aspect: Fraction | None, short_side: int | None = None, width: int | None = None) -> None:
        from av.video.reformatter import VideoReformatter

        self.aspect, self.short_side, self.width = aspect, short_side, width
        self._scaler: VideoReformatter = VideoReformatter()

    def pixels_of(self, frame: VideoFrame, turned: bool = True) -> Pixels:
        """The frame as (height, width, 3) RGB, in square pixels, upright unless ``turned`` is false."""
        from av.video.reformatter import Colorspace, Interpolation

        width, height = display_size(frame.width, frame.height, self.aspect)
        turn = orientation(frame) if turned else _UPRIGHT
        if self.width is not None and (across := height if turn[0] == 0 else width) > self.width:
            ratio = self.width / across
            width, height = max(1, round(width * ratio)), max(1, round(height * ratio))
        width, height = shrunk(width, height, self.short_side)
        smaller = width < frame.width or height < frame.height
        unnamed = frame.colorspace in (2, 3)  # unspecified, reserved: players take the size as a hint
        source = (Colorspace.ITU709 if frame.height >= 720 else Colorspace.ITU601) if unnamed else None
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


MAX_PICTURE_BYTES = 64 << 20
MAX_PICTURE_PIXELS = 100_000_000
"""Pixels of the largest picture that is decoded."""
LONG_SIDE = 1024
"""Pixels of the longer side to which larger pictures are made smaller; encoders look at less."""
PICTURE_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")


def read_picture(source: Path | bytes) -> Pixels:
    """A picture from a file or from its bytes, turned as its camera says; of a moving one the first frame."""
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
            warnings.simplefilter("ignore")  # what pictures say about themselves is often odd, and of no use here
            with images.open(io.BytesIO(data), formats=PICTURE_FORMATS) as opened:
                width, height = opened.size
                if width * height > MAX_PICTURE_PIXELS:
                    raise MomentseekError(f"{where}: has {width} × {height} pixels, which is too many; make it smaller")
                opened.thumbnail((LONG_SIDE, LONG_SIDE))
                return np.asarray(ops.exif_transpose(opened).convert("RGB"), np.uint8)
    except MomentseekError:
        raise
    except FileNotFoundError:
        raise MomentseekError(f"{where}: is not there; check the path") from None
    except Exception as e:  # Pillow's readers raise many kinds of errors on damaged files
        kind = type(e).__name__
        raise MomentseekError(f"{where}: cannot be read as a picture ({kind}); use JPEG, PNG or WebP") from None
