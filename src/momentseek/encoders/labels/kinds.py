"""Which labels are of a kind: 118 labels are dogs, 398 animals, by WordNet's tree of nouns.

``kinds.tsv`` is derived from WordNet 3.0 (Princeton University; see ``WORDNET-LICENSE.txt``): each line has numbers of
ImageNet's labels and the nouns for which they stand, a noun by the first of its three commonest senses that has labels
at or below it; besides, labels go by the last word of their own names. Words that mean people are left out, since the
three labels below them (a ballplayer, a bridegroom, a diver) are no sign of people.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

KINDS_FILE = Path(__file__).with_name("kinds.tsv")
PLURALS = (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("ves", "f"), ("s", ""))
"""Endings of plurals and what the singular has instead."""


def named_kinds(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The nouns of a text that stand for labels, two words before one, each with the numbers of its labels.

    >>> [(noun, len(labels)) for noun, labels in named_kinds("Two dogs beside a teddy bear")]
    [('dogs', 118), ('teddy bear', 1)]
    """
    words = re.findall(r"[^\W\d_]+", text.lower())
    found: list[tuple[str, tuple[int, ...]]] = []
    at = 0
    while at < len(words):
        for size in (2, 1):
            labels = _labels_of(words[at : at + size]) if at + size <= len(words) else ()
            if labels:
                found.append((" ".join(words[at : at + size]), labels))
                break
        at += size
    return found


def _labels_of(words: list[str]) -> tuple[int, ...]:
    *before, last = words
    forms = [last] + [last.removesuffix(end) + new for end, new in PLURALS if last.endswith(end) and len(last) > 3]
    table = _kinds()
    return next((_numbers(labels) for form in forms if (labels := table.get("_".join([*before, form])))), ())


@cache
def _kinds() -> dict[str, str]:
    """Each noun's labels, as the file writes them: a query names few nouns, and waits for the whole table."""
    table: dict[str, str] = {}
    for line in KINDS_FILE.read_text("utf-8").splitlines():
        numbers, nouns = line.split("\t")
        table.update(dict.fromkeys(nouns.split(), numbers))
    return table


def _numbers(ranges: str) -> tuple[int, ...]:
    """The numbers that a list of ranges names.

    >>> _numbers("0-2,7")
    (0, 1, 2, 7)
    """
    ends = (part.partition("-") for part in ranges.split(","))
    return tuple(number for first, _, last in ends for number in range(int(first), int(last or first) + 1))
