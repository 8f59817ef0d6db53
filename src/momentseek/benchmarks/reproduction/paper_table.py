"""A table described by a TOML file: rows, columns, settings and a paper's figures (docs/measurements/papers.md).

The papers' tables are in the folder ``tables``. Other tables are read by their path, or registered by a plug-in:
``TABLES.add("my-table", Path(__file__).with_name("my-table.toml"))``.

A row is a ``model`` with ``settings``, a blind ``baseline``, or a trained row searched in another way (``of``).
``begin``, ``first_stage`` and ``videos`` name other rows; a row that only serves as such a part is ``hidden``. A file
that ``extends`` another, by name or path, inherits everything it does not define itself. Errors in a file name the key
and its line.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from momentseek.core.config import read_toml, toml_line
from momentseek.core.errors import MomentseekError
from momentseek.core.registry import Registry, did_you_mean
from momentseek.measuring.measures import PROTOCOLS, parse_all

TABLE_KINDS = ("scores", "ties")
"""``scores``: a row per system. ``ties``: a row per measure, the share of queries on which all systems are equal."""
CAPTIONS = "captions"
"""The task of a table whose systems describe moments; the other tasks find them."""
TABLE_TASKS = ("SVMR", "VCMR", "VR", CAPTIONS)
FIELD_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "bool": ((bool,), "true or false"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "Mapping": ((dict,), "a table of settings"),
    "Sequence": ((list, tuple), "a list"),
    "tuple": ((list, tuple), "a list"),
}
"""First word of a field's annotation → the types its value may have, and their name in messages."""
TABLES: Registry[Path] = Registry("table", group="tables")
"""Name → the file of a table."""
for _file in sorted(Path(str(files(__package__))).joinpath("tables").glob("*.toml")):
    TABLES.add(_file.stem, _file)


@dataclass(frozen=True, kw_only=True)
class TableColumn:
    """One column: a measure on a split, for all queries or for those with a label such as TVR's ``type = "v"``."""

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
    """The preset on real data, if it is not the table's."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    simulated: Mapping[str, Any] = field(default_factory=dict)
    """Further settings on simulated data."""
    use: Sequence[str] = ()
    """Groups of the table's settings for simulated data that this row uses."""
    share: float = 1.0
    """The share of the table's steps that this row is trained for on simulated data."""
    begin: str | None = None
    first_stage: str | None = None
    videos: str | None = None
    """The row whose best ``first`` videos of each query are searched; on simulated data ``videos`` of a used group."""
    first: int | None = None
    hidden: bool = False
    paper: Sequence[float | None] = ()
    seconds: float | None = None
    """The paper's search time, if it prints one."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The rows that must be trained before this one."""
        return tuple(name for name in (self.of, self.begin, self.first_stage, self.videos) if name)


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of a paper, with everything needed to reproduce it."""

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    rows: Mapping[str, TableRow]
    source: str = ""
    """The paper that the printed figures are from."""
    protocol: str = "paper"
    """The evaluator: the paper's, or another."""
    seeds: int = 3
    """Default number of seeds of every row."""
    data: str = ""
    """The default data folder of the table; a relative path starts at the table's file."""
    kind: str = "scores"
    task: str = "SVMR"
    percent: bool = False
    run_time: bool = False
    """Whether the paper prints search times; if so, ours are shown next to them."""
    remarks: str = ""
    """What a reader must know to compare our column with the paper's."""
    preset: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of every row, on real and on simulated data."""
    simulation: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    """The file it was read from; empty for the papers' tables."""

    def place(self, *key: str | int) -> str:
        """Return how messages name a key: with file and line, if there is a file."""
        return _place(self.file or self.name, key, self.file)

    def choose_rows(self, names: Sequence[str] = ()) -> list[TableRow]:
        """Return the rows of these names, or all visible ones, with every row they need, in the table's order."""
        for name in names:
            if name not in self.rows:
                raise MomentseekError(f"{self.name} has no row {name!r}; {did_you_mean(name, self.rows)}")
        wanted = set(names) or {row.name for row in self.rows.values() if not row.hidden}
        while more := {need for name in wanted for need in self.rows[name].needs} - wanted:
            wanted |= more
        return [row for row in self.rows.values() if row.name in wanted]


def table_names() -> tuple[str, ...]:
    """Return the names of all tables, those of plug-ins last."""
    return tuple(TABLES)


def read_table(table: str | os.PathLike[str]) -> PaperTable:
    """Read a table by its name, or from a file, which is a path that ends in ``.toml``.

    >>> table = read_table("debiased-2")
    >>> table.rows["ctrl"].label, table.rows["ctrl"].paper[:2]
    ('CTRL', [29.8, 11.86])
    >>> read_table("mvmr2")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no table 'mvmr2'; did you mean 'mvmr-2'?
    """
    own = is_file_name(table)
    path = Path(table) if own else TABLES[str(table)]
    if not own and TABLES.source(str(table)) is None:
        return parse_table(_sections(path), path.stem)
    found = parse_table(_sections(path), path.stem, str(path))
    return replace(found, data=str(path.parent / found.data)) if found.data else found


def is_file_name(table: str | os.PathLike[str]) -> bool:
    """Whether a table is given as a file."""
    return os.fspath(table).endswith(".toml")


def parse_table(sections: Mapping[str, Any], name: str, file: str = "") -> PaperTable:
    """Build a table from the sections of its file, with every name, type and number checked."""

    def build(kind: Any, values: Mapping[str, Any], *key: str | int) -> Any:
        return _build(kind, values, key, file or name, file)

    given = {"title": name, **sections}
    columns = tuple(build(TableColumn, column, "columns", i) for i, column in enumerate(given.pop("columns", ())))
    rows = {
        key: build(TableRow, {"name": key, "label": key, **row}, "rows", key)
        for key, row in given.pop("rows", {}).items()
    }
    given["preset"] = given.pop("real", {}).get("preset", "")
    table: PaperTable = build(PaperTable, {"name": name, **given, "columns": columns, "rows": rows, "file": file})
    for key, known in (("kind", TABLE_KINDS), ("task", TABLE_TASKS)):
        if getattr(table, key) not in known:
            raise MomentseekError(f"{table.place(key)} must be {' or '.join(known)}, not {getattr(table, key)!r}")
    if table.protocol not in PROTOCOLS:
        hint = did_you_mean(table.protocol, PROTOCOLS)
        raise MomentseekError(f"{table.place('protocol')}: there is no protocol {table.protocol!r}; {hint}")
    if table.seeds < 1:
        raise MomentseekError(f"{table.place('seeds')} must be at least 1, not {table.seeds}")
    if not columns or not rows:
        raise MomentseekError(f"{file or name}: has no {'rows' if columns else 'columns'}; a table has both")
    for i, column in enumerate(columns):
        try:
            parse_all([column.measure])
        except MomentseekError as e:
            raise MomentseekError(f"{table.place('columns', i, 'measure')}: {e}") from None
    groups = table.simulation.get("settings", {})
    for row in rows.values():
        _check_row(table, row, groups)
    return table


def _check_row(table: PaperTable, row: TableRow, groups: Mapping[str, Any]) -> None:
    where = table.place("rows", row.name)
    if sum(x is not None for x in (row.model, row.baseline, row.of)) != 1:
        raise MomentseekError(f"{where} must have one of model, baseline and of")
    if row.paper and len(row.paper) != len(table.columns):
        where = table.place("rows", row.name, "paper")
        raise MomentseekError(f"{where} has {len(row.paper)} figures for {len(table.columns)} columns")
    earlier = list(table.rows)[: list(table.rows).index(row.name)]
    for need in row.needs:
        if need not in earlier:
            raise MomentseekError(
                f"{where} continues from {need!r}, which is not a row before it; {did_you_mean(need, earlier)}"
            )
    for group in row.use:
        if group not in groups:
            raise MomentseekError(f"{where}: there are no settings {group!r}; {did_you_mean(group, groups)}")


def _sections(path: Path) -> dict[str, Any]:
    """Read the sections of a table's file, merged with those of the table it extends.

    The table has the rows of this file, and each inherits from the same row of the other file. Printed figures are not
    inherited if this file defines its own columns.
    """
    own = read_toml(path, "a table is named, or given by the path of its file (`momentseek reproduce --list`)")
    for key in ("rows", "real", "simulation"):
        parts = own.get(key, {})
        if not isinstance(parts, dict) or (key == "rows" and not all(isinstance(row, dict) for row in parts.values())):
            raise MomentseekError(f"{_place(str(path), (key,), str(path))} must be a table, [{key}…]; correct it")
    if not all(isinstance(column, dict) for column in own.get("columns", ())):
        raise MomentseekError(f"{_place(str(path), ('columns',), str(path))} must be tables, [[columns]]; correct it")
    base = own.pop("extends", None)
    if base is None:
        return own
    if not isinstance(base, str):
        raise MomentseekError(f"{_place(str(path), ('extends',), str(path))} must be the name or path of a table")
    other = _sections(path.parent / base if is_file_name(base) else TABLES[base])
    dropped = ("paper",) if "columns" in own else ()
    inherited = {
        key: {name: value for name, value in row.items() if name not in dropped} for key, row in other["rows"].items()
    }
    rows = own.get("rows", {key: {} for key in inherited})
    return {**other, **own, "rows": {key: {**inherited.get(key, {}), **row} for key, row in rows.items()}}


def _build(kind: Any, values: Mapping[str, Any], key: Sequence[str | int], what: str, file: str) -> Any:
    """Build a part of a table, with names and types checked; ``key`` is the position of the values in the file."""
    known = {f.name: str(f.type) for f in dataclasses.fields(kind)}
    for name, value in values.items():
        if name not in known:
            place = _place(what, (*key, name), file)
            raise MomentseekError(f"{place}: there is no such key; {did_you_mean(name, known)}")
        word = known[name].partition("[")[0].partition(" ")[0]
        types, called = FIELD_KINDS[word]
        if not isinstance(value, types) or (isinstance(value, bool) and word != "bool"):
            raise MomentseekError(f"{_place(what, (*key, name), file)} must be {called}, not {value!r}")
    needed = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    if missing := [name for name in needed if name not in values]:
        raise MomentseekError(f"{_place(what, key, file)} has no {missing[0]}; add {missing[0]} = …")
    return kind(**values)


def _place(what: str, key: Sequence[str | int], file: str) -> str:
    """Format a key for messages, such as ``mine.toml, line 7: rows.ours.model``."""
    named = ".".join(str(part + 1) if isinstance(part, int) else part for part in key)
    line = toml_line(Path(file), key) if file else None
    place = f"{what}, line {line}" if line else what
    return f"{place}: {named}" if named else place
