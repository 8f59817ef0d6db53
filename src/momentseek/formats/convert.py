"""Rewriting a file in another format, and saying what the other format could not carry."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass

from momentseek.atomic import write_bytes
from momentseek.collector import pause_collector
from momentseek.errors import MomentseekError
from momentseek.formats.describe import findings_of, size_of
from momentseek.formats.document import Document, open_document
from momentseek.formats.files import caption_table_of, choose, runs_of, truth_of, writer_for
from momentseek.formats.losses import lost_in_captions, lost_in_runs, lost_in_truth
from momentseek.formats.registry import FORMATS, FileFormat, Reading, Runs, Writing, recognise
from momentseek.moments import CaptionTable, Corpus, Judgements, Policy, captions_of


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
        raise MomentseekError(f"{path}: is there already; choose another name, or overwrite it (force=True)")
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
