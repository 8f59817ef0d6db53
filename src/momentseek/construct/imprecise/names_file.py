"""A list of names on disk: ``name[,gender[,score]]`` per line, written after learning and read from the user."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from momentseek.construct.imprecise.gazetteer import LIKELY_NAME_SCORE, Gazetteer
from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document

GENDER_SPELLINGS = {
    "": "",
    **dict.fromkeys(("f", "female", "woman", "w"), "female"),
    **dict.fromkeys(("m", "male", "man"), "male"),
    **dict.fromkeys(("n", "neutral", "person", "either"), "neutral"),
    "word": "word",
}


def read_names(path: str | Path) -> list[tuple[str, str]]:
    """Names and genders (``female``, ``male``, ``neutral``; ``word`` for what is no name; nothing: to be found out)."""
    names = []
    for number, row in enumerate(csv.reader(io.StringIO(open_document(path).text)), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        gender = cells[1].lower() if len(cells) > 1 else ""
        if not cells[0] or gender not in GENDER_SPELLINGS:
            raise MomentseekError(
                f"{path}: line {number:,} is {','.join(row)[:60]!r}; expected name,gender with female, male, neutral "
                "or word"
            )
        names += [(part, GENDER_SPELLINGS[gender]) for part in cells[0].split()]
    return names


def write_names(gazetteer: Gazetteer) -> bytes:
    """The names of a gazetteer, the most frequent first.

    >>> write_names(Gazetteer({}).with_names([("Ross", "male")])).decode()
    'Ross,male,1.00\\n'
    """
    names = sorted(gazetteer.names.values(), key=lambda n: (-n.count, n.name))
    return "".join(f"{n.name},{n.gender},{n.score:.2f}\n" for n in names if n.score >= LIKELY_NAME_SCORE).encode()
