"""Hits as a Run, so that a search can be evaluated like any other system."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from momentseek.moments import Run
from momentseek.search.hit import Hit


def hits_to_run(query_id: str, query: str, hits: Sequence[Hit]) -> Run:
    """A Run of one query, in the order of the hits; videos that share a name are told apart by their paths.

    >>> from pathlib import Path
    >>> hit = Hit(1, 7, Path("/films/kitchen.mp4"), "kitchen.mp4", 3.0, 9.0, 0.03, "strong", 4.5, 60.0)
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
