"""Describe and check features: number of entries, columns, rows, types, NaNs, and missing videos and queries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.reports import text_table
from momentseek.models.features.data import DATA_FILE, Data
from momentseek.models.features.sources import FeatureSource, open_source

NAMED = 3
"""Maximum number of entries that a report names; it counts the others."""
WIDE_SHARE = 0.1
"""Share by which the number of clips may differ from the video's duration before the report mentions it."""


@dataclass(frozen=True)
class StreamReport:
    """The contents of one file or folder of features, and its problems."""

    path: str
    holds: str
    """The kind of its entries: ``video``, ``subtitle``, or ``query`` with the split."""
    entries: int
    bytes: int
    columns: tuple[int, ...]
    """Numbers of columns; more than one is an error."""
    rows: tuple[int, float, int] | None
    """Minimum, median and maximum number of rows; None if nothing could be read."""
    dtypes: tuple[str, ...]
    not_finite: tuple[str, ...] = ()
    """Entries with NaN or infinite values."""
    empty: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """The error message of each entry that could not be read."""
    missing: tuple[str, ...] = ()
    """Videos or queries of the annotations without an entry."""
    unused: int = 0
    """Number of entries that no annotation names."""
    coverage: float | None = None
    """Median ratio of a video's rows to the clips of its duration, which should be 1; None without durations."""

    @property
    def problems(self) -> list[str]:
        """Sentences about everything that would make training fail or learn from wrong data."""
        found = [
            _count(self.not_finite, "NaN or infinite values in"),
            _count(self.empty, "no rows in"),
            _count(self.missing, "annotated but without features:"),
            *self.unreadable[:NAMED],
        ]
        if len(self.columns) > 1:
            found.append(f"columns differ: {', '.join(map(str, self.columns))}")
        if self.coverage is not None and abs(self.coverage - 1) > WIDE_SHARE:
            found.append(f"rows are {self.coverage:.0%} of the clips of their videos; check clip_seconds")
        return [f"{self.path} ({self.holds}): {sentence}" for sentence in found if sentence]

    def as_dict(self) -> dict[str, Any]:
        """All fields, and the problems."""
        return {**asdict(self), "problems": self.problems}


def _count(names: Collection[str], what: str) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{what} {', '.join(list(names)[:NAMED])}{more}" if names else ""


Advance = Callable[[int], None]


def inspect_features(path: Path, advance: Advance = lambda _: None) -> list[StreamReport]:
    """Read all features of a data folder, or of a single file or folder, and report on each stream."""
    if path.name == DATA_FILE or (path / DATA_FILE).is_file():
        with Data.open(path) as data:
            return _inspect_data(data, advance)
    source = open_source(path, "video")
    try:
        return [_inspect(source, "video", None, {}, 0.0, advance)]
    finally:
        source.close()


def entry_count(path: Path) -> int:
    """Number of entries that ``inspect_features`` will read, for a progress bar."""
    if path.name == DATA_FILE or (path / DATA_FILE).is_file():
        with Data.open(path) as data:
            return sum(len(source.names()) for _, source, _ in _streams(data))
    source = open_source(path, "video")
    source.close()
    return len(source.names())


def _streams(data: Data) -> list[tuple[str, FeatureSource, set[str]]]:
    """For each stream: its kind, the open source, and the names that the annotations expect in it."""
    splits = [data.split(name) for name in data.splits]
    videos = {video for split in splits for video in (*split.corpus, *split.truth.videos)}
    found = [
        (kind, source, videos)
        for kind, features in (("video", data.video), ("subtitle", data.subtitle))
        for source in (features.sources if features else ())
    ]
    wanted: dict[int, tuple[list[str], FeatureSource, set[str]]] = {}
    for split in splits:
        for source in split.query.sources:
            names, _, queries = wanted.setdefault(id(source), ([], source, set()))
            names.append(split.name)
            queries.update(split.truth.query_ids)
    return [*found, *((f"query: {', '.join(names)}", source, queries) for names, source, queries in wanted.values())]


def _inspect_data(data: Data, advance: Advance) -> list[StreamReport]:
    seconds = {video: s for name in data.splits for video, s in data.split(name).durations.items()}
    return [
        _inspect(source, kind, wanted, seconds if kind == "video" else {}, data.clip_seconds, advance)
        for kind, source, wanted in _streams(data)
    ]


def _inspect(
    source: FeatureSource,
    holds: str,
    wanted: set[str] | None,
    seconds: dict[str, float],
    clip_seconds: float,
    advance: Advance,
) -> StreamReport:
    names = sorted(source.names())
    rows, columns, dtypes = {}, Counter[int](), Counter[str]()
    unreadable, not_finite = [], []
    for name in names:
        advance(1)
        try:
            rows[name], width = source.shape(name)
            columns[width] += 1
            dtypes[source.dtype(name)] += 1
            if not np.isfinite(source.read(name)).all():
                not_finite.append(name)
        except MomentseekError as e:
            unreadable.append(str(e).removeprefix(f"{source.path}: "))
    covered = [rows[name] / math.ceil(s / clip_seconds) for name, s in seconds.items() if name in rows and s > 0]
    return StreamReport(
        path=str(source.path),
        holds=holds,
        entries=len(names),
        bytes=source.size,
        columns=tuple(width for width, _ in columns.most_common()),
        rows=(min(rows.values()), float(np.median(list(rows.values()))), max(rows.values())) if rows else None,
        dtypes=tuple(kind for kind, _ in dtypes.most_common()),
        not_finite=tuple(not_finite),
        empty=tuple(name for name, count in rows.items() if not count),
        unreadable=tuple(unreadable),
        missing=tuple(sorted(wanted - set(names))) if wanted is not None else (),
        unused=len(set(names) - wanted) if wanted is not None else 0,
        coverage=float(np.median(covered)) if covered else None,
    )


def report_text(reports: Collection[StreamReport]) -> str:
    """The reports as one table."""
    header = ["features", "holds", "entries", "columns", "rows (median)", "type", "MB", "unused"]
    lines = [
        [
            report.path,
            report.holds,
            f"{report.entries:,}",
            ", ".join(f"{width:,}" for width in report.columns) or "–",
            f"{report.rows[0]:,} to {report.rows[2]:,} ({report.rows[1]:,.0f})" if report.rows else "–",
            ", ".join(report.dtypes) or "–",
            f"{report.bytes / 1e6:,.1f}",
            f"{report.unused:,}",
        ]
        for report in reports
    ]
    return text_table(header, lines, align="llrrrlrr")
