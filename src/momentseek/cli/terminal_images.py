"""Pictures in the terminal, where it can show them: kitty's graphics protocol and iTerm2's inline images."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping
from typing import Literal

from momentseek.optional import optional_module

TerminalImages = Literal["kitty", "iterm"]
PICTURE_ROWS = 6
"""Lines of text that a picture takes."""
MAX_CHUNK_CHARACTERS = 4096
"""Characters that kitty takes in one escape sequence."""


def supported_images(environment: Mapping[str, str] | None = None) -> TerminalImages | None:
    """The kind of images that a terminal shows, by its environment; None inside tmux and screen, which pass none on.

    >>> environments = {"TERM": "xterm-kitty"}, {"TERM_PROGRAM": "iTerm.app"}, {"TERM": "xterm"}
    >>> tuple(map(supported_images, environments))
    ('kitty', 'iterm', None)
    """
    env = os.environ if environment is None else environment
    term, program = env.get("TERM", ""), env.get("TERM_PROGRAM", "")
    if env.get("TMUX") or env.get("STY") or term.startswith(("screen", "tmux")):
        return None
    if term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty" or env.get("KITTY_WINDOW_ID"):
        return "kitty"
    if program in ("iTerm.app", "WezTerm", "mintty") or env.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return None


def draw_picture(picture: bytes, kind: TerminalImages, rows: int = PICTURE_ROWS) -> str:
    """The escape sequences that draw a picture (WebP or the like), ``rows`` lines high."""
    data = base64.b64encode(_png(picture)).decode()
    if kind == "iterm":
        return f"\x1b]1337;File=inline=1;height={rows};preserveAspectRatio=1:{data}\x07"
    parts = [data[at : at + MAX_CHUNK_CHARACTERS] for at in range(0, len(data), MAX_CHUNK_CHARACTERS)]
    out = []
    for at, part in enumerate(parts):
        keys = f"a=T,f=100,r={rows}," if at == 0 else ""
        out.append(f"\x1b_G{keys}m={int(at + 1 < len(parts))};{part}\x1b\\")
    return "".join(out)


def _png(picture: bytes) -> bytes:
    image = optional_module("PIL.Image", "search")
    out = io.BytesIO()
    with image.open(io.BytesIO(picture)) as opened:
        opened.convert("RGB").save(out, "PNG", compress_level=1)
    return out.getvalue()
