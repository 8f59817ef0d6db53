"""Small pictures of moments, as WebP."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from momentseek.errors import MediaError
from momentseek.media.container import FilePath, libav, open_media
from momentseek.media.picture import Painter, Pixels
from momentseek.media.reader import Picture, Reader

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext


def thumbnail(path: FilePath, time: float, width: int = 320, quality: int = 75) -> bytes:
    """The frame being shown at ``time``, at most ``width`` pixels wide, as the bytes of a WebP file.

    A time before the beginning or past the end gives the first or the last frame.
    """
    return webp(_pixels_at(path, time, width), quality)


def webp(pixels: Pixels, quality: int = 75) -> bytes:
    """RGB pixels as the bytes of a WebP file."""
    av = libav()
    height, width, _ = pixels.shape
    encoder: VideoCodecContext = av.CodecContext.create("libwebp", "w")
    encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
    encoder.time_base = Fraction(1)
    encoder.options = {"quality": str(min(100, max(0, quality)))}
    frame = av.VideoFrame.from_ndarray(pixels, "rgb24").reformat(format="yuv420p")
    frame.pts = 0
    packets: list[Any] = [*encoder.encode(frame), *encoder.encode(None)]
    return b"".join(bytes(packet) for packet in packets)


def _pixels_at(path: FilePath, time: float, width: int) -> Pixels:
    with open_media(path) as container:
        reader = Reader(container, path)
        if reader.expected is not None:
            time = min(time, reader.expected)
        shown: Picture | None = None
        for picture in reader.pictures(max(0.0, time)):
            if shown is not None and picture.time > time + 1e-6:
                break
            shown = picture
        if shown is None:
            reader.refuse_hunger()
            raise MediaError(f"{path}: no picture can be decoded at {time:.1f} s; get another copy")
        return Painter(reader.aspect, width=width).paint(shown.frame)
