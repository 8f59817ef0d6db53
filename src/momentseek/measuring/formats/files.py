"""Read a file in any known format, which is recognised by its content, and write any format safely."""

from __future__ import annotations

import os
import pathlib
import tomllib
from dataclasses import replace
from importlib.resources import files
from typing import Any

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.captions import CaptionTable, captions_of
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import Policy
from momentseek.measuring.formats.document import Document, open_document
from momentseek.measuring.formats.registry import FORMATS, KINDS, FileFormat, Kind, Reading, Runs, recognise

Path = str | os.PathLike[str]
FORMAT_OF_SUFFIX = {".jsonl": "native", ".parquet": "parquet", ".txt": "charades-sta"}
CAPTION_FORMAT_OF_SUFFIX = {".jsonl": "tvc"}
RUN_FORMAT_ENDINGS = ("", "-run", "-submission", "-predictions", "-results")
"""``to="tvr"`` means tvr-submission when the file holds predictions."""
PUBLISHED: dict[str, dict[str, str]] = tomllib.loads((files(__package__) / "published.toml").read_text("utf-8"))
"""Format → size of a published file (queries, moments) → name of the dataset."""


def read_truth(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Judgements:
    """Read ground truth in any known format."""
    document = open_document(path)
    truth: Judgements = read_document(document, choose(document, format, "truth"), Reading(invalid, corpus))
    return truth


def read_runs(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Runs:
    """Read predictions in any known format: one run per task in a TVR submission, a single run in most files."""
    document = open_document(path)
    runs: Runs = read_document(document, choose(document, format, "run"), Reading(invalid, corpus))
    return runs


def read_run(path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error") -> Run:
    """Read the predictions of a file; the first run if it has several (TVR)."""
    return read_runs(path, format=format, corpus=corpus, invalid=invalid)[0]


def read_captions(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> CaptionTable:
    """Read captions of moments, from caption files or from ground truth whose queries describe moments (TVR, …)."""
    document = open_document(path)
    if format is not None:
        chosen = format_named(format, None)
    else:
        chosen = _claimant(document, "truth") or recognise(document, "captions")
    if chosen.kind not in ("captions", "truth"):
        raise MomentseekError(f"{document.path}: {chosen.title} ({chosen.name}) holds no captions")
    found = read_document(document, chosen, Reading(invalid, corpus))
    return captions_of(found) if isinstance(found, Judgements) else found


def read_answers(path: Path, *, corpus: Corpus | None = None, invalid: Policy = "error") -> Runs | CaptionTable:
    """Read a system's output, either ranked moments (one run per task) or captions."""
    document = open_document(path)
    format = _claimant(document, "captions") or recognise(document, "run")
    found: Runs | CaptionTable = read_document(document, format, Reading(invalid, corpus))
    return found


def read_standard(
    path: Path, answers: Runs | CaptionTable, *, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Judgements | CaptionTable:
    """Read what answers are compared with: judgements for moments, or references for captions."""
    read = read_captions if isinstance(answers, CaptionTable) else read_truth
    return read(path, corpus=corpus, invalid=invalid)


def read_corpus(path: Path) -> Corpus:
    """Read a list of videos with durations (and indices, if the file has them), or any truth that has durations."""
    document = open_document(path)
    truth = _claimant(document, "truth")
    if truth is None:
        corpus: Corpus = read_document(document, recognise(document, "corpus"), Reading())
        return corpus
    judged = truth.read(document, Reading("keep"))
    durations = dict(zip(judged.videos, judged.durations.tolist(), strict=True))
    if any(seconds != seconds for seconds in durations.values()):
        raise MomentseekError(f"{document.path}: {truth.title} does not say how long its videos are")
    return Corpus(durations, {}, str(document.path))


def read_document(document: Document, format: FileFormat, reading: Reading) -> Any:
    """Read an opened document as Judgements, a tuple of Runs, a CaptionTable or a Corpus, by the format's kind.

    Its videos must be in the corpus, if one is given. A truth or captions of a published file's size get the dataset's
    name.
    """
    found = format.read(document, reading)
    if format.kind == "corpus":
        return found
    tables = found if format.kind == "run" else (found,)
    if not any(map(len, tables)):
        what = "moments" if format.kind == "captions" else "queries"
        raise MomentseekError(f"{document.path}: there are no {what} in it")
    if reading.corpus:
        for table in tables:
            reading.corpus.require(table.videos, str(document.path))
    if format.kind == "run" or found.variant is not None:
        return found
    sizes = PUBLISHED.get(format.name, {})
    name = sizes.get(f"{len(found)}") or sizes.get(f"{len(found)}, {len(found.start)}")
    return replace(found, variant=name) if name else found


def _claimant(document: Document, kind: Kind) -> FileFormat | None:
    return next((f for f in FORMATS.values() if f.kind == kind and f.claims(document)), None)


def choose(document: Document, name: str | None, kind: Kind | None) -> FileFormat:
    """Return the format called ``name``, or else the one recognised from the document."""
    return recognise(document, kind) if name is None else format_named(name, kind)


def format_named(name: str, kind: Kind | None) -> FileFormat:
    """Return the format called ``name``; it must be of the given kind."""
    if name not in FORMATS or kind not in (None, FORMATS[name].kind):
        known = ", ".join(n for n, f in FORMATS.items() if kind in (None, f.kind))
        raise MomentseekError(
            f"no format for {KINDS[kind] if kind else 'any file'} is called {name!r}; there are {known}"
        )
    return FORMATS[name]


def writer_for(to: str | None, path: Path, kind: Kind) -> FileFormat:
    """Return the format to write: the one called ``to``, or the one of the file's extension.

    >>> writer_for(None, "test.jsonl", "run").name, writer_for("tvr", "test.json", "run").name
    ('native-run', 'tvr-submission')
    """
    able = sorted(name for name, f in FORMATS.items() if f.kind == kind and f.write)
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
    """Write judgements; an error names whatever the format cannot hold."""
    write_bytes(path, format_named(format, "truth").to_bytes(truth, corpus))


def write_runs(runs: Runs, path: Path, *, format: str = "native-run", corpus: Corpus | None = None) -> None:
    """Write predictions in their current order."""
    write_bytes(path, format_named(format, "run").to_bytes(runs, corpus))


def write_run(run: Run, path: Path, *, format: str = "native-run", corpus: Corpus | None = None) -> None:
    """Write one list of predictions; sort it first with ``run.sort_by_score()`` if its order is not its ranking."""
    write_runs((run,), path, format=format, corpus=corpus)


def write_captions(table: CaptionTable, path: Path, *, format: str = "tvc", corpus: Corpus | None = None) -> None:
    """Write captions; an error names whatever the format cannot hold."""
    write_bytes(path, format_named(format, "captions").to_bytes(table, corpus))
