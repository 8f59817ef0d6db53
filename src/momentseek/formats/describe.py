"""What a file is and holds, without judging it: for people who want to know before they use it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from momentseek.collector import pause_collector
from momentseek.formats.document import open_document
from momentseek.formats.files import caption_table_of, runs_of, truth_of
from momentseek.formats.registry import Reading, Runs, recognise
from momentseek.moments import CaptionTable, Corpus, Judgements, Run


@dataclass(frozen=True)
class Description:
    """A file's format, the dataset it is, its size and what is odd about it."""

    path: str
    format: str
    kind: str
    title: str
    variant: str | None
    queries: int
    moments: int
    videos: int
    findings: tuple[str, ...]
    captions: int = 0


def describe(path: str | os.PathLike[str], corpus: Corpus | None = None) -> Description:
    """Recognise and read a file, keeping whatever is broken in it."""
    with pause_collector():
        document = open_document(path)
        format = recognise(document)
        reading = Reading("keep", corpus)
        tables: tuple[Judgements, ...] | tuple[CaptionTable, ...] | Runs = ()
        variant = None
        if format.kind == "truth":
            tables = (truth_of(document, format, reading),)
            variant = tables[0].variant
        elif format.kind == "run":
            tables = runs_of(document, format, reading)
            variant = ", ".join(run.task for run in tables)
        elif format.kind == "captions":
            tables = (caption_table_of(document, format, reading),)
            variant = tables[0].variant
    videos = len({video for table in tables for video in table.videos})
    if format.read_corpus is not None:
        videos = len(format.read_corpus(document).durations)
    queries, moments, captions = size_of(tables)
    found = findings_of(tables)
    return Description(
        str(path), format.name, format.kind, format.title, variant, queries, moments, videos, found, captions
    )


def count_words(n: int, what: str) -> str:
    """A number of queries, moments or videos in words.

    >>> count_words(1, "queries"), count_words(1, "moments"), count_words(4001, "videos")
    ('1 query', '1 moment', '4,001 videos')
    """
    return f"{n:,} {what}" if n != 1 else f"1 {'query' if what == 'queries' else what.removesuffix('s')}"


def size_of(tables: Sequence[Judgements | Run | CaptionTable]) -> tuple[int, int, int]:
    """Distinct queries, moments and captions of all tables together; what captions describe counts as a moment."""
    if tables and isinstance(tables[0], CaptionTable):
        return 0, len(tables[0]), len(tables[0].captions)
    return len({query for table in tables for query in table.query_ids}), sum(len(t.start) for t in tables), 0


def findings_of(tables: Sequence[Judgements | Run | CaptionTable]) -> tuple[str, ...]:
    """Broken moments and what was done with them, in words."""
    return tuple(str(finding) for table in tables for finding in table.findings)
