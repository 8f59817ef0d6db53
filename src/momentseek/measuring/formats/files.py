"""Reading any known file (recognise it, then let its format read it), and writing any format safely."""

from __future__ import annotations

import os
import pathlib
from dataclasses import replace
from typing import TypeVar

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.captions import CaptionTable, captions_of
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import Policy
from momentseek.measuring.formats.document import Document, open_document, pause_collector
from momentseek.measuring.formats.registry import FORMATS, KINDS, FileFormat, Kind, Reading, Runs, Writing, recognise

VARIANTS: dict[tuple[str, int, int | None], str] = {
    ("charades-sta", 12_408, None): "Charades-STA, train",
    ("charades-sta", 12_404, None): "Charades-STA (2D-TAN version, 4 impossible moments removed), train",
    ("charades-sta", 3_720, None): "Charades-STA, test",
    ("charades-cd", 11_071, None): "Charades-CD, train",
    ("charades-cd", 859, None): "Charades-CD, val",
    ("charades-cd", 823, None): "Charades-CD, test-iid",
    ("charades-cd", 3_375, None): "Charades-CD, test-ood",
    ("charades-cd", 51_415, None): "ActivityNet-CD, train",
    ("charades-cd", 3_521, None): "ActivityNet-CD, val",
    ("charades-cd", 3_443, None): "ActivityNet-CD, test-iid",
    ("charades-cd", 13_578, None): "ActivityNet-CD, test-ood",
    ("activitynet", 37_421, None): "ActivityNet Captions, train",
    ("activitynet", 17_505, None): "ActivityNet Captions, val_1",
    ("activitynet", 17_031, None): "ActivityNet Captions, val_2 (used as test)",
    ("tacos", 9_790, None): "TACoS (2D-TAN version), train",
    ("tacos", 4_436, None): "TACoS (2D-TAN version), val",
    ("tacos", 4_001, None): "TACoS (2D-TAN version), test",
    ("tacos-tall", 10_146, None): "TACoS (TALL version), train",
    ("tacos-tall", 4_589, None): "TACoS (TALL version), val",
    ("tacos-tall", 4_083, None): "TACoS (TALL version), test",
    ("tvr", 10_895, None): "TVR, val",
    ("tvr-ranking", 500, 14_382): "TVR-Ranking, val",
    ("tvr-ranking", 2_781, 80_060): "TVR-Ranking, test",
    ("tvr-ranking-flat", 500, 14_382): "TVR-Ranking, val",
    ("tvr-ranking-flat", 2_781, 80_060): "TVR-Ranking, test",
    ("qvhighlights", 7_218, None): "QVHighlights, train",
    ("qvhighlights", 1_550, None): "QVHighlights, val",
    ("qvhighlights", 1_542, None): "QVHighlights, test",
    ("didemo", 4_180, None): "DiDeMo, val",
    ("didemo", 4_021, None): "DiDeMo, test",
    ("tvc", 86_603, None): "TVC, train",
    ("tvc", 10_841, None): "TVC, val",
    ("tvc", 5_420, None): "TVC, test-public",
    ("tvc", 5_422, None): "TVC, test-private",
    ("mvmr", 3_720, None): "MVMR, Charades-STA test",
    ("mvmr", 4_001, None): "MVMR, TACoS test",
}
"""(format, queries, moments where the number of queries alone says too little) → dataset."""


Table = TypeVar("Table", Judgements, CaptionTable)


def with_variant(truth: Table, format: str) -> Table:
    """The truth (or captions) with its dataset's name, where its size is that of a published file."""
    if truth.variant is not None:
        return truth
    name = VARIANTS.get((format, len(truth), None)) or VARIANTS.get((format, len(truth), len(truth.start)))
    return replace(truth, variant=name) if name else truth


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
            raise MomentseekError(
                f"{path}: say which format to write ({parameter('to')}): {', '.join(able)}; or end it in .jsonl"
            )
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
