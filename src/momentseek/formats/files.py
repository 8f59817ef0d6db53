"""Reading any known file: recognise it, then let its format read it."""

from __future__ import annotations

import os

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document, open_document
from momentseek.formats.registry import FORMATS, Format, Kind, Reading, Runs, recognise
from momentseek.moments import Corpus, Judgements, Policy, Run

Path = str | os.PathLike[str]


def read_truth(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Judgements:
    """Ground truth in any known format."""
    document = open_document(path)
    chosen = _choose(document, format, "truth")
    assert chosen.read_truth is not None
    return chosen.read_truth(document, Reading(invalid, corpus))


def read_runs(
    path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error"
) -> Runs:
    """Predictions in any known format; a TVR submission has one run per task, most files have one."""
    document = open_document(path)
    chosen = _choose(document, format, "run")
    assert chosen.read_runs is not None
    return chosen.read_runs(document, Reading(invalid, corpus))


def read_run(path: Path, *, format: str | None = None, corpus: Corpus | None = None, invalid: Policy = "error") -> Run:
    """Predictions of a file that holds one list; of several (TVR), the first."""
    return read_runs(path, format=format, corpus=corpus, invalid=invalid)[0]


def read_corpus(path: Path) -> Corpus:
    """A list of videos with durations, and indices where the file has them."""
    document = open_document(path)
    chosen = _choose(document, None, "corpus")
    assert chosen.read_corpus is not None
    return chosen.read_corpus(document)


def _choose(document: Document, name: str | None, kind: Kind) -> Format:
    if name is None:
        return recognise(document, kind)
    if name not in FORMATS or FORMATS[name].kind != kind:
        known = ", ".join(n for n, f in FORMATS.items() if f.kind == kind)
        raise MomentseekError(f"no {kind} format is called {name!r}; there are {known}")
    return FORMATS[name]
