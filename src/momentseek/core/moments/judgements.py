"""Judgements: which moments answer a query, and how well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import CodeArray, FloatArray, IntArray, encode_names, offsets_of
from momentseek.core.moments.table import (
    MomentTable,
    Policy,
    check_durations,
    check_policy,
    check_times,
    group_by_query,
)

MAX_RELEVANCE = 4
"""TVR-Ranking's scale: 0 irrelevant … 4 perfect. Ungraded truths use 1."""
MAX_SALIENCY = 4
"""QVHighlights' scale: 0 very bad … 4 very good."""


@dataclass(frozen=True, slots=True)
class Saliency:
    """Per-clip scores, CSR by query: ``(clips, annotators)`` for a truth, ``(clips, 1)`` for a run."""

    offsets: IntArray
    scores: FloatArray


@dataclass(frozen=True, slots=True)
class Pools:
    """The videos a query is searched in (MVMR), CSR by query, as positions in the table's ``videos``."""

    offsets: IntArray
    video: CodeArray


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Judgements(MomentTable):
    """Query → graded moments, columnar and grouped by query.

    >>> truth = Judgements.from_rows([("q1", "a", 0, 5, 4), ("q1", "b", 2, 9, 1), ("q2", "a", 7, 9, 2)])
    >>> len(truth), truth.relevance.tolist(), truth.moments("q2")
    (2, [4, 1, 2], [Moment(video='a', start=7.0, end=9.0)])
    """

    relevance: NDArray[np.int8]
    durations: FloatArray
    """Duration of each of ``videos`` in seconds; NaN if unknown."""
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per-query labels to break results down by, such as TVR's ``type``."""
    columns: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """Per-moment values that are only passed through, such as ``caption`` or ``pair_id``."""
    agreement: IntArray | None = None
    """Number of a query's moments that a prediction must match to count (DiDeMo: 2 annotators); 1 if None."""
    saliency: Saliency | None = None
    pools: Pools | None = None
    variant: str | None = None
    """The detected dataset, e.g. ``TACoS (2D-TAN version), train``."""

    @classmethod
    def from_groups(
        cls,
        query_ids: Sequence[object],
        counts: Iterable[int],
        videos: Sequence[str],
        start: ArrayLike,
        end: ArrayLike,
        relevance: ArrayLike | None = None,
        *,
        durations: Mapping[str, float] | None = None,
        queries: Sequence[str] | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
        columns: Mapping[str, Sequence[object]] | None = None,
        agreement: ArrayLike | None = None,
        saliency: Saliency | None = None,
        pools: tuple[Iterable[int], Sequence[str]] | None = None,
        variant: str | None = None,
        invalid: Policy = "error",
        source: str = "(memory)",
    ) -> Judgements:
        """Build from per-query ``counts`` and one entry per moment in the other columns.

        A query whose moments were all dropped stays, without moments: it still counts in every mean.
        """
        check_policy(invalid)
        check_durations(durations or {}, source)
        ids = tuple(map(str, query_ids))
        offsets = offsets_of(counts)
        starts = np.asarray(start, dtype=np.float64)
        ends = np.asarray(end, dtype=np.float64)
        grades = np.ones(len(starts), np.int64) if relevance is None else _grades(relevance, source)
        extra = {name: tuple(values) for name, values in (columns or {}).items()}
        vocabulary, codes = encode_names([*videos, *pools[1]] if pools else videos)
        seconds = np.array([(durations or {}).get(v, np.nan) for v in vocabulary], dtype=np.float64)
        codes, pool_codes = codes[: len(starts)], codes[len(starts) :]
        owner = np.repeat(np.arange(len(ids)), np.diff(offsets))

        def describe(row: int) -> str:
            return f"query {ids[owner[row]]}: {starts[row]:g}–{ends[row]:g} s of {vocabulary[codes[row]]}"

        checked = check_times(starts, ends, seconds[codes] if durations else None, invalid, describe, source)
        if checked.void.any():
            keep = ~checked.void
            offsets = offsets_of(np.bincount(owner[keep], minlength=len(ids)).tolist())
            codes, grades = codes[keep], grades[keep]
            extra = {n: tuple(v for v, k in zip(values, keep, strict=True) if k) for n, values in extra.items()}
        else:
            keep = np.ones(len(starts), dtype=bool)
        return cls(
            query_ids=ids,
            offsets=offsets,
            videos=vocabulary,
            video=codes,
            start=checked.start[keep],
            end=checked.end[keep],
            relevance=grades.astype(np.int8),
            durations=seconds,
            queries=tuple(queries) if queries is not None else None,
            fields={name: tuple(values) for name, values in (fields or {}).items()},
            columns=extra,
            agreement=None if agreement is None else _agreement(agreement, ids, source),
            saliency=None if saliency is None else _check_ratings(saliency, ids, source),
            pools=Pools(offsets_of(pools[0]), pool_codes) if pools else None,
            variant=variant,
            findings=checked.findings,
            source=source,
        )

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[object, str, float, float, int]], invalid: Policy = "error") -> Judgements:
        """Build from ``(query_id, video, start, end, relevance)`` in any order; queries are in order of appearance."""
        query_ids, counts, columns = group_by_query(rows)
        videos, start, end, relevance = columns or [[]] * 4
        return cls.from_groups(query_ids, counts, videos, start, end, relevance, invalid=invalid)

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """Return one row per judged moment, with its ``relevance`` and the file's other columns."""
        return {**self.columns, **super().to_columns(), "relevance": self.relevance.tolist()}


def _grades(relevance: ArrayLike, source: str) -> IntArray:
    raw = np.asarray(relevance)
    whole = raw.astype(np.int64)
    wrong = (whole != raw) | (whole < 0) | (whole > MAX_RELEVANCE)
    if wrong.any():
        raise MomentseekError(
            f"{source}: relevance {raw[wrong][0]} is out of range; levels are whole numbers from 0 to {MAX_RELEVANCE}"
        )
    return whole


def _agreement(needed: ArrayLike, ids: tuple[str, ...], source: str) -> IntArray:
    counts = np.asarray(needed, dtype=np.int64)
    wrong = np.flatnonzero(counts < 1)
    if len(wrong):
        raise MomentseekError(
            f"{source}: the agreement of query {ids[wrong[0]]} is {counts[wrong[0]]}; a hit needs 1 annotator or more"
        )
    return counts


def _check_ratings(saliency: Saliency, ids: tuple[str, ...], source: str) -> Saliency:
    wrong = np.argwhere(~((saliency.scores >= 0) & (saliency.scores <= MAX_SALIENCY)))
    if len(wrong):
        query = ids[int(np.searchsorted(saliency.offsets, wrong[0, 0], side="right")) - 1]
        raise MomentseekError(
            f"{source}: query {query} has a clip of saliency {saliency.scores[tuple(wrong[0])]:g}; ratings are numbers "
            f"from 0 to {MAX_SALIENCY}"
        )
    return saliency


@dataclass(frozen=True, eq=False)
class Corpus:
    """Video name → duration in seconds, and (if the file has it) number → name.

    >>> corpus = Corpus({"a": 61.5, "b": 90.0}, {7: "a", 9: "b"})
    >>> corpus.name_of(9), corpus.durations["b"]
    ('b', 90.0)
    """

    durations: Mapping[str, float]
    names: Mapping[int, str]
    source: str = "(memory)"

    def name_of(self, number: int) -> str:
        """Return the name of the video with this number."""
        try:
            return self.names[number]
        except KeyError:
            raise MomentseekError(f"{self.source}: no video has the index {number}") from None

    @cached_property
    def videos(self) -> frozenset[str]:
        """Names of all videos of the collection."""
        return frozenset(self.durations)

    def require(self, videos: Iterable[str], where: str) -> None:
        """Refuse videos that are not in the collection."""
        unknown = [v for v in videos if v not in self.videos]
        if unknown:
            which = f"video {unknown[0]} is" if len(unknown) == 1 else f"{len(unknown):,} videos ({unknown[0]}, …) are"
            raise MomentseekError(f"{where}: {which} not in {self.source}; give the list this file was made for")
