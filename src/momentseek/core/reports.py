"""Tables as data, and their rendering as text, Markdown, LaTeX, HTML, CSV and JSON.

Spreadsheets run a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and names, captions and queries are
untrusted. In CSV such a text is prefixed with an apostrophe, which marks it as text. Numbers stay numbers, and our
readers remove the apostrophe.
"""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape as html_text
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from momentseek.core.errors import MomentseekError, optional_module

NO_VALUE = "–"
"""Text of a cell without a value."""
GAP = "  "
MAX_NOTEBOOK_ROWS = 10
SUPERSCRIPTS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
"""Unicode's superscript letters; there is no q."""
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<=": r"$\leq$",
    ">=": r"$\geq$",
    "<": "$<$",
    ">": "$>$",
    "−": "$-$",
    "∞": r"$\infty$",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    NO_VALUE: "--",
    **{c: "\\" + c for c in "_%&#${}"},
}
FORMULA_CHARACTERS = frozenset("=+-@\t\r\n|%＝＋－＠")
"""First characters of a formula in some spreadsheet; the last ones are full-width forms."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's text, whether it is bold (if the format supports that), and superscript letters after it."""

    text: str
    bold: bool = False
    raised: str = ""


@dataclass(frozen=True)
class Table:
    """A table as data. Its cells are plain text, which each format escapes as needed.

    ``align`` has one letter per column, ``l``, ``r`` or ``c``; its last letter applies to all further columns.

    >>> table = Table(["run", "mIoU"], [["my_run", Cell("0.41", bold=True, raised="b")], ["theirs", "0.4"]])
    >>> print(table.render("text"))
    run      mIoU
    my_run  0.41ᵇ
    theirs   0.4
    >>> print(table.render("markdown"))
    | run | mIoU |
    |:---|---:|
    | my\\_run | **0.41**<sup>b</sup> |
    | theirs | 0.4 |
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    align: str = "lr"

    def render(self, style: str) -> str:
        """Return the table as ``text``, ``markdown``, ``latex`` or ``html``."""
        layout, escape, write = STYLES[style]
        cells = [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in self.rows]
        columns = [write([replace(c, text=escape(c.text)) for c in column]) for column in zip(*cells, strict=True)]
        return layout([escape(name) for name in self.header], list(zip(*columns, strict=True)), align=self.align)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "lr") -> str:
    """Return columns of text two spaces apart, without trailing spaces.

    >>> print(text_table(["run", "NDCG@10", "NDCG@20"], [["ours", "0.3581ᵇ", "0.41"], ["a longer name", "0.3", "0.4"]]))
    run            NDCG@10  NDCG@20
    ours           0.3581ᵇ     0.41
    a longer name      0.3      0.4
    """
    lines = [list(header), *map(list, rows)]
    if any(len(line) != len(header) for line in lines):
        raise ValueError("every row needs as many cells as the header")
    sides = _sides(align, len(header))
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        GAP.join(_pad(cell, w, side) for cell, w, side in zip(line, widths, sides, strict=True)).rstrip()
        for line in lines
    )


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "lr") -> str:
    """Return a GitHub table of cells that are already Markdown (``Table`` takes plain text)."""
    rules = {"l": ":---", "r": "---:", "c": ":---:"}
    lines = ["| " + " | ".join(line) + " |" for line in (header, *rows)]
    return "\n".join([lines[0], "|" + "|".join(rules[s] for s in _sides(align, len(header))) + "|", *lines[1:]])


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "lr") -> str:
    r"""Return a booktabs ``tabular`` of cells that are already LaTeX (``Table`` takes plain text).

    >>> print(latex_table(["Run", "mIoU"], [["ours", r"\textbf{0.41}$^{b}$"]]))
    \begin{tabular}{lr}
    \toprule
    Run & mIoU \\
    \midrule
    ours & \textbf{0.41}$^{b}$ \\
    \bottomrule
    \end{tabular}
    """
    lines = [" & ".join(line) + r" \\" for line in (header, *rows)]
    begin = rf"\begin{{tabular}}{{{_sides(align, len(header))}}}"
    return "\n".join([begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"])


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """Return an HTML table of plain text.

    >>> print(html_table(["run"], [["<ours>"]]))
    <table><thead><tr><th>run</th></tr></thead><tbody><tr><td>&lt;ours&gt;</td></tr></tbody></table>
    """
    title = f"<caption>{html_text(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{html_text(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV, safe from spreadsheet formulas; by default the columns are all keys in order of appearance.

    >>> csv_text([{"name": "=1", "share": 0.5}, {"name": "b", "more": None}])
    "name,share,more\\n'=1,0.5,\\nb,,\\n"
    """
    text = io.StringIO(newline="")
    names = columns or list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(safe_row, rows))
    return text.getvalue()


def to_plain(value: Any) -> Any:
    """Convert any result of this package to JSON values; NaN and infinity become null.

    >>> to_plain({"a": (1, float("nan")), 2: np.arange(2)})
    {'a': [1, None], '2': [0, 1]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        computed = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: to_plain(getattr(value, name)) for name in [*(f.name for f in fields(value)), *computed]}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_plain(value._asdict())
    if isinstance(value, tuple | list):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def decimals(value: float | None, digits: int = 4, sign: str = "") -> str:
    """Format a number with ``digits`` decimals, or – if there is none.

    >>> decimals(0.51236), decimals(0.5, 1, "+"), decimals(math.nan)
    ('0.5124', '+0.5', '–')
    """
    return NO_VALUE if value is None or math.isnan(value) else f"{value:{sign}.{digits}f}"


def percentage(value: float | None, digits: int = 2, unit: str = " %") -> str:
    """Format a share in percent, or – if there is none.

    >>> percentage(0.51236), percentage(None)
    ('51.24 %', '–')
    """
    return NO_VALUE if value is None or math.isnan(value) else f"{100 * value:.{digits}f}{unit}"


def count(n: int, one: str, many: str | None = None) -> str:
    """Format a number with its noun.

    >>> count(1, "query", "queries"), count(2000, "pair")
    ('1 query', '2,000 pairs')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def superscript(letters: str) -> str:
    """Return superscript letters, with ``^`` before a letter without a superscript form.

    >>> superscript("abq")
    'ᵃᵇ^q'
    """
    return "".join(SUPERSCRIPTS.get(letter, "^" + letter) for letter in letters)


def plain_text(text: str) -> str:
    """Return text on one line, with single spaces."""
    return " ".join(text.split())


def markdown_text(text: str) -> str:
    r"""Escape text for Markdown.

    >>> print(markdown_text("my_run|*final*"))
    my\_run\|\*final\*
    """
    return re.sub(r"([\\`*_|<])", r"\\\1", plain_text(text))


def latex_text(text: str) -> str:
    r"""Escape text for LaTeX.

    >>> print(latex_text("R@1[IoU>=0.5] of my_run, 50 %"))
    R@1[IoU$\geq$0.5] of my\_run, 50 \%
    """
    return re.sub(r"<=|>=|[\\~^<>_%&#${}−∞±†–]", lambda match: LATEX[match[0]], plain_text(text))


def width(text: str) -> int:
    """Return the width of ``text`` in terminal columns: 0 for combining marks, 2 for wide East Asian characters.

    >>> width("0.41ᵃᵇ"), width("e\u0301"), width("東京")
    (6, 1, 4)
    """
    return sum(_columns(c) for c in text) if not text.isascii() else len(text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _sides(align: str, columns: int) -> str:
    return (align + align[-1:] * columns)[:columns]


def _pad(cell: str, to: int, side: str) -> str:
    room = to - width(cell)
    left = {"l": 0, "r": room, "c": room // 2}[side]
    return " " * left + cell + " " * (room - left)


def _text_cells(cells: Sequence[Cell]) -> list[str]:
    """Return the cells of a column; superscripts are padded to the same width, so that figures stay aligned."""
    room = max(len(superscript(c.raised)) for c in cells)
    return [c.text + superscript(c.raised).ljust(room) for c in cells]


def _markdown_cells(cells: Sequence[Cell]) -> list[str]:
    marks = [f"<sup>{c.raised}</sup>" if c.raised else "" for c in cells]
    return [(f"**{c.text}**" if c.bold else c.text) + mark for c, mark in zip(cells, marks, strict=True)]


def _latex_cells(cells: Sequence[Cell]) -> list[str]:
    marks = [f"$^{{{c.raised}}}$" if c.raised else "" for c in cells]
    return [(rf"\textbf{{{c.text}}}" if c.bold else c.text) + mark for c, mark in zip(cells, marks, strict=True)]


class TableStyle(NamedTuple):
    """A format's functions for laying out a table, escaping text, and writing the cells of a column."""

    layout: Callable[..., str]
    escape: Callable[[str], str]
    cells: Callable[[Sequence[Cell]], list[str]]


STYLES = {
    "text": TableStyle(text_table, plain_text, _text_cells),
    "markdown": TableStyle(markdown_table, markdown_text, _markdown_cells),
    "latex": TableStyle(latex_table, latex_text, _latex_cells),
    "html": TableStyle(lambda header, rows, align: html_table(header, rows), plain_text, _text_cells),
}


def safe_cell(text: str) -> str:
    """Return a text that no spreadsheet runs as a formula.

    >>> safe_cell("=HYPERLINK(1)"), safe_cell("- Who is there?"), safe_cell("kitchen.mp4"), safe_cell("-12.5")
    ("'=HYPERLINK(1)", "'- Who is there?", 'kitchen.mp4', '-12.5')
    """
    return "'" + text if _is_formula(text) else text


def plain_cell(cell: str) -> str:
    """Return the original text of a cell made by ``safe_cell``.

    >>> plain_cell("'=HYPERLINK(1)"), plain_cell("'tis"), plain_cell(safe_cell("'=x"))
    ('=HYPERLINK(1)', "'tis", "'=x")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def safe_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with all texts made safe; other values stay unchanged.

    >>> safe_row({"name": "@sum", "share": -0.5})
    {'name': "'@sum", 'share': -0.5}
    """
    return {key: safe_cell(value) if isinstance(value, str) else value for key, value in row.items()}


def _is_formula(text: str) -> bool:
    """Whether some spreadsheet may run a text, with or without the apostrophes in front of it."""
    return text.lstrip(" \0'")[:1] in FORMULA_CHARACTERS and not _NUMBER.fullmatch(text)


class Tabular:
    """Base class of results with rows; subclasses define ``to_columns``."""

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """Return the rows as lists or arrays of equal length, by column name."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """Return the rows as a ``pyarrow.Table``; NaN becomes null. Needs the package pyarrow."""
        arrow = optional_module("pyarrow", "parquet")
        arrays = {name: arrow.array(values, from_pandas=True) for name, values in self.to_columns().items()}
        return arrow.table(arrays)

    def to_pandas(self) -> Any:
        """Return the rows as a ``pandas.DataFrame``. Needs the package pandas."""
        try:
            import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise MomentseekError(
                "this needs the package pandas; install it with: pip install pandas (or use to_arrow())"
            ) from None
        return pandas.DataFrame(self.to_columns())

    def _repr_html_(self) -> str:
        columns = self.to_columns()
        rows = [
            list(map(_notebook_cell, row)) for row in islice(zip(*columns.values(), strict=True), MAX_NOTEBOOK_ROWS)
        ]
        size = len(next(iter(columns.values()), ()))
        note = f", the first {MAX_NOTEBOOK_ROWS} of {size:,} rows" if size > MAX_NOTEBOOK_ROWS else ""
        return html_table(list(columns), rows, caption=repr(self).strip("<>") + note)


def _notebook_cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return NO_VALUE if np.isnan(value) else f"{value:.4g}"
    return "" if value is None else str(value)
