"""Misspelt names: a rare capitalised word one or two slips away from a frequent name."""

from __future__ import annotations

from collections.abc import Mapping

from momentseek.construct.imprecise.evidence import WordEvidence
from momentseek.construct.imprecise.first_names import FIRST_NAMES


def edit_distance(a: str, b: str) -> int:
    """Letters changed, dropped, added or swapped with their neighbour on the way from one word to another.

    >>> edit_distance("pheobe", "phoebe"), edit_distance("espostio", "esposito"), edit_distance("rachel", "ross")
    (1, 1, 5)
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]


def correct_spelling(word: str, evidence: WordEvidence, frequent: Mapping[str, int]) -> str:
    """The frequent name of which a rare word is a misspelling (or a possessive without its apostrophe), if any.

    >>> correct_spelling("pheobe", WordEvidence(inside=10), {"phoebe": 800, "ross": 1100})
    'phoebe'
    >>> correct_spelling("monicas", WordEvidence(inside=1), {"monica": 1000})
    'monica'
    """
    if word in frequent or evidence.lower > 1 or len(word) < 4:
        return ""
    best, least = "", 3
    for name, count in frequent.items():
        if name[0] != word[0] or count < 10 * evidence.capital or abs(len(name) - len(word)) > 2:
            continue
        if word == f"{name}s":
            return name
        allowed = 0 if word in FIRST_NAMES else 1 if len(name) < 7 else 2
        if len(name) >= 4 and (n := edit_distance(word, name)) <= allowed and n < least:
            best, least = name, n
    return best
