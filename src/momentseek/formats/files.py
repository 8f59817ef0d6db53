"""Reading any known file (recognise it, then let its format read it), and writing any format safely."""

from __future__ import annotations

import os
import pathlib

from momentseek.atomic import write_bytes
from momentseek.collector import pause_collector
from momentseek.errors import MomentseekError
from momentseek.formats.document import Document, open_document
from momentseek.formats.registry import FORMATS, KINDS, FileFormat, Kind, Reading, Runs, Writing, recognise
from momentseek.formats.variants import with_variant
from momentseek.moments import CaptionTable, Corpus, Judgements, Policy, Run, captions_of

Path = str | os.PathLike[str]
FORMAT_OF_SUFFIX = {".jsonl": "native", ".parquet": "parquet", ".txt": "charades-sta"}
CAPTION_FORMAT_OF_SUFFIX = {".jsonl": "tvc"}
RUN_FORMAT_ENDINGS = ("", "-run", "-submission", "-predictions", "-results")
"""``to="tvr"`` means tvr-submission when the file holds predictions."""


def read_truth(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Judgements:
    """Read ground truth in any known format."""
    with pause_collector():
        return _read_truth(open_document(path), format, Reading(invalid, corpus))


def read_runs(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Runs:
    """Predictions in any known format; a TVR submission has one run per task, most files have one."""
    with pause_collector():
        return _read_runs(open_document(path), format, Reading(invalid, corpus))


def read_run(path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error") -> Run:
    """Predictions of a file that holds one list; of several (TVR), the first."""
    return read_runs(path, format=format, corpus=corpus, invalid=invalid)[0]


def read_captions(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> CaptionTable:
    """Captions of moments: a file of them, or ground truth whose queries describe moments (ActivityNet, TVR, …)."""
    with pause_collector():
        return _read_captions(open_document(path), format, Reading(invalid, corpus))


def read_answers(path: Path, *, corpus: Corpus | None = None, invalid: Policy = "error") -> Runs | CaptionTable:
    """What a system answered, whichever it is: ranked moments (one run per task), or captions."""
    with pause_collector():
        return _read_answers(open_document(path), Reading(invalid, corpus))


def read_standard(
    path: Path, answers: Runs | CaptionTable, *, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Judgements | CaptionTable:
    """What answers are compared with: judgements of moments, or references for captions."""
    read = read_captions if isinstance(answers, CaptionTable) else read_truth
    return read(path, corpus=corpus, invalid=invalid)


def read_corpus(path: Path) -> Corpus:
    """A list of videos with durations (and indices where the file has them), or any truth that has durations."""
    document = open_document(path)
    truth = next((f for f in FORMATS.values() if f.kind == "truth" and f.claims(document)), None)
    if truth is None or truth.read_truth is None:
        chosen = choose(document, None, "corpus")
        assert chosen.read_corpus is not None
        return chosen.read_corpus(document)
    judged = truth.read_truth(document, Reading("keep"))
    durations = dict(zip(judged.videos, judged.durations.tolist(), strict=True))
    if any(seconds != seconds for seconds in durations.values()):
        raise MomentseekError(f"{document.path}: {truth.title} does not say how long its videos are")
    return Corpus(durations, {}, str(document.path))


# The document belongs to these four alone: it is freed on return, before the collector would walk all of it.
def _read_truth(document: Document, format: str | None, reading: Reading) -> Judgements:
    return truth_of(document, choose(document, format, "truth"), reading)


def _read_runs(document: Document, format: str | None, reading: Reading) -> Runs:
    return runs_of(document, choose(document, format, "run"), reading)


def _read_answers(document: Document, reading: Reading) -> Runs | CaptionTable:
    if any(f.kind == "captions" and f.claims(document) for f in FORMATS.values()):
        return caption_table_of(document, choose(document, None, "captions"), reading)
    return runs_of(document, choose(document, None, "run"), reading)


def _read_captions(document: Document, format: str | None, reading: Reading) -> CaptionTable:
    chosen = _captions_or_truth(document) if format is None else format_named(format, None)
    if chosen.kind == "truth":
        return captions_of(truth_of(document, chosen, reading))
    if chosen.kind != "captions":
        raise MomentseekError(f"{document.path}: {chosen.title} ({chosen.name}) holds no captions")
    return caption_table_of(document, chosen, reading)


def _captions_or_truth(document: Document) -> FileFormat:
    truth = next((f for f in FORMATS.values() if f.kind == "truth" and f.claims(document)), None)
    return truth or recognise(document, "captions")


def truth_of(document: Document, format: FileFormat, reading: Reading) -> Judgements:
    """An opened document as judgements, checked against the collection and named."""
    assert format.read_truth is not None
    truth = format.read_truth(document, reading)
    if not len(truth):
        raise MomentseekError(f"{document.path}: there are no queries in it")
    if reading.corpus:
        reading.corpus.require(truth.videos, str(document.path))
    return with_variant(truth, format.name)


def runs_of(document: Document, format: FileFormat, reading: Reading) -> Runs:
    """An opened document as runs, checked against the collection."""
    assert format.read_runs is not None
    runs = format.read_runs(document, reading)
    if not any(map(len, runs)):
        raise MomentseekError(f"{document.path}: there are no queries in it")
    if reading.corpus:
        for run in runs:
            reading.corpus.require(run.videos, str(document.path))
    return runs


def caption_table_of(document: Document, format: FileFormat, reading: Reading) -> CaptionTable:
    """An opened document as captions, checked against the collection and named."""
    assert format.read_captions is not None
    table = format.read_captions(document, reading)
    if not len(table):
        raise MomentseekError(f"{document.path}: there are no moments in it")
    if reading.corpus:
        reading.corpus.require(table.videos, str(document.path))
    return with_variant(table, format.name)


def choose(document: Document, name: str | None, kind: Kind | None) -> FileFormat:
    """The format called ``name``, or the one the document's shape tells."""
    return recognise(document, kind) if name is None else format_named(name, kind)


def format_named(name: str, kind: Kind | None) -> FileFormat:
    """The format called ``name``, of the kind that is needed."""
    if name not in FORMATS or kind not in (None, FORMATS[name].kind):
        known = ", ".join(n for n, f in FORMATS.items() if kind in (None, f.kind))
        raise MomentseekError(
            f"no format for {KINDS[kind] if kind else 'any file'} is called {name!r}; there are {known}"
        )
    return FORMATS[name]


def writer_for(to: str | None, path: Path, kind: Kind) -> FileFormat:
    """The format in which to write a file of a kind: the one called ``to``, or the one that the file's ending means.

    >>> writer_for(None, "test.jsonl", "run").name, writer_for("tvr", "test.json", "run").name
    ('native-run', 'tvr-submission')
    """
    able = sorted(name for name, f in FORMATS.items() if f.kind == kind and f.writes)
    if to is None:
        name = pathlib.Path(path).name.removesuffix(".gz")
        endings = CAPTION_FORMAT_OF_SUFFIX if kind == "captions" else FORMAT_OF_SUFFIX
        to = endings.get(pathlib.Path(name).suffix.lower())
        if to is None:
            raise MomentseekError(f"{path}: say which format to write (`to`): {', '.join(able)}; or end it in .jsonl")
    for sibling in RUN_FORMAT_ENDINGS:
        if f"{to}{sibling}" in able:
            return FORMATS[f"{to}{sibling}"]
    raise MomentseekError(f"{KINDS[kind]} cannot be written as {to!r}, only as {', '.join(able)}")


def write_truth(truth: Judgements, path: Path, *, format: str = "native", corpus: Corpus | None = None) -> None:
    """Write judgements in a format that can carry them, or say what it cannot."""
    writer = format_named(format, "truth")
    if writer.write_truth is None:
        raise MomentseekError(f"{writer.title} ({format}) can be read but not written")
    write_bytes(path, writer.write_truth(truth, Writing(corpus)))


def write_runs(runs: Runs, path: Path, *, format: str = "native-run", corpus: Corpus | None = None) -> None:
    """Write predictions, in the order they have."""
    writer = format_named(format, "run")
    if writer.write_runs is None:
        raise MomentseekError(f"{writer.title} ({format}) can be read but not written")
    write_bytes(path, writer.write_runs(runs, Writing(corpus)))


def write_run(run: Run, path: Path, *, format: str = "native-run", corpus: Corpus | None = None) -> None:
    """Write one list of predictions; sort it first with ``run.sort_by_score()`` if its order is not its ranking."""
    write_runs((run,), path, format=format, corpus=corpus)


def write_captions(table: CaptionTable, path: Path, *, format: str = "tvc", corpus: Corpus | None = None) -> None:
    """Write captions in a format that can carry them, or say what it cannot."""
    writer = format_named(format, "captions")
    if writer.write_captions is None:
        raise MomentseekError(f"{writer.title} ({format}) can be read but not written")
    write_bytes(path, writer.write_captions(table, Writing(corpus)))
