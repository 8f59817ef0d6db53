"""A finished table as text: for the terminal, Markdown, LaTeX, HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence

from momentseek.reproduction.result import ResultRow, TableCell, TableResult
from momentseek.tables import NO_VALUE, html_table, latex_table, latex_text, markdown_table, markdown_text, text_table

PAGE_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}"
)


def text_document(result: TableResult) -> str:
    """The caption, and the table in columns for a terminal."""
    header, rows = _cells(result)
    return f"{result.caption}\n\n{text_table(header, rows)}\n"


def markdown_document(result: TableResult) -> str:
    """The caption, and a GitHub table."""
    header, rows = _cells(result)
    table = markdown_table(_all(markdown_text, header), [_all(markdown_text, row) for row in rows])
    return f"{markdown_text(result.caption)}\n\n{table}\n"


def latex_document(result: TableResult) -> str:
    """A ``table`` environment in booktabs style, with its caption."""
    header, rows = _cells(result)
    table = latex_table(_all(_latex, header), [_all(_latex, row) for row in rows])
    return (
        "\\begin{table}\n\\centering\n\\small\n"
        f"{table}\n\\caption{{{_latex(result.caption)}}}\n\\label{{tab:{result.table.name}}}\n\\end{{table}}\n"
    )


def html_document(result: TableResult, pictures: Sequence[str] = ()) -> str:
    """A page with the table and, below it, its figures as SVG."""
    header, rows = _cells(result)
    drawn = "\n".join(f"<figure>{picture}</figure>" for picture in pictures)
    title = html.escape(result.table.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{PAGE_STYLE}</style></head><body><h1>{title}</h1><p>{html.escape(result.caption)}</p>\n"
        f"{html_table(header, rows)}\n{drawn}\n"
        "</body></html>\n"
    )


def _cells(result: TableResult) -> tuple[list[str], list[list[str]]]:
    """The table's header and rows: each column twice, the paper's figure and ours, where the paper prints any."""
    printed = [any(row.cells[i].paper is not None for row in result.rows) for i in range(len(result.columns))]
    header = [""]
    for column, both in zip(result.columns, printed, strict=True):
        header += [f"{column}, paper", f"{column}, ours"] if both else [f"{column}, ours"]
    header += [f"{result.columns[0]}, 95 % over queries"]
    trained = any(row.best_steps for row in result.rows)
    header += ["best after, of steps"] if trained else []
    rows = []
    for row in result.rows:
        line = [row.label]
        for cell, both in zip(row.cells, printed, strict=True):
            line += [_paper(cell, result), _ours(cell, result)] if both else [_ours(cell, result)]
        line.append(_interval(row.cells[0], result))
        rows.append(line + ([_steps(row)] if trained else []))
    return header, rows


def _paper(cell: TableCell, result: TableResult) -> str:
    if cell.paper is None:
        return NO_VALUE
    return f"{cell.paper:.2f}" if result.table.percent else f"{cell.paper:.4f}"


def _ours(cell: TableCell, result: TableResult) -> str:
    if math.isnan(cell.ours.mean):
        return NO_VALUE
    digits = 1 if result.table.percent else 3
    sd = f" ± {cell.ours.sd:.{digits}f}" if cell.ours.count > 1 else ""
    return f"{cell.ours.mean:.{digits}f}{sd}"


def _interval(cell: TableCell, result: TableResult) -> str:
    if math.isnan(cell.low):
        return NO_VALUE
    digits = 1 if result.table.percent else 3
    return f"{cell.low:.{digits}f} to {cell.high:.{digits}f}"


def _steps(row: ResultRow) -> str:
    if not row.best_steps:
        return NO_VALUE
    return f"{', '.join(f'{step:,}' for step in row.best_steps)} of {row.steps:,}"


def _latex(text: str) -> str:
    return latex_text(text).replace("±", r"$\pm$").replace("†", r"$\dagger$").replace(NO_VALUE, "--")


def _all(change: Callable[[str], str], cells: Sequence[str]) -> list[str]:
    return [change(cell) for cell in cells]
