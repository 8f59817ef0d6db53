"""The native columns as Parquet, for size and speed; pyarrow is imported only when a file needs it."""

from __future__ import annotations

from functools import partial
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.limits import max_bytes
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.native import (
    OPTIONAL,
    REQUIRED,
    Columns,
    run_columns,
    runs_from,
    truth_columns,
    truth_from,
)
from momentseek.measuring.formats.registry import register

MAX_ROWS = 50_000_000
DAMAGE_ERRORS = (OSError, ValueError, LookupError, TypeError, OverflowError, MemoryError)
"""What pyarrow raises on damaged files, besides its own exceptions."""


def _claims(document: Document, *, graded: bool) -> bool:
    """Whether a file is Parquet with the native columns, and has ``relevance`` exactly if ``graded``."""
    names = _names(document)
    return set(REQUIRED) <= names and ("relevance" in names) == graded


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MomentseekError("Parquet files need pyarrow; pip install 'momentseek[parquet]'") from None
    return pyarrow


def _open(document: Document) -> Any:
    pyarrow = _pyarrow()
    try:
        source = pyarrow.BufferReader(document.data)
        schema = pyarrow.parquet.read_schema(source)
        # Text is read as dictionaries, so that a repeated text is held in memory once.
        text = [field.name for field in schema if pyarrow.types.is_string(field.type)]
        file = pyarrow.parquet.ParquetFile(source, read_dictionary=text)
        meta = file.metadata
        size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    except (pyarrow.ArrowException, *DAMAGE_ERRORS) as e:
        raise _damage_error(document, e) from None
    if meta.num_rows > MAX_ROWS or size > max_bytes() or size < 0:
        raise MomentseekError(
            f"{document.path}: claims {meta.num_rows:,} rows in {size:,} bytes, more than is read at once; split it"
        )
    return file


def _names(document: Document) -> set[str]:
    return set(_open(document).schema_arrow.names) if document.data[:4] == b"PAR1" else set()


def _columns(document: Document, *, labels: bool = False) -> Columns:
    pyarrow = _pyarrow()
    file = _open(document)
    names = file.schema_arrow.names
    for missing in (n for n in REQUIRED if n not in names):
        raise MomentseekError(f"{document.path}: there is no column {missing!r}")
    wanted = [n for n in (*REQUIRED, *OPTIONAL) if n in names]
    if labels:
        wanted += [f.name for f in file.schema_arrow if f.name not in wanted and _is_text(f.type)]
    try:
        table = file.read(columns=wanted)
        table.validate(full=True)
        return {name: _values(table.column(name)) for name in wanted}
    except (pyarrow.ArrowException, *DAMAGE_ERRORS) as e:
        raise _damage_error(document, e) from None


def _is_text(kind: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_string(kind.value_type if types.is_dictionary(kind) else kind))


def _values(column: Any) -> list[Any]:
    pyarrow = _pyarrow()
    if not pyarrow.types.is_dictionary(column.type):
        values: list[Any] = column.to_pylist()
        return values
    result: list[Any] = []
    for chunk in column.chunks:
        words = chunk.dictionary.to_pylist()
        result += [None if i is None else words[i] for i in chunk.indices.to_pylist()]
    return result


def _damage_error(document: Document, error: Exception) -> MomentseekError:
    reason = str(error).strip().splitlines()
    return MomentseekError(
        f"{document.path}: not readable as Parquet ({reason[0][:120] if reason else 'no reason given'})"
    )


def _bytes(columns: Columns) -> bytes:
    pyarrow = _pyarrow()
    numbers = pyarrow.float64()
    types = {"query_id": pyarrow.string(), "query": pyarrow.string(), "video": pyarrow.string(), "start": numbers}
    types |= {"end": numbers, "relevance": pyarrow.int8(), "score": numbers, "duration": numbers}
    types |= {"agreement": pyarrow.int64(), "task": pyarrow.string()}
    kept = {name: values for name, values in columns.items() if name in REQUIRED or any(v is not None for v in values)}
    kept |= {name: columns[name] for name in ("relevance", "score") if name in columns}
    table = pyarrow.table({name: pyarrow.array(values, type=types.get(name)) for name, values in kept.items()})
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


register(
    "parquet",
    partial(_claims, graded=True),
    lambda document, reading: truth_from(_columns(document, labels=True), document, reading),
    lambda truth, _: _bytes(truth_columns(truth)),
)
register(
    "parquet-run",
    partial(_claims, graded=False),
    lambda document, reading: runs_from(_columns(document), document, reading),
    lambda runs, _: _bytes(run_columns(runs, "parquet-run")),
)
