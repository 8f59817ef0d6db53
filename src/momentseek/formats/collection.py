"""What lists of videos share: every video has one duration, and every index one video."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document
from momentseek.formats.values import durations_of
from momentseek.moments import Corpus


def collection(entries: Iterable[tuple[str, Any, int | None]], document: Document) -> Corpus:
    """The corpus of ``(video, seconds, index)``, the index None where the file has none."""
    listed = list(entries)
    durations = durations_of(((video, seconds) for video, seconds, _ in listed), document)
    names = by_index(((video, index) for video, _, index in listed if index is not None), document)
    return Corpus({video: float(seconds) for video, seconds in durations.items()}, names, str(document.path))


def by_index(pairs: Iterable[tuple[str, int]], document: Document) -> dict[int, str]:
    """Index → video, where each has its own."""
    names: dict[int, str] = {}
    for video, index in pairs:
        other = names.setdefault(index, video)
        if other != video:
            raise MomentseekError(
                f"{document.path}: videos {other} and {video} have the same index {index}; give each its own"
            )
    return names
