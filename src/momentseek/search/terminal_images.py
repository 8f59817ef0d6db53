"""Pictures in the terminal, where it can show them: kitty's graphics protocol and iTerm2's inline images."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping
from typing import Literal

from momentseek.optional import optional_module

Kind = Literal["kitty", "iterm"]
ROWS = 6
"""Lines of text that a picture takes."""
CHUNK = 4096
"""Characters that kitty takes in one escape sequence."""


def images_of(environment: Mapping[str, str] | None = None) -> Kind | None:
    """The kind of images a terminal shows, by what it says of itself; None inside tmux and screen, which pass none on.

    >>> images_of({"TERM": "xterm-kitty"}), images_of({"TERM_PROGRAM": "iTerm.app"}), images_of({"TERM": "xterm"})
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


def drawn(picture: bytes, kind: Kind, rows: int = ROWS) -> str:
    """The escape sequences that draw a picture (WebP, …), ``rows`` lines high."""
    data = base64.b64encode(_png(picture)).decode()
    if kind == "iterm":
        return f"\x1b]1337;File=inline=1;height={rows};preserveAspectRatio=1:{data}\x07"
    parts = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
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
