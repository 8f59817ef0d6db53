"""Reading one subtitle file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from momentseek.errors import MediaError
from momentseek.media.cue import Cue
from momentseek.media.subtitles import ass, sbv, srt, vtt
from momentseek.media.subtitles.encoding import is_binary, text_of
from momentseek.media.subtitles.merge import tidy
from momentseek.plain_file import PlainFile

MAX_SUBTITLE_BYTES = 20_000_000
"""Largest subtitle file that is read; a long film's subtitles are 0.2 MB, styled scripts reach a few."""
MAX_CUES = 200_000
"""Most cues of a file: two a second for a day."""
MAX_LINES = 1_000_000


class SubtitleFormat(NamedTuple):
    """A subtitle format: its name, its suffixes, and its parser."""

    name: str
    suffixes: tuple[str, ...]
    parse: Callable[[str], Iterator[Cue]]


SUBTITLE_FORMATS = (
    SubtitleFormat("srt", srt.SUFFIXES, srt.parse),
    SubtitleFormat("vtt", vtt.SUFFIXES, vtt.parse),
    SubtitleFormat("ass", ass.SUFFIXES, ass.parse),
    SubtitleFormat("sbv", sbv.SUFFIXES, sbv.parse),
)
SUBTITLE_SUFFIXES = frozenset(suffix for form in SUBTITLE_FORMATS for suffix in form.suffixes)


def read_subtitles(path: str | os.PathLike[str], language: str | None = None) -> list[Cue]:
    """The cues of a subtitle file, tidied (see ``merge.tidy``); a file that has none is a ``MediaError``.

    The format is recognised by content, then by suffix. ``language`` is noted in the cues and helps to tell old
    encodings apart.
    """
    place = path if isinstance(path, PlainFile) else Path(path)
    return parse_subtitles(_read_bytes(place), Path(place).name, place, language)


def parse_subtitles(data: bytes, name: str, place: object = None, language: str | None = None) -> list[Cue]:
    r"""The cues in a file's bytes; ``name`` gives the suffix, ``place`` what an error calls it.

    >>> parse_subtitles(b"1\n00:00:01,000 --> 00:00:02,000\nHello\n", "film.srt")
    [Cue(start=1.0, end=2.0, text='Hello', language=None)]
    """
    place = name if place is None else place
    if is_binary(data):
        raise MediaError(f"{place}: no cue found: it is not a text file; SRT, VTT, ASS and SBV files are read")
    text = text_of(data, language)
    if text.count("\n") > MAX_LINES or text.count("\r") > MAX_LINES:
        raise MediaError(f"{place}: more than {MAX_LINES:,} lines; split the file or choose another")
    head = text[:4096].lstrip().lower()
    if head.startswith(("<!doctype", "<html", "<head", "<?xml")):
        raise MediaError(f"{place}: no cue found: it is a web page or XML; save the subtitles as SRT, VTT, ASS or SBV")
    for form in _likely_formats(head, Path(name).suffix.lower()):
        cues = list(islice(form.parse(text), MAX_CUES + 1))
        if len(cues) > MAX_CUES:
            raise MediaError(f"{place}: more than {MAX_CUES:,} cues; split the file or choose another")
        found = tidy(cues)
        if found:
            return [Cue(cue.start, cue.end, cue.text, language) for cue in found] if language else found
    raise MediaError(f"{place}: no cue found; SRT, VTT, ASS and SBV files are read")


def _likely_formats(head: str, suffix: str) -> list[SubtitleFormat]:
    """Formats to try, the likeliest first: by what the file begins with, else by suffix.

    SRT and WebVTT mark times the same way, so where one finds nothing the other does not either.
    """
    if head.startswith("webvtt"):
        sure = "vtt"
    elif "[script info]" in head or "[events]" in head or "\ndialogue:" in head:
        sure = "ass"
    else:
        sure = next((form.name for form in SUBTITLE_FORMATS if suffix in form.suffixes), "srt")
    same = {"srt": "vtt", "vtt": "srt"}.get(sure)
    return sorted((form for form in SUBTITLE_FORMATS if form.name != same), key=lambda form: form.name != sure)


def _read_bytes(path: Path | PlainFile) -> bytes:
    """The file's bytes: stat first, for a pipe would wait for ever and a device never end."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise MediaError(f"{path}: not a regular file; give a subtitle file")
        if state.st_size > MAX_SUBTITLE_BYTES:
            size, most = state.st_size / 1e6, MAX_SUBTITLE_BYTES / 1e6
            raise MediaError(f"{path}: {size:.0f} MB is no subtitle file; the most that is read is {most:.0f} MB")
        with path.open("rb") as file:
            return file.read(MAX_SUBTITLE_BYTES)
    except OSError as e:
        raise MediaError(f"{path}: cannot be read ({e.strerror}); check the file") from None
    except ValueError:  # a NUL in the name
        raise MediaError(f"{str(path)!r}: cannot be read (not a file name); check the file") from None
