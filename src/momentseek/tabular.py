"""Results with rows: into pandas or Arrow, and as a table in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.optional import optional_module
from momentseek.tables import NO_VALUE, html_table

MAX_NOTEBOOK_ROWS = 10


class Tabular:
    """Base class of results with rows: ``to_columns`` gives them, and the rest follows."""

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """The rows as lists or arrays of equal length, by the name of their column."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``; NaN becomes null. Needs the package pyarrow."""
        arrow = optional_module("pyarrow", "parquet")
        arrays = {name: arrow.array(values, from_pandas=True) for name, values in self.to_columns().items()}
        return arrow.table(arrays)

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``. Needs the package pandas."""
        try:
            import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise MomentseekError(
                "this needs the package pandas; install it with: pip install pandas (or use to_arrow())"
            ) from None
        return pandas.DataFrame(self.to_columns())

    def _repr_html_(self) -> str:
        columns = self.to_columns()
        rows = [list(map(_cell, row)) for row in islice(zip(*columns.values(), strict=True), MAX_NOTEBOOK_ROWS)]
        count = len(next(iter(columns.values()), ()))
        note = f", the first {MAX_NOTEBOOK_ROWS} of {count:,} rows" if count > MAX_NOTEBOOK_ROWS else ""
        return html_table(list(columns), rows, caption=repr(self).strip("<>") + note)


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return NO_VALUE if np.isnan(value) else f"{value:.4g}"
    return "" if value is None else str(value)
