"""Datasets for Hugging Face ``datasets``: write folders for ``load_dataset``, and read what it saved to disk.

A folder has a dataset card (README.md, whose header names the splits' files) and one Parquet file per split, with the
columns of the native format. Such folders can be read, with Parquet or JSON Lines, and also folders of
``save_to_disk`` (Arrow). Only pyarrow is needed, not the package ``datasets``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from momentseek.core.atomic import write_all
from momentseek.core.errors import MomentseekError, optional_module, parameter
from momentseek.core.limits import max_bytes
from momentseek.core.moments.judgements import Judgements
from momentseek.core.registry import did_you_mean
from momentseek.core.reports import count
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.files import read_truth
from momentseek.measuring.formats.native import REQUIRED, truth_columns, truth_from
from momentseek.measuring.formats.registry import Reading

SPLIT_NAME = re.compile(r"\w+(?:\.\w+)*")
SHARD = re.compile(r"(?P<split>\w+(?:\.\w+)*?)(?:-\d{5}-of-\d{5})?")
"""A file of a split, as the Hub names them: ``test-00000-of-00001.parquet``, or ``test.jsonl``."""
COLUMNS = {
    "query_id": "the query's id",
    "query": "its words",
    "video": "the video's name; null for a query without moments",
    "start": "seconds",
    "end": "seconds",
    "relevance": "how well the moment answers the query, 0 to 4; 1 if there are no levels",
    "duration": "the video's length in seconds",
    "agreement": "moments that a prediction must match to count",
    "pool": "videos that the query is searched in",
    "saliency": "ratings of the video's clips",
    "judge": "the language model that judged the moment; null for people",
}


def export_folder(
    splits: Mapping[str, Judgements],
    out: str | os.PathLike[str],
    *,
    name: str | None = None,
    license: str | None = None,
) -> list[Path]:
    """Write splits as a folder for ``load_dataset(OUT)``: one Parquet file each with the same columns, and a card."""
    pyarrow = optional_module("pyarrow", "parquet")
    parquet = optional_module("pyarrow.parquet", "parquet")
    folder = Path(out)
    for split in splits:
        if not SPLIT_NAME.fullmatch(split):
            raise MomentseekError(f"a split cannot be called {split!r}; use letters, digits and _")
    tables = {split: _table(truth, pyarrow) for split, truth in splits.items()}
    schema = pyarrow.unify_schemas([table.schema for table in tables.values()], promote_options="permissive")
    files: dict[str | os.PathLike[str], bytes] = {}
    for split, table in tables.items():
        columns = [
            table.column(f.name).cast(f.type) if f.name in table.column_names else pyarrow.nulls(len(table), f.type)
            for f in schema
        ]
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.table(columns, schema=schema), sink, compression="zstd")
        files[folder / "data" / f"{split}-00000-of-00001.parquet"] = sink.getvalue().to_pybytes()
    files[folder / "README.md"] = dataset_card(splits, schema.names, name or folder.name, license).encode()
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_all(files)
    return [Path(path) for path in files]


def _table(truth: Judgements, pyarrow: Any) -> Any:
    columns = truth_columns(truth)
    kept = {k: v for k, v in columns.items() if k in (*REQUIRED, "relevance") or any(x is not None for x in v)}
    kinds = {"relevance": pyarrow.int8(), "start": pyarrow.float64(), "end": pyarrow.float64()}
    return pyarrow.table({k: pyarrow.array(v, type=kinds.get(k)) for k, v in kept.items()})


def dataset_card(splits: Mapping[str, Judgements], columns: Sequence[str], name: str, license: str | None) -> str:
    """Return the README.md: a header that ``datasets`` reads, and information for people.

    >>> card = dataset_card({"test": Judgements.from_rows([("q", "v", 0, 1, 1)])}, ["video"], "mine", None)
    >>> card.splitlines()[4:8]
    ['- config_name: default', '  data_files:', '  - split: test', '    path: data/test-*.parquet']
    """
    lines = [
        "---",
        *([f"license: {license}"] if license else []),
        "task_categories:",
        "- video-text-to-text",
        "configs:",
    ]
    lines += ["- config_name: default", "  data_files:"]
    for split in splits:
        lines += [f"  - split: {split}", f"    path: data/{split}-*.parquet"]
    lines += ["---", "", f"# {name}", "", "Moments of videos that answer queries, one row per query and moment.", ""]
    lines += ["| split | queries | moments | videos |", "|---|---:|---:|---:|"]
    for split, t in splits.items():
        lines.append(f"| {split} | {len(t):,} | {len(t.start):,} | {len(t.videos):,} |")
    lines += ["", "| column | |", "|---|---|"]
    lines += [f"| `{column}` | {COLUMNS.get(column, 'a label of the query')} |" for column in columns]
    lines += ["", "Written by momentseek; `momentseek data from-hub` reads it back.", ""]
    return "\n".join(lines)


def import_folder(
    folder: str | os.PathLike[str], split: str | None = None, *, rename: Mapping[str, str] | None = None
) -> Judgements:
    """Read the judgements of a split; ``rename`` maps other columns to native names, as in ``{"vid": "video"}``."""
    root = Path(folder)
    found = find_splits(root)
    if split is None and len(found) == 1:
        split = next(iter(found))
    if split is None or split not in found:
        which = f"is no split {split!r} ({did_you_mean(split, list(found))})" if split else f"are {', '.join(found)}"
        raise MomentseekError(f"{root}: there {which}; name one ({parameter('split')})")
    columns: dict[str, list[Any]] = {}
    for path in found[split]:
        for name, values in _columns(path).items():
            columns.setdefault((rename or {}).get(name, name), []).extend(values)
    lacking = [name for name in REQUIRED if name not in columns]
    if lacking:
        raise MomentseekError(
            f"{root}: has no column {lacking[0]!r}, only {', '.join(columns)}; say which one it is "
            f"({parameter('rename', f'NAME={lacking[0]}')})"
        )
    return truth_from(columns, Document(root / split, b""), Reading("keep"))


def find_splits(root: Path) -> dict[str, list[Path]]:
    """Return split → its files, in order: Arrow of ``save_to_disk``, or the Hub's Parquet or JSON Lines."""
    if not root.is_dir():
        raise MomentseekError(f"{root}: there is no such folder; give the one of a dataset")
    found: dict[str, list[Path]] = {}
    for state in sorted(root.glob("*/state.json")) or sorted(root.glob("state.json")):
        name = state.parent.name if state.parent != root else "train"
        found[name] = sorted(state.parent.glob("*.arrow"))
    if found:
        return found
    for path in sorted([*root.rglob("*.parquet"), *root.rglob("*.jsonl")]):
        if (match := SHARD.fullmatch(path.stem)) is not None:
            found.setdefault(match["split"], []).append(path)
    if not found:
        raise MomentseekError(f"{root}: has no Parquet, JSON Lines or Arrow files of a dataset")
    return found


def _columns(path: Path) -> dict[str, list[Any]]:
    if path.stat().st_size > max_bytes():
        raise MomentseekError(
            f"{path}: larger than {max_bytes():,} bytes; set MOMENTSEEK_MAX_BYTES to read it all the same"
        )
    pyarrow = optional_module("pyarrow", "parquet")
    try:
        if path.suffix == ".jsonl":
            table = optional_module("pyarrow.json", "parquet").read_json(path)
        elif path.suffix == ".parquet":
            table = optional_module("pyarrow.parquet", "parquet").read_table(path)
        else:
            with pyarrow.memory_map(str(path)) as source:
                table = pyarrow.ipc.open_stream(source).read_all()
                return dict(table.to_pydict())
        return dict(table.to_pydict())
    except (pyarrow.ArrowException, OSError, ValueError) as e:
        raise MomentseekError(f"{path}: cannot be read ({str(e).splitlines()[0][:120]})") from None


def export_files(given: Sequence[str], out: str, *, name: str | None = None, license: str | None = None) -> str:
    """Export files given as ``SPLIT=FILE``, and describe what was written."""
    splits = {}
    for text in given:
        split, sign, path = text.partition("=")
        if not sign:
            raise MomentseekError(f"{text!r} is not a split; write SPLIT=FILE, such as test=test.jsonl")
        splits[split] = read_truth(path, invalid="keep")
    files = export_folder(splits, out, name=name, license=license)
    queries = sum(map(len, splits.values()))
    return f"{count(len(splits), 'split')}, {count(queries, 'query', 'queries')}, {count(len(files), 'file')}"
