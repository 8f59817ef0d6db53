"""Terminal output: escape control characters in foreign text, and draw pictures.

A file name or a line of a data file may contain escape sequences that move the cursor, overwrite earlier output, or
change the clipboard or the window's title. ``guard_streams`` wraps stdout and stderr in a filter for everything that a
command, a library or the interpreter writes. Our own sequences bypass it through ``draw``.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from momentseek.core.errors import optional_module

_OURS = "\x1b\\[(?:1|22)m"  # bold, on and off
_CONTROLS = re.compile(f"({_OURS})|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # they reorder the letters around them, which can hide a suffix
MAX_WHOLE_COLUMNS = 40
"""A table's first column, which holds names, is not wrapped up to this width."""


def escape_controls(text: str, *, turns: bool = True) -> str:
    r"""Return the text with control characters escaped as in JSON; new lines, tabs and bold type stay.

    ``turns`` also escapes the characters that change the direction of writing, which some languages need.

    >>> [escape_controls(text) for text in ("a\x1b]0;title\x07\tb\n", "\x1b[1mbold\x1b[22m", "4pm.\u202egpj")]
    ['a\\u001b]0;title\\u0007\tb\n', '\x1b[1mbold\x1b[22m', '4pm.\\u202egpj']
    """
    if _CONTROLS.search(text):
        text = _CONTROLS.sub(lambda m: m[1] or f"\\u{ord(m[0]):04x}", text)
    return _TURNS.sub(lambda m: f"\\u{ord(m[0]):04x}", text) if turns else text


class GuardedStream:
    """A text stream that escapes control sequences and passes everything else to the stream beneath.

    Data for other programs stays valid: an escaped character in JSON means the same. Characters that change the
    direction of writing are escaped only on a terminal.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath
        self._turns = beneath.isatty()

    def write(self, text: str) -> int:
        """Write a text with its control sequences escaped; return the text's length, as streams do."""
        if not isinstance(text, str):
            raise TypeError(f"text is written here, not {type(text).__name__}")
        self.beneath.write(escape_controls(text, turns=self._turns))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes would go past the filter
            raise AttributeError(name)
        return getattr(self.beneath, name)


def guard_streams() -> None:
    """Wrap stdout and stderr in the filter, once."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, GuardedStream):
            setattr(sys, name, GuardedStream(stream))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> None:
    """Print a table that fits the terminal; ``align`` is as for ``text_table``."""
    cells = [[escape_controls(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="", padding=(0, 2, 0, 0))
    for at, name in enumerate(header):
        side = {"l": "left", "r": "right", "c": "center"}[align[min(at, len(align) - 1)]]
        whole = at == 0 and all(len(row[0]) <= MAX_WHOLE_COLUMNS for row in cells)
        table.add_column(Text(name), justify=side, overflow="fold", no_wrap=whole)
    for row in cells:
        table.add_row(*map(Text, row))
    Console(file=bare_stream(sys.stdout), highlight=False).print(table)


def bare_stream(stream: Any) -> Any:
    """Return the stream beneath the filter, for our own drawing; never for text from elsewhere."""
    return stream.beneath if isinstance(stream, GuardedStream) else stream


def draw(sequence: str, *, err: bool = False) -> None:
    """Write our own control sequences to the terminal."""
    stream = bare_stream(sys.stderr if err else sys.stdout)
    stream.write(sequence)
    stream.flush()


TerminalImages = Literal["kitty", "iterm"]
PICTURE_ROWS = 6
"""Height of a picture in lines of text."""
MAX_CHUNK_CHARACTERS = 4096
"""Limit of kitty for one escape sequence."""


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
    """Return the escape sequences that draw a picture (WebP or similar), ``rows`` lines high."""
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
