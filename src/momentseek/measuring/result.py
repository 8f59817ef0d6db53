"""The result of an evaluation: a value for each query and measure, overall figures, and how they were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray, stable_order
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import MAX_RELEVANCE, Judgements
from momentseek.core.reports import NO_VALUE, Tabular, count, html_table
from momentseek.measuring.measures import CaptionMeasure, Measure
from momentseek.measuring.measures.measure import LENGTH_BOUNDS_SECONDS


def labels_of(truth: Judgements | CaptionTable, field: str) -> NDArray[np.str_]:
    """Return each query's label: a field such as TVR's ``type``, or the ``length`` of its most relevant moment.

    >>> truth = Judgements.from_rows([("a", "v", 0, 10, 1), ("b", "v", 0, 50, 4), ("b", "v", 0, 5, 2)])
    >>> labels_of(truth, "length").tolist()
    ['short', 'long']
    """
    if field in truth.fields:
        return np.array(truth.fields[field])
    if field == "length":
        return _lengths(truth)
    known = ", ".join([*truth.fields, "length"])
    raise MomentseekError(f"{truth.source}: {truth.ASKED[1]} have no {field!r} to group by, only {known}")


def _lengths(truth: Judgements | CaptionTable) -> NDArray[np.str_]:
    relevance = truth.relevance if isinstance(truth, Judgements) else np.ones(len(truth.start), dtype=np.int64)
    order = stable_order(truth.row_query * (MAX_RELEVANCE + 1) + (MAX_RELEVANCE - relevance))
    some = truth.counts > 0
    seconds = (truth.end - truth.start)[order[truth.offsets[:-1][some]]]
    names = np.array([*LENGTH_BOUNDS_SECONDS, "none"])
    limits = [high for _, high in LENGTH_BOUNDS_SECONDS.values()][:-1]
    number = np.full(len(truth), len(LENGTH_BOUNDS_SECONDS))
    number[some] = np.searchsorted(limits, seconds)
    labels: NDArray[np.str_] = names[number]
    return labels


Missing = Literal["error", "zero", "skip"]
FILE_ENDINGS = ("json", "jsonl", "parquet", "txt", "csv")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular):
    """The scores of a run: a value per query and measure (NaN if a query does not count), and how it was measured.

    ``evaluation["mIoU"]`` is the mean of a measure, ``means`` has all means, and ``to_pandas`` the value of each query.
    """

    protocol: str
    run: str
    query_ids: tuple[str, ...]
    queries: tuple[str, ...] | None
    measures: tuple[Measure, ...]
    values: FloatArray
    missing: tuple[str, ...] = ()
    percent: bool = False
    truth: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    judged: Mapping[str, float] = field(default_factory=dict)
    """Share of the returned moments that have been judged, such as ``{"Judged@10": 0.63}``."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know: broken moments, queries without a relevant one, …."""
    judgements: Judgements | CaptionTable | None = None
    """The truth itself, needed to group queries and videos."""
    parts: Mapping[str, FloatArray] = field(default_factory=dict)
    """For measures that are not means (BLEU, METEOR), one row per caption with what it adds to the figure."""

    @property
    def asked(self) -> tuple[str, str]:
        """Singular and plural of what was asked: queries, or moments to describe."""
        return CaptionTable.ASKED if isinstance(self.judgements, CaptionTable) else Judgements.ASKED

    def __repr__(self) -> str:
        shown = ", ".join(f"{self.titles[name]} {value:.4f}" for name, value in list(self.means.items())[:3])
        more = f", … ({len(self.measures)} measures)" if len(self.measures) > 3 else ""
        queries = count(len(self.query_ids), *self.asked)
        return f"<Evaluation of {self.run}, {queries}, protocol {self.protocol}: {shown}{more}>"

    def _repr_html_(self) -> str:
        queries = count(len(self.query_ids), *self.asked)
        rows = [
            [self.titles[name], NO_VALUE if np.isnan(value) else f"{value:.4f}"] for name, value in self.means.items()
        ]
        caption = f"{self.run}: {queries}, {len(self.missing):,} missing; protocol {self.protocol}"
        return html_table(["measure", "value"], rows, caption=caption)

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """Return one row per query: ``query_id``, ``query`` if its text is known, and a column for each measure."""
        columns: dict[str, Sequence[Any]] = {"query_id": self.query_ids}
        if self.queries is not None:
            columns["query"] = self.queries
        return columns | {name: self.values[:, i].tolist() for i, name in enumerate(self.names)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The measures' names, in the order of the columns of ``values``."""
        return tuple(m.name for m in self.measures)

    @cached_property
    def titles(self) -> dict[str, str]:
        """Measure → its name in tables, with ``>`` instead of ``>=`` if the protocol compares strictly."""
        return {m.name: m.title for m in self.measures}

    @cached_property
    def means(self) -> dict[str, float]:
        """Measure → its figure: the mean over the queries that count, except for BLEU and METEOR."""
        return self.figures(np.ones(len(self.query_ids), dtype=bool))

    def figures(self, some: BoolArray) -> dict[str, float]:
        """Return measure → its figure for some of the queries: the mean over those that count, or BLEU and METEOR."""
        return {m.name: self._figure(i, some) for i, m in enumerate(self.measures)}

    def _figure(self, position: int, some: BoolArray) -> float:
        measure = self.measures[position]
        if measure.name not in self.parts:
            return measure.summarise(self.values[some, position])
        assert isinstance(measure, CaptionMeasure)
        rows = self.parts[measure.name][some]
        rows = rows[~np.isnan(rows).any(axis=1)]
        return float(measure.figures(rows.sum(axis=0, keepdims=True))[0]) if len(rows) else float("nan")

    def mean(self, name: str) -> float:
        """Return the figure of one measure, as in ``means``."""
        return self.means[name]

    def __getitem__(self, name: str) -> float:
        return self.means[name]

    def by(self, field: str) -> dict[str, tuple[int, dict[str, float]]]:
        """Return label → (number of queries, means), for a field of the truth's queries or ``length``."""
        return {label: (int(some.sum()), self.figures(some)) for label, some in self.members(field).items()}

    def members(self, field: str) -> dict[str, BoolArray]:
        """Return label → a mask of the queries that have it, in order of first appearance."""
        assert self.judgements is not None
        labels = labels_of(self.judgements, field)
        return {label: labels == label for label in dict.fromkeys(labels.tolist())}


def label_of(source: str) -> str:
    """Return the name of a run's file without its extensions.

    >>> label_of("runs/exp.v2.jsonl.gz"), label_of("(memory)")
    ('exp.v2', '(memory)')
    """
    name = Path(source).name.removesuffix(".gz")
    stem, dot, ending = name.rpartition(".")
    return stem if dot and ending.lower() in FILE_ENDINGS else name


def short_labels(paths: Sequence[str]) -> list[str]:
    """Return each file's name without extensions, with as many folders before it as make it unique.

    >>> short_labels(["runs/xml.json", "runs/conquer.json.gz"])
    ['xml', 'conquer']
    >>> short_labels(["new/run.json", "old/run.json"])
    ['new/run', 'old/run']
    """

    parts = [(*Path(p).parts[:-1], label_of(p)) for p in paths]
    deepest = max(map(len, parts))

    def tail(path: tuple[str, ...]) -> str:
        for length in range(1, deepest + 1):
            if sum(other[-length:] == path[-length:] for other in parts) == 1:
                break
        else:
            length = 1
        return str(Path(*path[-length:]))

    return [tail(path) for path in parts]
