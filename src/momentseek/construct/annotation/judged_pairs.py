"""PAIRS.csv: the judged pairs that a consensus or an exam results in, written and read."""

from __future__ import annotations

import os
from collections.abc import Iterable

from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document
from momentseek.formats.tables import rows_of
from momentseek.moments import MAX_RELEVANCE
from momentseek.spreadsheets import plain_cell, safe_cell

PAIRS_HEADER = "pair_id,relevance,annotators,labels"


def write_pairs(rows: Iterable[tuple[str, int, int, int]]) -> bytes:
    """The bytes of a file of judged pairs, ``(pair_id, relevance, annotators, labels)`` each.

    Annotators are different people; a pair has more labels than annotators if somebody judged it twice.

    >>> write_pairs([("7", 3, 1, 2)])
    b'pair_id,relevance,annotators,labels\\n7,3,1,2\\n'
    """
    lines = (
        f"{_cell(safe_cell(pair))},{relevance},{annotators},{labels}" for pair, relevance, annotators, labels in rows
    )
    return "\n".join([PAIRS_HEADER, *lines, ""]).encode()


def read_pairs(path: str | os.PathLike[str]) -> dict[str, int]:
    """Read the relevance level of every pair."""
    result: dict[str, int] = {}
    for line, row in rows_of(open_document(path), "pair_id", "relevance"):
        pair, level = plain_cell(row["pair_id"]), row["relevance"].strip()
        if level not in map(str, range(MAX_RELEVANCE + 1)):
            raise MomentseekError(
                f"{path}: line {line:,} gives pair {pair} the relevance {level!r}; levels are whole numbers from 0 "
                f"to {MAX_RELEVANCE}"
            )
        if pair in result:
            raise MomentseekError(
                f"{path}: line {line:,} judges pair {pair} again; give one level per pair (`momentseek data consensus` "
                "makes one of several labels)"
            )
        result[pair] = int(level)
    if not result:
        raise MomentseekError(f"{path}: there are no pairs in it")
    return result


def _cell(text: str) -> str:
    """A CSV cell, quoted only where it must be."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
