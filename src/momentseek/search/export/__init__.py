"""Hits written to files: one module per kind, chosen by the file's suffix.

>>> ", ".join(sorted(EXPORT_KINDS))
'csv, edl, fcpxml, html, json, srt'
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.core.registry import Registry
from momentseek.media.edit_lists import Excerpt, ExportText
from momentseek.search.hit import Hit

Thumbnail = Callable[[Hit], bytes | None]
"""Returns a hit's picture as WebP, or None if it has none."""
Render = Callable[[Sequence[Hit], str, Thumbnail | None], ExportText]
"""Renders hits, the query and pictures as the text of an export, with notes on what the format cannot represent."""


MAX_STEM_CHARACTERS = 60
"""Largest number of characters of a video's name in the name of its clip."""
COPIED_SUFFIXES = frozenset({".mp4", ".mov", ".mkv", ".webm", ".m4v", ".ts", ".avi"})
"""Suffixes of files whose clips can be copied, without encoding, into the same kind of file."""


@dataclass(frozen=True)
class ExportKind:
    """A kind of file that hits can be written to."""

    suffixes: tuple[str, ...]
    """Suffixes of files of this kind."""
    about: str
    """What the kind of file is for, in a few words."""
    render: Render


EXPORT_KINDS: Registry[ExportKind] = Registry("export", package="momentseek.search.export")
"""All kinds of export by name; each file of this folder adds its own."""


def excerpts(hits: Sequence[Hit], query: str) -> list[Excerpt]:
    """One excerpt for an edit list per hit, in their order, titled with the query."""
    return [
        Excerpt(
            hit.path,
            hit.name,
            hit.start,
            hit.end,
            hit.rate,
            query,
            hit.duration,
            width=hit.width,
            height=hit.height,
            audio=hit.audio,
        )
        for hit in hits
    ]


def hits_to_run(query_id: str, query: str, hits: Sequence[Hit]) -> Run:
    """Convert hits to a Run of one query, in their order; videos that share a name get their paths instead.

    >>> from pathlib import Path, PurePosixPath
    >>> hit = Hit(path=Path("/films/kitchen.mp4"), name="kitchen.mp4", start=3.0, end=9.0)
    >>> hits_to_run("q1", "a cat", [hit]).moments("q1")
    [Moment(video='kitchen.mp4', start=3.0, end=9.0)]
    """
    return Run.from_groups(
        [query_id],
        [len(hits)],
        _names(hits),
        [hit.start for hit in hits],
        [hit.end for hit in hits],
        [hit.score for hit in hits],
        queries=[query],
        source="search",
    )


def _names(hits: Sequence[Hit]) -> list[str]:
    paths: dict[str, set[Path]] = defaultdict(set)
    for hit in hits:
        paths[hit.name].add(hit.path)
    return [
        hit.name if len(paths[hit.name]) == 1 else os.fsencode(hit.path).decode("utf-8", "backslashreplace")
        for hit in hits
    ]


__all__ = ["EXPORT_KINDS", "ExportKind", "Thumbnail", "clip_name", "export_kind", "hits_to_run", "render", "write"]


def write(
    hits: Sequence[Hit],
    query: str,
    path: str | os.PathLike[str],
    kind: str | None = None,
    thumbnail: Thumbnail | None = None,
) -> tuple[str, ...]:
    """Write hits to a file, completely or not at all; returns notes on what the format cannot represent.

    ``kind`` is one of ``EXPORT_KINDS``; by default the suffix decides. ``thumbnail`` returns pictures for a page.
    """
    written = render(hits, query, export_kind(path) if kind is None else kind, thumbnail)
    write_bytes(path, written.text.encode("utf-8", errors="replace"))
    return written.notes


def render(hits: Sequence[Hit], query: str, kind: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render the text of an export, with notes on what the format cannot represent."""
    return EXPORT_KINDS[kind].render(hits, query, thumbnail)


def export_kind(path: str | os.PathLike[str]) -> str:
    """The kind of export for a file's suffix.

    >>> export_kind("hits.EDL"), export_kind("hits.json.gz")
    ('edl', 'json')
    """
    place = Path(path)
    suffix = Path(place.stem).suffix if place.suffix.lower() == ".gz" else place.suffix
    for name in EXPORT_KINDS:
        if suffix.lower() in EXPORT_KINDS[name].suffixes:
            return name
    known = ", ".join(sorted(suffix for kind in EXPORT_KINDS.values() for suffix in kind.suffixes))
    raise MomentseekError(f"{place}: no export has the suffix {suffix!r}; use one of {known}")


def clip_name(hit: Hit, *, exact: bool = True) -> str:
    """The file name of a clip: rank, video, start and end; a cut that is not exact keeps the suffix of the source.

    >>> from pathlib import Path
    >>> clip_name(Hit(path=Path("k.mp4"), name="home/My kitchen.mp4", start=12.0, end=78.5))
    '01-My-kitchen-00m12.0s-01m18.5s.mp4'
    """
    suffix = PurePosixPath(hit.path.name).suffix.lower()
    kind = ".mp4" if exact else suffix if suffix in COPIED_SUFFIXES else ".mkv"
    stem = re.sub(r"[^\w.]+", "-", PurePosixPath(hit.name).stem).strip("-.")[:MAX_STEM_CHARACTERS] or "clip"
    return f"{hit.rank:02d}-{stem}-{_clip_time(hit.start)}-{_clip_time(hit.end)}{kind}"


def _clip_time(seconds: float) -> str:
    tenths = round(seconds * 10)
    return f"{tenths // 600:02d}m{tenths % 600 // 10:02d}.{tenths % 10}s"
