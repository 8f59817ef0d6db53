"""How much each word of a query counts among what is said or written, and how sure that makes a moment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from momentseek.search.hit import Level

MAX_WORDS = 24
"""Words of a text that are looked for."""
FAIR_SHARE = 0.6
"""Share of the words' weight from which a moment is a fair hit."""


def word_level(share: float, found: int, only_here: bool) -> Level:
    """How sure a moment is that has a share of the words' weight, and so many of them.

    ``only_here`` says that the words were asked for as speech (``said:``), or as writing (``text:``); else they may
    also be about the picture, and one word alone is no proof.
    """
    if share > 0.999:
        return "strong" if only_here or found > 1 else "fair"
    return "fair" if share >= FAIR_SHARE else "weak"


def rarity(counts: Sequence[int], total: int) -> NDArray[np.float64]:
    """BM25's weight of each word; a word that is nowhere counts as if it were in one text."""
    return np.array([math.log1p((total - n + 0.5) / (n + 0.5)) for n in (max(1, n) for n in counts)]) + 1e-9


def rarest_words(terms: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The rarest words of a text that are anywhere, ``MAX_WORDS`` at most, so that any search is quick.

    >>> rarest_words(["the", "unicorn", "dog"], [90, 0, 3])
    ['dog', 'the']
    """
    return [terms[i] for i in sorted(range(len(terms)), key=lambda i: (counts[i], i)) if counts[i]][:MAX_WORDS]
