"""Tables as text, Markdown, LaTeX, HTML and CSV, and results with rows (pandas, Arrow, notebooks).

Spreadsheets run a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and names, captions and queries
come from anywhere. In CSV such a text gets an apostrophe in front, which spreadsheets take as "this is text".
Numbers stay numbers, and what reads such a file again takes the apostrophe away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError, optional_module

GAP = "  "
NO_VALUE = "–"
"""What stands in a cell without a value."""
SUPERSCRIPTS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
"""Unicode's raised letters; fonts have no q."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "lr") -> str:
    """Columns set side by side, two spaces apart, without trailing spaces.

    ``align`` has one letter per column, ``l``, ``r`` or ``c``; its last letter serves all further columns.

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
    """A GitHub table. Cells are Markdown already: put other text through ``markdown_text`` first.

    >>> print(markdown_table(["run", "mIoU"], [["ours", "**0.41**<sup>b</sup>"]]))
    | run | mIoU |
    |:---|---:|
    | ours | **0.41**<sup>b</sup> |
    """
    rules = {"l": ":---", "r": "---:", "c": ":---:"}
    lines = ["| " + " | ".join(line) + " |" for line in (header, *rows)]
    return "\n".join([lines[0], "|" + "|".join(rules[s] for s in _sides(align, len(header))) + "|", *lines[1:]])


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "lr") -> str:
    r"""A ``tabular`` in booktabs style. Cells are LaTeX already: put other text through ``latex_text`` first.

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
    """An HTML table for notebooks; cells are plain text.

    >>> print(html_table(["run"], [["<ours>"]]))
    <table><thead><tr><th>run</th></tr></thead><tbody><tr><td>&lt;ours&gt;</td></tr></tbody></table>
    """
    from html import escape

    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def superscript(letters: str) -> str:
    """Raised letters, with ``^`` before one that has no raised form.

    >>> superscript("abq")
    'ᵃᵇ^q'
    """
    return "".join(SUPERSCRIPTS.get(letter, "^" + letter) for letter in letters)


def markdown_text(text: str) -> str:
    r"""Text in which Markdown sees no markup.

    >>> print(markdown_text("my_run|*final*"))
    my\_run\|\*final\*
    """
    return re.sub(r"([\\`*_|<])", r"\\\1", " ".join(text.split()))


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
    **{c: "\\" + c for c in "_%&#${}"},
}


def latex_text(text: str) -> str:
    r"""Text as LaTeX prints it.

    >>> print(latex_text("R@1[IoU>=0.5] of my_run, 50 %"))
    R@1[IoU$\geq$0.5] of my\_run, 50 \%
    """
    return re.sub(r"<=|>=|[\\~^<>_%&#${}−∞]", lambda match: LATEX[match[0]], " ".join(text.split()))


def _sides(align: str, columns: int) -> str:
    return (align + align[-1:] * columns)[:columns]


def count(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "query", "queries"), count(2000, "pair")
    ('1 query', '2,000 pairs')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def width(text: str) -> int:
    """Terminal columns that ``text`` takes: 0 for combining marks, 2 for wide East Asian characters.

    >>> width("0.41ᵃᵇ"), width("e\u0301"), width("東京")
    (6, 1, 4)
    """
    return sum(_columns(c) for c in text) if not text.isascii() else len(text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pad(cell: str, to: int, side: str) -> str:
    room = to - width(cell)
    left = {"l": 0, "r": room, "c": room // 2}[side]
    return " " * left + cell + " " * (room - left)


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


FORMULA_CHARACTERS = frozenset("=+-@\t\r\n|%＝＋－＠")
"""First characters that make a formula, in some spreadsheet; the last ones are their full-width forms."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def safe_cell(text: str) -> str:
    """Make a text that no spreadsheet runs as a formula.

    >>> safe_cell("=HYPERLINK(1)"), safe_cell("- Who is there?"), safe_cell("kitchen.mp4"), safe_cell("-12.5")
    ("'=HYPERLINK(1)", "'- Who is there?", 'kitchen.mp4', '-12.5')
    """
    return "'" + text if _is_formula(text) else text


def plain_cell(cell: str) -> str:
    """The text that ``safe_cell`` made a cell of.

    >>> plain_cell("'=HYPERLINK(1)"), plain_cell("'tis"), plain_cell(safe_cell("'=x"))
    ('=HYPERLINK(1)', "'tis", "'=x")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def safe_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with all its texts made safe; other values stay as they are.

    >>> safe_row({"name": "@sum", "share": -0.5})
    {'name': "'@sum", 'share': -0.5}
    """
    return {key: safe_cell(value) if isinstance(value, str) else value for key, value in row.items()}


def _is_formula(text: str) -> bool:
    """Whether some spreadsheet may run a text, with or without the apostrophes in front of it."""
    return text.lstrip(" \0'")[:1] in FORMULA_CHARACTERS and not _NUMBER.fullmatch(text)
