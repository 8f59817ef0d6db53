"""Reading, writing and converting runs, judgements and captions in any of the community's file formats."""

from __future__ import annotations

import os

from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import Policy
from momentseek.measuring.formats import convert as conversion
from momentseek.measuring.formats import files
from momentseek.measuring.formats.convert import Conversion

Path = str | os.PathLike[str]
Videos = Corpus | Path | None
"""The collection's videos with durations and indices: a corpus, a file of them, or None."""


def read_corpus(path: Path) -> Corpus:
    """Read the videos and their durations in seconds from a list, or from ground truth that has durations."""
    return files.read_corpus(path)


def open_corpus(videos: Videos) -> Corpus | None:
    """Return a corpus as it is, or read it if the path of a file is given."""
    return videos if videos is None or isinstance(videos, Corpus) else files.read_corpus(videos)


def read_run(path: Path, *, format: str | None = None, videos: Videos = None, invalid: Policy = "error") -> Run:
    """Read the predictions in a file.

    The format is recognised unless ``format`` names it (``momentseek formats`` lists them). ``videos`` gives durations
    and video indices if the file has none. ``invalid`` says what to do with moments that have impossible times: error,
    drop, clip or keep. A TVR submission may hold several lists; the first one is read.

    >>> read_run("examples/kitchen/careful.jsonl")
    <Run of examples/kitchen/careful.jsonl: 27 queries, 270 moments in 40 videos>
    """
    return files.read_run(path, format=format, corpus=open_corpus(videos), invalid=invalid)


def read_judgements(
    path: Path, *, format: str | None = None, videos: Videos = None, invalid: Policy = "error"
) -> Judgements:
    """Read ground truth: which moments answer each query, and how well.

    The options are those of ``read_run``.

    >>> read_judgements("examples/kitchen/truth.jsonl").relevance.max()
    np.int8(4)
    """
    return files.read_truth(path, format=format, corpus=open_corpus(videos), invalid=invalid)


def read_captions(
    path: Path, *, format: str | None = None, videos: Videos = None, invalid: Policy = "error"
) -> CaptionTable:
    """Read captions of moments, written by a system or by people.

    Ground truth whose queries describe moments can be read as captions, too. The options are those of ``read_run``.

    >>> read_captions("examples/captions/references.jsonl").of("1")[1]
    'A woman gives her friend a mug.'
    """
    return files.read_captions(path, format=format, corpus=open_corpus(videos), invalid=invalid)


def write_captions(captions: CaptionTable, path: Path, *, to: str | None = None, videos: Videos = None) -> None:
    """Write captions in the format ``to``; by default the file's suffix decides the format (``.jsonl``: TVC's).

    Raises an error, and writes nothing, if the format cannot represent one of them. ``videos`` is as for ``read_run``.
    """
    name = files.writer_for(to, path, "captions").name
    files.write_captions(captions, path, format=name, corpus=open_corpus(videos))


def write_run(run: Run, path: Path, *, to: str | None = None, videos: Videos = None) -> None:
    """Write predictions in the format ``to``; by default the file's suffix decides the format.

    They are written in the run's order; ``run.sort_by_score()`` sorts them by score first. Raises an error, and
    writes nothing, if the format cannot represent one of them. ``videos`` is as for ``read_run``.
    """
    name = files.writer_for(to, path, "run").name
    files.write_run(run, path, format=name, corpus=open_corpus(videos))


def write_judgements(judgements: Judgements, path: Path, *, to: str | None = None, videos: Videos = None) -> None:
    """Write ground truth in the format ``to``; by default the file's suffix decides the format.

    Raises an error, and writes nothing, if the format cannot represent one of them. ``videos`` is as for ``read_run``.
    """
    name = files.writer_for(to, path, "truth").name
    files.write_truth(judgements, path, format=name, corpus=open_corpus(videos))


def convert(
    source: Path,
    target: Path,
    *,
    to: str | None = None,
    format: str | None = None,
    videos: Videos = None,
    invalid: Policy = "error",
    task: str | None = None,
    force: bool = False,
) -> Conversion:
    """Convert a file to another format, and report what was read, written and lost.

    The format of ``source`` is recognised unless ``format`` names it; ``target`` is written as ``to``, or as its suffix
    says. ``task`` picks one list of a TVR submission (VCMR, SVMR or VR). An existing target is replaced only if
    ``force``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     convert("examples/kitchen/careful.jsonl", f"{folder}/run.json", to="tvr-ranking").written_as
    'tvr-ranking-predictions'
    """
    corpus = open_corpus(videos)
    return conversion.convert(
        source, target, to=to, format=format, corpus=corpus, invalid=invalid, task=task, force=force
    )
