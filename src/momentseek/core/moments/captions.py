"""Captions of moments: references that people wrote, or predictions of a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray, encode_names, offsets_of
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.table import MomentTable, Policy, check_durations, check_policy, check_times
from momentseek.core.reports import count


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CaptionTable(MomentTable):
    """Id → captions, and the moments they describe if the file has them.

    An id of ``query_ids`` names what is described (TVC's ``clip_id``), not a query. Its captions are
    ``captions[caption_offsets[i]:caption_offsets[i + 1]]``. It has one moment in TVC, several or none in other files.
    References and predictions have the same shape; of predictions only the first caption counts.

    >>> table = CaptionTable.from_rows([(7, "film", 0, 5, ["A dog runs.", "A dog is running."])])
    >>> table.of("7"), table.moments("7")
    (('A dog runs.', 'A dog is running.'), [Moment(video='film', start=0.0, end=5.0)])
    """

    ASKED = ("moment", "moments")

    captions: tuple[str, ...]
    caption_offsets: IntArray
    durations: FloatArray
    """Duration of each of ``videos`` in seconds; NaN if unknown."""
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per-id labels to break results down by, such as TVR's ``type``."""
    columns: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """Per-caption values that are only passed through, such as TVC's ``desc_id`` and ``type``."""
    variant: str | None = None
    """The detected dataset, e.g. ``TVC, test-public``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.caption_offsets) != len(self.query_ids) + 1 or self.caption_offsets[-1] != len(self.captions):
            raise MomentseekError(f"{self.source}: offsets do not fit the moments and captions")

    @classmethod
    def from_groups(
        cls,
        ids: Sequence[object],
        captions: Sequence[Sequence[str]],
        counts: Iterable[int] | None = None,
        videos: Sequence[str] = (),
        start: ArrayLike = (),
        end: ArrayLike = (),
        *,
        durations: Mapping[str, float] | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
        columns: Mapping[str, Sequence[object]] | None = None,
        variant: str | None = None,
        invalid: Policy = "error",
        source: str = "(memory)",
    ) -> CaptionTable:
        """Build from the captions of each id, and ``counts`` moments per id (without ``counts``, no moments)."""
        check_policy(invalid)
        check_durations(durations or {}, source)
        names = tuple(map(str, ids))
        offsets = offsets_of([0] * len(names) if counts is None else counts)
        starts, ends = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        vocabulary, codes = encode_names(videos)
        seconds = np.array([(durations or {}).get(v, np.nan) for v in vocabulary], dtype=np.float64)
        owner = np.repeat(np.arange(len(names)), np.diff(offsets))

        def describe(row: int) -> str:
            return f"moment {names[owner[row]]}: {starts[row]:g}–{ends[row]:g} s of {vocabulary[codes[row]]}"

        checked = check_times(starts, ends, seconds[codes] if durations else None, invalid, describe, source)
        keep = ~checked.void
        return cls(
            query_ids=names,
            offsets=offsets_of(np.bincount(owner[keep], minlength=len(names)).tolist()),
            videos=vocabulary,
            video=codes[keep],
            start=checked.start[keep],
            end=checked.end[keep],
            captions=tuple(chain.from_iterable(captions)),
            caption_offsets=offsets_of(map(len, captions)),
            durations=seconds,
            fields={name: tuple(values) for name, values in (fields or {}).items()},
            columns={name: tuple(values) for name, values in (columns or {}).items()},
            variant=variant,
            findings=checked.findings,
            source=source,
        )

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[object, str, float, float, Sequence[str]]], invalid: Policy = "error"
    ) -> CaptionTable:
        """Build from ``(id, video, start, end, captions)``, one row per moment."""
        ids, videos, start, end, captions = zip(*rows, strict=True) if (rows := list(rows)) else ((),) * 5
        return cls.from_groups(ids, captions, [1] * len(ids), videos, start, end, invalid=invalid)

    @cached_property
    def caption_counts(self) -> IntArray:
        """The number of captions of each id."""
        return np.diff(self.caption_offsets)

    def of(self, moment_id: str) -> tuple[str, ...]:
        """Return the captions of one id, in the file's order."""
        i = self.position[str(moment_id)]
        return self.captions[int(self.caption_offsets[i]) : int(self.caption_offsets[i + 1])]

    def groups(self) -> list[tuple[str, ...]]:
        """Return the captions of every id."""
        return [self.of(moment_id) for moment_id in self.query_ids]

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """Return one row per caption: ``moment_id``, first moment (``video``, ``start``, ``end``), ``caption``."""
        owner = np.repeat(np.arange(len(self)), self.caption_counts)
        some = self.counts[owner] > 0
        rows = np.where(some, self.offsets[:-1][owner], 0).tolist()

        def column(values: Sequence[Any]) -> list[Any]:
            return [values[row] if known else None for row, known in zip(rows, some.tolist(), strict=True)]

        return {
            **self.columns,
            "moment_id": [self.query_ids[i] for i in owner.tolist()],
            "video": column([self.videos[v] for v in self.video.tolist()]),
            "start": column(self.start.tolist()),
            "end": column(self.end.tolist()),
            "caption": self.captions,
        }

    def __repr__(self) -> str:
        size = f"{count(len(self), 'moment')}, {count(len(self.captions), 'caption')}"
        return f"<CaptionTable of {self.source}: {size} in {count(len(self.videos), 'video')}>"


def captions_of(truth: Judgements) -> CaptionTable:
    """Return the texts of a truth's queries as captions of its moments: one reference for each query.

    >>> truth = Judgements.from_groups(["q1"], [1], ["film"], [0], [5], queries=["A dog runs."])
    >>> captions_of(truth).of("q1")
    ('A dog runs.',)
    """
    texts = truth.queries
    if texts is None or not any(texts):
        raise MomentseekError(f"{truth.source}: its queries have no words, so there are no captions to compare with")
    return CaptionTable(
        query_ids=truth.query_ids,
        offsets=truth.offsets,
        videos=truth.videos,
        video=truth.video,
        start=truth.start,
        end=truth.end,
        captions=tuple(text for text in texts if text),
        caption_offsets=offsets_of([int(bool(text)) for text in texts]),
        durations=truth.durations,
        fields=truth.fields,
        variant=truth.variant,
        findings=truth.findings,
        source=truth.source,
    )


def described_moments(table: CaptionTable) -> Judgements:
    """Return captions as queries for the moments they describe; a moment without captions is a query too.

    >>> table = CaptionTable.from_rows([(7, "film", 0, 5, ["A dog runs.", "A dog is running."])])
    >>> described_moments(table).query_ids, described_moments(table).moments("7:1")
    (('7:0', '7:1'), [Moment(video='film', start=0.0, end=5.0)])
    """
    owner = np.repeat(np.arange(len(table)), np.maximum(table.caption_counts, 1))
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    ids = [f"{table.query_ids[i]}:{n - first[i]}" for n, i in enumerate(owner.tolist())]
    rows = np.concatenate([np.arange(table.offsets[i], table.offsets[i + 1]) for i in owner]) if len(owner) else owner
    whole = len(owner) == len(table.captions)
    kinds = table.columns.get("type") if whole else None
    return Judgements.from_groups(
        ids,
        table.counts[owner].tolist(),
        [table.videos[v] for v in table.video[rows].tolist()],
        table.start[rows],
        table.end[rows],
        durations=dict(zip(table.videos, table.durations.tolist(), strict=True)),
        queries=table.captions if whole else None,
        fields={"type": [str(kind) for kind in kinds]} if kinds else None,
        invalid="keep",
        source=table.source,
    )
