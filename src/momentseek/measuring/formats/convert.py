"""Rewriting a file in another format, and saying what the other format could not carry."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.captions import CaptionTable, captions_of
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import MomentTable, Policy
from momentseek.measuring.formats.document import Document, open_document, pause_collector
from momentseek.measuring.formats.files import caption_table_of, choose, runs_of, truth_of, writer_for
from momentseek.measuring.formats.registry import FORMATS, FileFormat, Reading, Runs, Writing, recognise


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


MAX_TIME_ROUNDING_SECONDS = 1e-6


def lost_in_truth(before: Judgements, after: Judgements) -> tuple[str, ...]:
    """What a truth has lost by conversion: in words, all of ``before`` that ``after`` lacks."""
    lost = _lost(before, after)
    if np.isfinite(before.durations).any() and not np.isfinite(after.durations).any():
        lost.append("durations")
    lost += [f"the field {name!r}" for name in before.fields if name not in after.fields]
    lost += [f"the column {name!r}" for name in before.columns if name not in after.columns]
    for name in ("agreement", "saliency", "pools"):
        if getattr(before, name) is not None and getattr(after, name) is None:
            lost.append(name)
    return tuple(lost)


def lost_in_runs(before: Runs, after: Runs) -> tuple[str, ...]:
    """What runs have lost by conversion: in words, all of ``before`` that ``after`` lacks."""
    lost: list[str] = []
    for old, new in zip(before, after, strict=True):
        lost += _lost(old, new)
        if _same_queries(old, new) and not np.allclose(
            old.score, new.score[_order(old, new)], atol=MAX_TIME_ROUNDING_SECONDS
        ):
            lost.append("scores")
        if old.saliency is not None and new.saliency is None:
            lost.append("saliency")
        if old.task != new.task:
            lost.append(f"that the task is {old.task}")
    return tuple(dict.fromkeys(lost))


def lost_in_captions(before: CaptionTable, after: CaptionTable) -> tuple[str, ...]:
    """What captions have lost by conversion: in words, all of ``before`` that ``after`` lacks."""
    if len(before.start) and not len(after.start):
        lost = ["videos and times"]
    else:
        lost = _lost(before, after)
        if np.isfinite(before.durations).any() and not np.isfinite(after.durations).any():
            lost.append("durations")
    lost += [f"the field {name!r}" for name in before.fields if name not in after.fields]
    lost += [f"the column {name!r}" for name in before.columns if name not in after.columns]
    return tuple(lost)


def _lost(before: MomentTable, after: MomentTable) -> list[str]:
    if set(before.query_ids) != set(after.query_ids):
        pairs = zip(before.query_ids, after.query_ids, strict=False)
        old, new = next((p for p in pairs if p[0] != p[1]), (len(before), len(after)))
        return [f"query ids ({old} became {new})"]
    if len(before.start) != len(after.start):
        return [f"moments ({len(before.start):,} became {len(after.start):,})"]
    order = _order(before, after)
    lost = []
    if any(before.queries or ()) and not any(after.queries or ()):
        lost.append("the queries' words")
    times = np.column_stack([before.start, before.end]), np.column_stack([after.start, after.end])[order]
    if not np.allclose(*times, rtol=0, atol=MAX_TIME_ROUNDING_SECONDS):
        lost.append("exact times")
    return lost


def _same_queries(before: MomentTable, after: MomentTable) -> bool:
    return set(before.query_ids) == set(after.query_ids) and len(before.start) == len(after.start)


def _order(before: MomentTable, after: MomentTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each row of ``before``, the row of ``after``; formats may regroup queries by video."""
    place = np.array([after.position[q] for q in before.query_ids], dtype=np.int64)
    within = np.arange(len(before.start)) - before.offsets[before.row_query]
    rows: np.ndarray[tuple[int], np.dtype[np.int64]] = after.offsets[place[before.row_query]] + within
    return rows


@dataclass(frozen=True)
class Conversion:
    """What was read, what was written, and what was lost on the way."""

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


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    format: str | None = None,
    corpus: Corpus | None = None,
    invalid: Policy = "error",
    task: str | None = None,
    force: bool = False,
) -> Conversion:
    """Read ``source`` (recognised, or as ``format``) and write it to ``target`` as ``to``, or as its ending says.

    A truth may be written as captions (``to="tvc"``, …): its queries' words then caption its moments.
    ``task`` picks one list of a TVR submission. An existing target is only replaced with ``force``.
    """
    path = pathlib.Path(target)
    if path.exists() and not force:
        raise MomentseekError(
            f"{path}: is there already; choose another name, or overwrite it ({parameter('force', True)})"
        )
    with pause_collector():
        document = open_document(source)
        reader = choose(document, format, None)
        captions = reader.kind == "truth" and to is not None and to in FORMATS and FORMATS[to].kind == "captions"
        writer = writer_for(to, path, "captions" if captions else reader.kind)
        reading = Reading(invalid, corpus)
        lost: tuple[str, ...] = ()
        variant: str | None = None
        if reader.kind == "truth":
            truth = truth_of(document, reader, reading)
            variant = truth.variant
            tables: tuple[Judgements, ...] | tuple[CaptionTable, ...] | Runs = (truth,)
            if captions:
                data, lost = _caption_bytes(captions_of(truth), writer, path, corpus)
            else:
                data, lost = _truth_bytes(truth, writer, path, corpus)
        elif reader.kind == "run":
            tables = _of_task(runs_of(document, reader, reading), task)
            data, lost = _runs_bytes(tables, writer, path, corpus)
        elif reader.kind == "captions":
            table = caption_table_of(document, reader, reading)
            variant = table.variant
            tables = (table,)
            data, lost = _caption_bytes(table, writer, path, corpus)
        else:
            assert reader.read_corpus is not None
            assert writer.write_corpus is not None
            videos = reader.read_corpus(document)
            data = writer.write_corpus(videos)
            _read_back(path, data, writer)
            write_bytes(path, data)
            return Conversion(str(source), str(path), reader.name, writer.name, None, 0, len(videos.durations), (), ())
    write_bytes(path, data)
    queries, moments, counted = size_of(tables)
    found = findings_of(tables)
    return Conversion(str(source), str(path), reader.name, writer.name, variant, queries, moments, found, lost, counted)


def _truth_bytes(
    truth: Judgements, writer: FileFormat, path: pathlib.Path, corpus: Corpus | None
) -> tuple[bytes, tuple[str, ...]]:
    assert writer.write_truth is not None
    assert writer.read_truth is not None
    data = writer.write_truth(truth, Writing(corpus))
    return data, lost_in_truth(truth, writer.read_truth(_read_back(path, data, writer), _reading_back(corpus)))


def _caption_bytes(
    table: CaptionTable, writer: FileFormat, path: pathlib.Path, corpus: Corpus | None
) -> tuple[bytes, tuple[str, ...]]:
    assert writer.write_captions is not None
    assert writer.read_captions is not None
    data = writer.write_captions(table, Writing(corpus))
    return data, lost_in_captions(table, writer.read_captions(_read_back(path, data, writer), _reading_back(corpus)))


def _runs_bytes(
    runs: Runs, writer: FileFormat, path: pathlib.Path, corpus: Corpus | None
) -> tuple[bytes, tuple[str, ...]]:
    assert writer.write_runs is not None
    assert writer.read_runs is not None
    data = writer.write_runs(runs, Writing(corpus))
    return data, lost_in_runs(runs, writer.read_runs(_read_back(path, data, writer), _reading_back(corpus)))


def _read_back(path: pathlib.Path, data: bytes, writer: FileFormat) -> Document:
    """What would be read back, if it is recognised as what it is."""
    document = Document(path, data)
    found = recognise(document)
    if found.name != writer.name:
        raise MomentseekError(
            f"{path}: as {writer.name} this would be taken for {found.name} ({found.title}) when it is read; "
            "write another format"
        )
    return document


def _reading_back(corpus: Corpus | None) -> Reading:
    """Indices may come from the collection; durations only from the file itself."""
    if corpus is None:
        return Reading("keep")
    return Reading("keep", Corpus(dict.fromkeys(corpus.durations, float("nan")), corpus.names, corpus.source))


def _of_task(runs: Runs, task: str | None) -> Runs:
    chosen = tuple(r for r in runs if task in (None, r.task))
    if not chosen:
        tasks = ", ".join(r.task for r in runs)
        raise MomentseekError(f"{runs[0].source}: there are no {task} predictions in it, only {tasks}")
    return chosen
