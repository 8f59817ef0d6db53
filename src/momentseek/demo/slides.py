"""Slides: pictures of dark letters on white, as in a talk."""

from __future__ import annotations

from typing import Any

from momentseek.optional import optional_module

PAPER, INK = (250, 250, 245), (25, 30, 45)
TITLE_SHARE = 0.13
"""Height of the letters of a slide's first line as a share of the slide's; the others are three quarters of that."""


def draw_slide(text: str, width: int, height: int) -> Any:
    """A slide as an RGB Pillow image, a little larger than the picture, as a camera moves over it."""
    image, draw, font = (optional_module(f"PIL.{name}", "demo") for name in ("Image", "ImageDraw", "ImageFont"))
    wide, high = round(width * 1.25), round(height * 1.25)
    picture = image.new("RGB", (wide, high), PAPER)
    pen = draw.Draw(picture)
    at = 0.3 * high
    for number, line in enumerate(text.splitlines()):
        size = TITLE_SHARE * high * (0.75 if number else 1.0)
        letters = font.load_default(size)
        pen.text((wide / 2, at), line, INK, letters, anchor="ma")
        at += 1.8 * size
    return picture
