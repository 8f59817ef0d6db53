"""Words of a query, split in the same way for counting, comparing and checking.

Papers count differently. A word here is a run of letters and digits, apostrophes inside it included (``Rachel's``,
``don't``); TVR's Table 1 counts punctuation marks as well, which ``tokens`` does: it gives that table's averages for
Charades-STA (7.2) and DiDeMo (8.0).
"""

from __future__ import annotations

import re

WORD_PATTERN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
TOKEN_PATTERN = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """The words of a text in lower case, in order.

    >>> words("Rachel's dog doesn't bark, twice.")
    ["rachel's", 'dog', "doesn't", 'bark', 'twice']
    """
    return WORD_PATTERN.findall(text.lower().replace("’", "'"))


def tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text in lower case, as TVR's Table 1 counts them.

    >>> tokens("She sits, he stands.")
    ['she', 'sits', ',', 'he', 'stands', '.']
    """
    return TOKEN_PATTERN.findall(text.lower())


def normalise(text: str) -> str:
    """Reduce a text to its words, so that texts are equal that differ only in case, punctuation and spacing.

    >>> normalise("  Sit   DOWN! ")
    'sit down'
    """
    return " ".join(words(text))
