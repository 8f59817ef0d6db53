"""How well a query fits what a video shows (EMScore in MVMR, section 4.1), from a file that another program made."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from momentseek.encoders.npz import read_npz
from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document
from momentseek.formats.values import ids, numbers, optional, records, strings
from momentseek.moments.arrays import FloatArray

VisualScore = Callable[[str, Sequence[str]], FloatArray]
"""Gives, for a query id and videos, one score per video; NaN if unknown."""


def read_visual_scores(path: str | os.PathLike[str]) -> VisualScore:
    """Read visual scores of queries and videos from a file.

    It is an ``.npz`` of ``queries`` (n ids), ``videos`` (m names) and ``scores`` (n × m), or JSON Lines of
    ``{"query_id", "video", "score"}``.
    """
    return _read_matrix(path) if Path(path).suffix == ".npz" else _read_lines(path)


def _read_matrix(path: str | os.PathLike[str]) -> VisualScore:
    queries, videos, scores = read_npz(path, "queries", "videos", "scores")
    queries, videos = queries.astype(str), videos.astype(str)
    if scores.shape != (queries.size, videos.size) or scores.dtype.kind not in "fiu":
        raise MomentseekError(
            f"{path}: scores has shape {scores.shape}; expected {queries.size} queries × {videos.size} videos"
        )
    column = {video: at for at, video in enumerate(videos.tolist())}
    row = {query: at for at, query in enumerate(queries.tolist())}
    table = np.column_stack([scores.astype(np.float64), np.full(len(scores), np.nan)])

    def score(query: str, names: Sequence[str]) -> FloatArray:
        if query not in row:
            return np.full(len(names), np.nan)
        found: FloatArray = table[row[query], [column.get(name, -1) for name in names]]
        return found

    return score


def _read_lines(path: str | os.PathLike[str]) -> VisualScore:
    document = open_document(path)
    entries = records(document)
    table: dict[str, dict[str, float]] = {}
    scores = numbers(optional(entries, "score"), document, "score").tolist()
    for query, video, value in zip(
        ids(entries, "query_id", document), strings(entries, "video", document), scores, strict=True
    ):
        table.setdefault(str(query), {})[video] = value

    def score(query: str, names: Sequence[str]) -> FloatArray:
        known = table.get(query, {})
        return np.array([known.get(name, np.nan) for name in names], dtype=np.float64)

    return score
