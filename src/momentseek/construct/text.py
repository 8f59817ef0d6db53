"""Words of a query: the same cut for counting, comparing and checking.

Papers count differently. A word here is a run of letters and digits, apostrophes inside it included (``Rachel's``,
``don't``); TVR's Table 1 counts punctuation marks as well, which ``tokens`` does: it gives that table's averages for
Charades-STA (7.2) and DiDeMo (8.0).
"""

from __future__ import annotations

import re

WORD_PATTERN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
TOKEN_PATTERN = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Lower-case words in order.

    >>> words("Rachel's dog doesn't bark, twice.")
    ["rachel's", 'dog', "doesn't", 'bark', 'twice']
    """
    return WORD_PATTERN.findall(text.lower().replace("’", "'"))


def tokens(text: str) -> list[str]:
    """Lower-case words and punctuation marks, as TVR's Table 1 counts them.

    >>> tokens("She sits, he stands.")
    ['she', 'sits', ',', 'he', 'stands', '.']
    """
    return TOKEN_PATTERN.findall(text.lower())


def normalise(text: str) -> str:
    """The words alone, one blank between two: equal for texts that differ in case, punctuation and spacing.

    >>> normalise("  Sit   DOWN! ")
    'sit down'
    """
    return " ".join(words(text))
