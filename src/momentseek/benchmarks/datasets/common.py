"""Helpers of all dataset protocols: recorded decisions, words of a text, and similar captions.

Papers count words differently. Here, a word is a sequence of letters and digits that may contain apostrophes
(``Rachel's``, ``don't``). TVR's Table 1 also counts punctuation marks; so does ``tokens``, which reproduces that
table's averages for Charades-STA (7.2) and DiDeMo (8.0).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.atomic import write_all
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import IntArray
from momentseek.core.progress import ShowCount
from momentseek.models.features.data import DATA_FILE

ShowProgress = Callable[[str], AbstractContextManager[ShowCount | None]]
"""Opens a progress display with a label, and returns the function to report progress to."""


def no_progress(_: str) -> AbstractContextManager[None]:
    """Show no progress."""
    return nullcontext()


@dataclass(frozen=True, kw_only=True)
class BuiltDataset:
    """The result of a protocol: files to write, a summary for programs and one for people, and notes on the data."""

    files: Mapping[str | PathLike[str], bytes]
    summary: Mapping[str, Any]
    text: str
    notes: Sequence[str] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    """Written file → a remark to print after its name."""
    work_file: Path | None = None
    """A file of unfinished work that is deleted once the others are written."""

    def write(self) -> None:
        """Write all files or none."""
        write_all(dict(self.files))
        if self.work_file is not None:
            self.work_file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision about one subject (a pair, a query, a video), with the evidence for it."""

    subject: str
    outcome: str
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)


def as_json_lines(decisions: Iterable[Decision]) -> bytes:
    """Return the bytes of a report: JSON Lines, one decision each."""
    return "".join(json.dumps(asdict(d), ensure_ascii=False) + "\n" for d in decisions).encode()


def tally(decisions: Iterable[Decision]) -> dict[str, dict[str, int]]:
    """Count decisions by outcome and reason.

    >>> tally([Decision("a", "kept", "agree"), Decision("b", "dropped", "disagree"), Decision("c", "kept", "agree")])
    {'kept': {'agree': 2}, 'dropped': {'disagree': 1}}
    """
    counts = Counter((d.outcome, d.reason) for d in decisions)
    table: dict[str, dict[str, int]] = {}
    for (outcome, reason), n in counts.items():
        table.setdefault(outcome, {})[reason] = n
    return table


WORD_PATTERN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
TOKEN_PATTERN = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order.

    >>> words("Rachel's dog doesn't bark, twice.")
    ["rachel's", 'dog', "doesn't", 'bark', 'twice']
    """
    return WORD_PATTERN.findall(text.lower().replace("’", "'"))


def tokens(text: str) -> list[str]:
    """Return the words and punctuation marks of a text in lower case, as TVR's Table 1 counts them.

    >>> tokens("She sits, he stands.")
    ['she', 'sits', ',', 'he', 'stands', '.']
    """
    return TOKEN_PATTERN.findall(text.lower())


def normalise(text: str) -> str:
    """Reduce a text to its words, so that texts that differ only in case, punctuation and spacing become equal.

    >>> normalise("  Sit   DOWN! ")
    'sit down'
    """
    return " ".join(words(text))


BLOCK_BYTES = 64 << 20
"""Default size of the scores held in memory at a time, in bytes."""


def top_similar(
    queries: NDArray[np.float32],
    captions: NDArray[np.float32],
    k: int,
    *,
    block: int | None = None,
    groups: IntArray | None = None,
) -> tuple[IntArray, NDArray[np.float32]]:
    """Find for every query the ``k`` captions with the largest dot product, best first; ties by the smaller index.

    With rows of length 1 the score is the cosine, :math:`sim(q, m.c)` of TVR-Ranking §3.2. There are
    ``min(k, len(captions))`` columns. ``block`` is the number of queries scored at a time. ``groups`` numbers the
    captions from 0; of captions with the same number (which describe the same moment) only the best counts.

    >>> q = np.array([[1, 0], [0, 1]], np.float32)
    >>> c = np.array([[1, 0], [0.6, 0.8], [1, 0]], np.float32)
    >>> indices, scores = top_similar(q, c, 2)
    >>> indices.tolist(), scores.round(2).tolist()
    ([[0, 2], [1, 0]], [[1.0, 1.0], [0.800000011920929, 0.0]])
    >>> top_similar(q, c, 2, groups=np.array([0, 1, 0]))[0].tolist()
    [[0, 1], [1, 0]]
    """
    if queries.ndim != 2 or captions.ndim != 2 or queries.shape[1] != captions.shape[1]:
        raise ValueError(f"vectors of different lengths: {queries.shape} and {captions.shape}")
    members = None if groups is None else group_members(groups)
    k = max(0, min(k, len(captions) if members is None else len(members)))
    asked, query_place = distinct_rows(queries)
    known, caption_place = distinct_rows(captions)
    indices = np.empty((len(asked), k), dtype=np.int64)
    scores = np.empty((len(asked), k), dtype=np.float32)
    block = block or max(1, BLOCK_BYTES // (4 * max(1, len(captions))))
    for at in range(0, len(asked) if k else 0, block):
        rows = slice(at, at + block)
        all_scores = (asked[rows] @ known.T)[:, caption_place]
        indices[rows], scores[rows] = (
            take_largest(all_scores, k) if members is None else take_largest_groups(all_scores, k, members)
        )
    return indices[query_place], scores[query_place]


def distinct_rows(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], IntArray]:
    """Find the distinct rows, in order of first appearance, and each row's position among them.

    A matrix product may round equal rows differently at the edge of a tile; if multiplied once, they tie exactly.

    >>> distinct_rows(np.array([[1, 2], [3, 4], [1, 2]], np.float32))[1].tolist()
    [0, 1, 0]
    """
    rows = np.ascontiguousarray(rows)
    places: dict[bytes, int] = {}
    place = np.fromiter((places.setdefault(row.tobytes(), len(places)) for row in rows), np.int64, len(rows))
    first = np.full(len(places), len(rows), dtype=np.int64)
    np.minimum.at(first, place, np.arange(len(rows)))
    return rows[first], place


def take_largest(scores: NDArray[np.float32], k: int) -> tuple[IntArray, NDArray[np.float32]]:
    """Find the ``k`` largest values of every row: their columns and the values, best first; ties by the smaller column.

    ``argpartition`` alone may keep any of several equal values at the border, so rows in which the k-th value also
    occurs outside the chosen columns are sorted separately.

    >>> take_largest(np.array([[0.5, 0.9, 0.5, 0.5]], np.float32), 2)[0].tolist()
    [[1, 0]]
    """
    columns = scores.shape[1]
    if k >= columns:
        chosen = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return chosen, np.take_along_axis(scores, chosen, axis=1)
    some = np.sort(np.argpartition(scores, columns - k, axis=1)[:, columns - k :], axis=1)
    values = np.take_along_axis(scores, some, axis=1)
    border = values.min(axis=1, keepdims=True)
    tied = np.flatnonzero((scores >= border).sum(axis=1) > k)
    order = np.argsort(-values, axis=1, kind="stable")
    chosen = np.take_along_axis(some, order, axis=1)
    for row in tied.tolist():
        candidates = np.flatnonzero(scores[row] >= border[row])
        chosen[row] = candidates[np.argsort(-scores[row, candidates], kind="stable")[:k]]
    return chosen, np.take_along_axis(scores, chosen, axis=1)


def group_members(groups: IntArray) -> IntArray:
    """Return the positions of each group's members, a row per group, ascending; short rows are padded with -1.

    >>> group_members(np.array([0, 1, 0])).tolist()
    [[0, 2], [1, -1]]
    """
    sizes = np.bincount(groups)
    order = np.argsort(groups, kind="stable")
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = np.full((len(sizes), int(sizes.max(initial=0))), -1, dtype=np.int64)
    members[groups[order], rank] = order
    return members


def take_largest_groups(scores: NDArray[np.float32], k: int, members: IntArray) -> tuple[IntArray, NDArray[np.float32]]:
    """Find the ``k`` groups with the largest value in every row, each by the column of that value; ties by column.

    >>> take_largest_groups(np.array([[0.5, 0.9, 0.7]], np.float32), 2, np.array([[0, 2], [1, -1]]))[0].tolist()
    [[1, 2]]
    """
    best = scores[:, members[:, 0]]
    for column in members[:, 1:].T:  # one more caption of each group that has one
        has = column >= 0
        best[:, has] = np.maximum(best[:, has], scores[:, column[has]])
    chosen, values = take_largest(best, k)
    some = members[chosen]
    rows = np.arange(len(scores))[:, None, None]
    first = np.argmax(np.where(some >= 0, scores[rows, some], -np.inf), axis=2)
    return np.take_along_axis(some, first[:, :, None], axis=2)[:, :, 0], values


@contextmanager
def write_folder(out: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill, and move its files to ``out`` at the end; after an error, nothing is left.

    An ``out`` that is not empty raises an error unless ``force`` is true; then files of the same names are replaced and
    others are kept.
    """
    target = Path(out)
    check_target(target, force)
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=target.absolute().parent, prefix=f".{target.name}."))
    except OSError as e:
        raise MomentseekError(
            f"{target}: cannot be created ({e.strerror}); choose another folder ({parameter('out')})"
        ) from None
    try:
        yield folder
        _move(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_target(target: Path, force: bool) -> None:
    """Raise an error for a target that is a file, or a folder that is not empty unless ``force`` is true."""
    if target.exists() and not target.is_dir():
        raise MomentseekError(f"{target}: is a file; give the name of a folder ({parameter('out')})")
    if not force and target.is_dir() and any(target.iterdir()):
        raise MomentseekError(
            f"{target}: is not empty; choose another folder, or replace its files ({parameter('force', True)})"
        )


def _move(folder: Path, target: Path) -> None:
    """Move the files; ``data.toml``, which makes a folder a corpus, is removed first and moved last."""
    try:
        target.mkdir(exist_ok=True)
        (target / DATA_FILE).unlink(missing_ok=True)
        for path in sorted(folder.iterdir(), key=lambda p: (p.name == DATA_FILE, p.name)):
            if path.is_dir():
                shutil.rmtree(target / path.name, ignore_errors=True)
            path.replace(target / path.name)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be written ({e.strerror}); check the folder") from None
