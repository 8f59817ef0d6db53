"""Reading a picture that somebody gives: upright RGB pixels, within limits, or one sentence."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.media.picture import Pixels
from momentseek.optional import optional_module

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
        data = source if isinstance(source, bytes) else _file_bytes(source)
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
        raise MomentseekError(
            f"{where}: cannot be read as a picture ({type(e).__name__}); use JPEG, PNG or WebP"
        ) from None


def _file_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_PICTURE_BYTES + 1)
