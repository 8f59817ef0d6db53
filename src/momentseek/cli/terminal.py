"""The edge of the terminal: what names, captions and data files say never reaches it as a command.

A file name or a line of a data file may hold escape sequences that move the cursor, rewrite what stands above, change
the clipboard or the window's title. ``guard_streams`` puts a filter around stdout and stderr, through which everything
goes that a command, a library or the interpreter writes. Sequences of our own go past it by ``draw``.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

_OURS = "\x1b\\[(?:1|22)m"  # bold, on and off
_CONTROLS = re.compile(f"({_OURS})|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # they reorder the letters around them, as those of a suffix


def escape_controls(text: str, *, turns: bool = True) -> str:
    r"""The text with control characters as JSON would escape them; new lines, tabs and bold type stay.

    ``turns`` escapes also the characters that change the direction of writing, which are honest in some languages.

    >>> [escape_controls(text) for text in ("a\x1b]0;title\x07\tb\n", "\x1b[1mbold\x1b[22m", "4pm.\u202egpj")]
    ['a\\u001b]0;title\\u0007\tb\n', '\x1b[1mbold\x1b[22m', '4pm.\\u202egpj']
    """
    if _CONTROLS.search(text):
        text = _CONTROLS.sub(lambda m: m[1] or f"\\u{ord(m[0]):04x}", text)
    return _TURNS.sub(lambda m: f"\\u{ord(m[0]):04x}", text) if turns else text


class GuardedStream:
    """A text stream through which no control sequence gets; everything else is the stream's beneath.

    Data for other programs stays valid: what is escaped in JSON means the same. Characters that change the direction of
    writing are escaped on a terminal only.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath
        self._turns = beneath.isatty()

    def write(self, text: str) -> int:
        """Write a text without its control sequences; returns its length, as streams do."""
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
    """Put the filter around stdout and stderr, once."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, GuardedStream):
            setattr(sys, name, GuardedStream(stream))


def bare_stream(stream: Any) -> Any:
    """The stream beneath the filter, for what we draw ourselves; never for text from elsewhere."""
    return stream.beneath if isinstance(stream, GuardedStream) else stream


def draw(sequence: str, *, err: bool = False) -> None:
    """Write control sequences of our own to the terminal."""
    stream = bare_stream(sys.stderr if err else sys.stdout)
    stream.write(sequence)
    stream.flush()
