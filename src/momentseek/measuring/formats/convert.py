"""Describe a file, or convert it to another format and report what that format cannot hold."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import IntArray
from momentseek.core.moments.captions import CaptionTable, captions_of
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import MomentTable, Policy
from momentseek.measuring.formats.document import Document, open_document
from momentseek.measuring.formats.files import choose, read_document, writer_for
from momentseek.measuring.formats.registry import FORMATS, FileFormat, Reading, Runs, recognise

Path = str | os.PathLike[str]
MAX_TIME_ROUNDING_SECONDS = 1e-6


@dataclass(frozen=True)
class Description:
    """A file's format, its dataset, its size and any problems found in it."""

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


@dataclass(frozen=True)
class Conversion:
    """What was read, what was written, and what was lost by the conversion."""

    source: str
    target: str
    read_as: str
    written_as: str
    variant: str | None
    queries: int
    moments: int
    findings: tuple[str, ...]
    lost: tuple[str, ...]
    captions: int = 0


def describe(path: Path, corpus: Corpus | None = None) -> Description:
    """Recognise and read a file; broken moments are kept and reported."""
    document = open_document(path)
    format = recognise(document)
    found = read_document(document, format, Reading("keep", corpus))
    tables = _tables(found)
    queries, moments, captions = size_of(tables)
    if isinstance(found, Corpus):
        variant, videos = None, len(found.durations)
    else:
        variant = ", ".join(run.task for run in found) if isinstance(found, tuple) else found.variant
        videos = len({video for table in tables for video in table.videos})
    return Description(
        path=str(path),
        format=format.name,
        kind=format.kind,
        title=format.title,
        variant=variant,
        queries=queries,
        moments=moments,
        videos=videos,
        findings=findings_of(tables),
        captions=captions,
    )


def convert(
    source: Path,
    target: Path,
    *,
    to: str | None = None,
    format: str | None = None,
    corpus: Corpus | None = None,
    invalid: Policy = "error",
    task: str | None = None,
    force: bool = False,
) -> Conversion:
    """Convert ``source`` to the format ``to``, or to the format of ``target``'s extension.

    The format of ``source`` is recognised unless ``format`` names it. A truth may be written as captions
    (``to="tvc"``, …): the texts of its queries become the captions of its moments. ``task`` picks one list of a TVR
    submission. An existing target is only replaced with ``force``.
    """
    path = pathlib.Path(target)
    if path.exists() and not force:
        raise MomentseekError(
            f"{path}: already exists; choose another name, or overwrite it ({parameter('force', True)})"
        )
    document = open_document(source)
    reader = choose(document, format, None)
    as_captions = reader.kind == "truth" and to is not None and to in FORMATS and FORMATS[to].kind == "captions"
    writer = writer_for(to, path, "captions" if as_captions else reader.kind)
    found = read_document(document, reader, Reading(invalid, corpus))
    if isinstance(found, tuple):
        found = _of_task(found, task)
    written = captions_of(found) if as_captions else found
    data = writer.to_bytes(written, corpus)
    again = writer.read(_read_back(path, data, writer), _reading_back(corpus))
    lost = () if isinstance(written, Corpus) else lost_in(written, again)
    write_bytes(path, data)
    tables = _tables(found)
    queries, moments, captions = size_of(tables)
    return Conversion(
        source=str(source),
        target=str(path),
        read_as=reader.name,
        written_as=writer.name,
        variant=getattr(found, "variant", None),
        queries=queries,
        moments=len(found.durations) if isinstance(found, Corpus) else moments,
        findings=findings_of(tables),
        lost=lost,
        captions=captions,
    )


def lost_in(before: Judgements | CaptionTable | Runs, after: Any) -> tuple[str, ...]:
    """Describe what was lost by writing ``before`` and reading it back as ``after``."""
    return _lost_in_runs(before, after) if isinstance(before, tuple) else _lost_in_table(before, after)


def _lost_in_table(before: Judgements | CaptionTable, after: Any) -> tuple[str, ...]:
    if isinstance(before, CaptionTable) and len(before.start) and not len(after.start):
        lost = ["videos and times"]
    else:
        lost = _lost_moments(before, after)
        if np.isfinite(before.durations).any() and not np.isfinite(after.durations).any():
            lost.append("durations")
    lost += [f"the field {name!r}" for name in before.fields if name not in after.fields]
    lost += [f"the column {name!r}" for name in before.columns if name not in after.columns]
    for name in ("agreement", "saliency", "pools"):
        if getattr(before, name, None) is not None and getattr(after, name) is None:
            lost.append(name)
    return tuple(lost)


def _lost_in_runs(before: Runs, after: Runs) -> tuple[str, ...]:
    lost: list[str] = []
    for old, new in zip(before, after, strict=True):
        lost += _lost_moments(old, new)
        same = set(old.query_ids) == set(new.query_ids) and len(old.start) == len(new.start)
        if same and not np.allclose(old.score, new.score[_order(old, new)], atol=MAX_TIME_ROUNDING_SECONDS):
            lost.append("scores")
        if old.saliency is not None and new.saliency is None:
            lost.append("saliency")
        if old.task != new.task:
            lost.append(f"that the task is {old.task}")
    return tuple(dict.fromkeys(lost))


def _lost_moments(before: MomentTable, after: MomentTable) -> list[str]:
    if set(before.query_ids) != set(after.query_ids):
        pairs = zip(before.query_ids, after.query_ids, strict=False)
        old, new = next((p for p in pairs if p[0] != p[1]), (len(before), len(after)))
        return [f"query ids ({old} became {new})"]
    if len(before.start) != len(after.start):
        return [f"moments ({len(before.start):,} became {len(after.start):,})"]
    lost = []
    if any(before.queries or ()) and not any(after.queries or ()):
        lost.append("the queries' words")
    times = np.column_stack([before.start, before.end]), np.column_stack([after.start, after.end])
    if not np.allclose(times[0], times[1][_order(before, after)], rtol=0, atol=MAX_TIME_ROUNDING_SECONDS):
        lost.append("exact times")
    return lost


def _order(before: MomentTable, after: MomentTable) -> IntArray:
    """Return the row of ``after`` for each row of ``before``; formats may regroup queries by video."""
    position = np.array([after.position[q] for q in before.query_ids], dtype=np.int64)
    within = np.arange(len(before.start)) - before.offsets[before.row_query]
    rows: IntArray = after.offsets[position[before.row_query]] + within
    return rows


def count_words(n: int, what: str) -> str:
    """Format a number of queries, moments or videos.

    >>> count_words(1, "queries"), count_words(1, "moments"), count_words(4001, "videos")
    ('1 query', '1 moment', '4,001 videos')
    """
    return f"{n:,} {what}" if n != 1 else f"1 {'query' if what == 'queries' else what.removesuffix('s')}"


def size_of(tables: Sequence[Judgements | Run | CaptionTable]) -> tuple[int, int, int]:
    """Count the distinct queries, the moments and the captions of all tables; captioned images count as moments."""
    if tables and isinstance(tables[0], CaptionTable):
        return 0, len(tables[0]), len(tables[0].captions)
    return len({query for table in tables for query in table.query_ids}), sum(len(t.start) for t in tables), 0


def findings_of(tables: Sequence[Judgements | Run | CaptionTable]) -> tuple[str, ...]:
    """Describe the broken moments of all tables and what was done with them."""
    return tuple(str(finding) for table in tables for finding in table.findings)


def _tables(found: Judgements | CaptionTable | Runs | Corpus) -> Sequence[Judgements | Run | CaptionTable]:
    if isinstance(found, Corpus):
        return ()
    return found if isinstance(found, tuple) else (found,)


def _read_back(path: pathlib.Path, data: bytes, writer: FileFormat) -> Document:
    """Return the document to read back; raise an error if it would be recognised as another format."""
    document = Document(path, data)
    found = recognise(document)
    if found.name != writer.name:
        raise MomentseekError(
            f"{path}: as {writer.name} this would be taken for {found.name} ({found.title}) when it is read; "
            "write another format"
        )
    return document


def _reading_back(corpus: Corpus | None) -> Reading:
    """Return settings for reading back: indices come from the corpus, durations only from the file itself."""
    if corpus is None:
        return Reading("keep")
    return Reading("keep", Corpus(dict.fromkeys(corpus.durations, float("nan")), corpus.names, corpus.source))


def _of_task(runs: Runs, task: str | None) -> Runs:
    chosen = tuple(r for r in runs if task in (None, r.task))
    if not chosen:
        tasks = ", ".join(r.task for r in runs)
        raise MomentseekError(f"{runs[0].source}: there are no {task} predictions in it, only {tasks}")
    return chosen
