"""The definition of a file format, and the registry of all formats."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, Literal

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Corpus
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import Policy
from momentseek.core.registry import Registry
from momentseek.measuring.formats.document import Document

Kind = Literal["truth", "run", "captions", "corpus"]
KINDS: dict[Kind, str] = {
    "truth": "ground truth",
    "run": "predictions",
    "captions": "captions",
    "corpus": "a list of videos",
}


@dataclass(frozen=True)
class Reading:
    """What a reader may need in addition to the file."""

    invalid: Policy = "error"
    corpus: Corpus | None = None
    """Durations and video indices from another file, if the format itself lacks them."""


@dataclass(frozen=True)
class Writing:
    """What a writer may need in addition to the table."""

    corpus: Corpus | None = None
    """Video indices (and durations) from another file, if the table has none."""


Runs = tuple[Run, ...]
Claims = Callable[[Document], bool]
Reader = Callable[[Document, Reading], Any]
Writer = Callable[[Any, Writing], bytes]


@dataclass(frozen=True)
class FileFormat:
    """A file format: how to recognise, read and (if supported) write it.

    ``claims`` says whether a document has the format's structure. ``read`` returns Judgements for a truth, a tuple of
    Runs (one per task) for a run, a CaptionTable for captions, and a Corpus for a list of videos. ``write`` takes the
    same and returns the file's bytes, or raises a MomentseekError that names what the format cannot hold.
    """

    name: str
    kind: Kind
    title: str
    claims: Claims
    read: Reader
    write: Writer | None = None
    suffix: str = ".json"
    notes: str = ""
    """The format's pitfalls, in a sentence."""

    def to_bytes(self, table: Any, corpus: Corpus | None = None) -> bytes:
        """Encode what ``read`` returns as the bytes of a file; ``corpus`` numbers the videos if the format needs it."""
        if self.write is None:
            raise MomentseekError(f"{self.title} ({self.name}) can be read but not written")
        return self.write(table, Writing(corpus))


FORMATS: Registry[FileFormat] = Registry("format", "momentseek.measuring.formats", group="formats")
"""Name → format; the modules of this folder add theirs with ``register``."""
ABOUT: dict[str, dict[str, Any]] = tomllib.loads((files(__package__) / "formats.toml").read_text("utf-8"))
"""Name → kind, keys, title, suffix and notes of the formats of this folder."""
UNSUPPORTED_HINTS: list[tuple[Claims, str]] = []
"""Hints for files that no format reads but that people are likely to try."""


def register(name: str, claims: Claims | None, read: Reader, write: Writer | None = None, **about: Any) -> None:
    """Register a format under a unique name.

    ``about`` gives its kind, title, suffix and notes, and the ``keys`` by which its files are recognised if ``claims``
    is None. For the formats of this folder, ``formats.toml`` has them.
    """
    known = {**ABOUT.get(name, {}), **about}
    keys = known.pop("keys", ())
    claims = claims or partial(_has_keys, keys)
    FORMATS.add(name, FileFormat(name=name, claims=claims, read=read, write=write, **known))


def _has_keys(keys: Sequence[str], document: Document) -> bool:
    first = document.first_record
    return isinstance(first, dict) and all(key in first for key in keys)


def explain(claims: Claims, sentence: str) -> None:
    """Add ``sentence`` to the error for files that no format reads but that ``claims`` accepts."""
    UNSUPPORTED_HINTS.append((claims, sentence))


def recognise(document: Document, kind: Kind | None = None) -> FileFormat:
    """Return the format of a document, recognised by its structure."""
    for format in FORMATS.values():
        if (kind is None or format.kind == kind) and format.claims(document):
            return format
    wanted = KINDS[kind] if kind else "any known file"
    other = next((f for f in FORMATS.values() if f.kind != kind and f.claims(document)), None)
    found = f"; it looks like {other.title}" if other else ""
    found = next((f"; {sentence}" for claims, sentence in UNSUPPORTED_HINTS if claims(document)), found)
    raise MomentseekError(
        f"{document.path}: not recognised as {wanted}{found} (`momentseek formats` lists what can be read)"
    )
