"""A table of a paper as a file describes it: rows, columns, settings and the printed figures (docs/reproducing.md).

A row is a ``model`` with ``settings``, a blind ``baseline``, or a trained row searched in another way (``of``).
``begin``, ``first_stage`` and ``videos`` name other rows; a row that is only such a part is ``hidden``. A file that
``extends`` another has all of it that it does not say itself.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import did_you_mean
from momentseek.measuring.measures import PROTOCOLS

TABLE_KINDS = ("scores", "ties")
"""``scores``: a row per system. ``ties``: a row per measure, the share of queries on which all systems are equal."""


@dataclass(frozen=True, kw_only=True)
class TableColumn:
    """One column: a measure on a split, of all its queries or of those with a label such as TVR's ``type = "v"``."""

    label: str
    split: str
    measure: str
    group: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One row: how its system is trained and searched, and the paper's figures, one per column (None: not printed)."""

    name: str
    label: str
    model: str | None = None
    baseline: str | None = None
    of: str | None = None
    preset: str | None = None
    """The preset on real data, where it is not the table's."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    simulated: Mapping[str, Any] = field(default_factory=dict)
    """Further settings on simulated data."""
    use: Sequence[str] = ()
    """Groups of the table's settings for simulated data that this row takes."""
    share: float = 1.0
    """The share of the table's steps that this row is trained for on simulated data."""
    begin: str | None = None
    first_stage: str | None = None
    videos: str | None = None
    """The row whose best ``first`` videos of each query are searched."""
    first: int | None = None
    hidden: bool = False
    paper: Sequence[float | None] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The rows that must be trained before this one."""
        return tuple(name for name in (self.of, self.begin, self.first_stage, self.videos) if name)


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of a paper: everything needed to make it again."""

    name: str
    title: str
    source: str
    columns: tuple[TableColumn, ...]
    rows: Mapping[str, TableRow]
    protocol: str
    """The paper's evaluator."""
    kind: str = "scores"
    task: str = "SVMR"
    percent: bool = False
    run_time: bool = False
    """Whether the paper prints run times: then ours are shown."""
    remarks: str = ""
    """What a reader of our column must know next to the paper's."""
    preset: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of every row, on real and on simulated data."""
    simulation: Mapping[str, Any] = field(default_factory=dict)

    def choose_rows(self, names: Sequence[str] = ()) -> list[TableRow]:
        """The rows of these names, or all that are shown, in the table's order; with every row that they need."""
        for name in names:
            if name not in self.rows:
                raise MomentseekError(f"{self.name} has no row {name!r}; {did_you_mean(name, self.rows)}")
        wanted = set(names) or {row.name for row in self.rows.values() if not row.hidden}
        while more := {need for name in wanted for need in self.rows[name].needs} - wanted:
            wanted |= more
        return [row for row in self.rows.values() if row.name in wanted]


def table_names() -> tuple[str, ...]:
    """The names of all tables, in alphabetical order."""
    found = (f.name for f in (files("momentseek.benchmarks.reproduction") / "tables").iterdir())
    return tuple(sorted(n.removesuffix(".toml") for n in found if n.endswith(".toml")))


def read_table(name: str) -> PaperTable:
    """The table of a name.

    >>> table = read_table("debiased-2")
    >>> table.rows["ctrl"].label, table.rows["ctrl"].paper[:2]
    ('CTRL', [29.8, 11.86])
    >>> read_table("mvmr2")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no table 'mvmr2'; did you mean 'mvmr-2'?
    """
    if name not in table_names():
        raise MomentseekError(f"there is no table {name!r}; {did_you_mean(name, table_names())}")
    return parse_table(_sections(name), name)


def parse_table(sections: Mapping[str, Any], name: str) -> PaperTable:
    """A table from the sections of its file, with every name and number checked."""
    given = dict(sections)
    columns = tuple(_build(TableColumn, column, f"{name}: columns") for column in given.pop("columns", ()))
    rows = {
        key: _build(TableRow, {"name": key, "label": key, **row}, f"{name}: rows.{key}")
        for key, row in given.pop("rows", {}).items()
    }
    given["preset"] = given.pop("real", {}).get("preset", "")
    table: PaperTable = _build(PaperTable, {"name": name, **given, "columns": columns, "rows": rows}, name)
    if table.kind not in TABLE_KINDS:
        raise MomentseekError(f"{name}: kind must be {' or '.join(TABLE_KINDS)}, not {table.kind!r}")
    if table.protocol not in PROTOCOLS:
        raise MomentseekError(f"{name}: no protocol {table.protocol!r}; {did_you_mean(table.protocol, PROTOCOLS)}")
    groups = table.simulation.get("settings", {})
    for row in rows.values():
        _check_row(table, row, groups)
    return table


def _check_row(table: PaperTable, row: TableRow, groups: Mapping[str, Any]) -> None:
    where = f"{table.name}: rows.{row.name}"
    if sum(x is not None for x in (row.model, row.baseline, row.of)) != 1:
        raise MomentseekError(f"{where} must have one of model, baseline and of")
    if row.paper and len(row.paper) != len(table.columns):
        raise MomentseekError(f"{where} has {len(row.paper)} figures for {len(table.columns)} columns")
    earlier = list(table.rows)[: list(table.rows).index(row.name)]
    for need in row.needs:
        if need not in earlier:
            raise MomentseekError(
                f"{where} goes on from {need!r}, which is no row before it; {did_you_mean(need, earlier)}"
            )
    for group in row.use:
        if group not in groups:
            raise MomentseekError(f"{where}: there are no settings {group!r}; {did_you_mean(group, groups)}")


def _sections(name: str) -> dict[str, Any]:
    """The sections of a table's file; where it extends another, those of both.

    The file's rows are the table's, each with what the other says of it; printed figures belong to their columns.
    """
    text = (files("momentseek.benchmarks.reproduction") / "tables" / f"{name}.toml").read_text(encoding="utf-8")
    own = tomllib.loads(text)
    base = own.pop("extends", None)
    if base is None:
        return own
    other = _sections(base)
    dropped = ("paper",) if "columns" in own else ()
    inherited = {
        key: {name: value for name, value in row.items() if name not in dropped} for key, row in other["rows"].items()
    }
    return {**other, **own, "rows": {key: {**inherited.get(key, {}), **row} for key, row in own["rows"].items()}}


def _build(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    known = [f.name for f in dataclasses.fields(kind)]
    for key in values:
        if key not in known:
            raise MomentseekError(f"{where}: there is no {key!r}; {did_you_mean(key, known)}")
    try:
        return kind(**values)
    except TypeError as e:
        raise MomentseekError(f"{where}: {e}") from None
