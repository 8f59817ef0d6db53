"""Words as the full-text index sees them: safe match expressions, and which of a text's words matched.

The index stems and drops accents (SQLite FTS5, ``porter unicode61``). Which words matched is asked of a small index in
memory with the same rules, so that a word marked in the results is exactly a word that was found.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RULES = "porter unicode61 remove_diacritics 2"
_COMMON = (
    "a about all also an and any are as at be been but by can did do does for from had has have he her "
    "him his how i if in into is it its just like me my no not of on one or our out over she so some "
    "something someone than that the their them then there these they this those through to under up very "
    "was we were what when where which while who will with you your "
)
COMMON = frozenset(_COMMON.split())
"""English words that say little about a moment; they are looked for only where nothing else is."""
_MARK = "\x02", "\x03"
_SIGNS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
SIGN = re.compile(f"[{_SIGNS}]")
"""A letter of a script without spaces between words (Thai to Khmer, Japanese, Chinese): each is taken for a word."""
_END = "\x1e"
FEW = 40


def words(text: str) -> list[str]:
    """The words of a text in order, in lower case.

    >>> words("Don't panic: it's 5:30!")
    ['don', 't', 'panic', 'it', 's', '5', '30']
    """
    return [word.lower() for word in re.findall(r"[^\W_]+", text)]  # İ in lower case is two characters


def content(text: str) -> list[str]:
    """The words that carry meaning, each once, or all words if none does.

    >>> content("the dog and the other dog"), content("to be or not to be")
    (['dog', 'other'], ['to', 'be', 'or', 'not'])
    """
    each = list(dict.fromkeys(words(text)))
    return [word for word in each if word not in COMMON and len(word) > 1] or each


def any_of(terms: Sequence[str]) -> str:
    """A match expression for texts with any of the words; empty if there are none.

    >>> any_of(["dog", "NEAR"])
    '"dog" OR "NEAR"'
    """
    return " OR ".join(_safe(term) for term in terms)


def plain(texts: Sequence[str]) -> list[str]:
    """The words of each text without case, accents and punctuation, a space between two; all texts are read at once.

    >>> plain(["Où est-il?", "我的猫"])
    ['ou est il', '我 的 猫']
    """
    if not texts:
        return []
    whole = _END.join(text.replace(_END, " ") for text in texts)
    whole = whole.lower() if whole.isascii() else unicodedata.normalize("NFKD", whole).casefold()
    letters = set(whole) - {_END}
    signs = {c for c in letters if SIGN.match(c)}
    other: dict[str, str] = {
        c: "" if unicodedata.combining(c) else " " for c in letters - signs - {" "} if not c.isalnum()
    }
    if len(other) > FEW:
        whole = whole.translate({ord(c): instead for c, instead in other.items()})
    else:  # several times as fast
        for c, instead in other.items():
            whole = whole.replace(c, instead)
    if signs:
        whole = SIGN.sub(r" \g<0> ", whole)
    while "  " in whole:
        whole = whole.replace("  ", " ")
    return [text.strip() for text in whole.split(_END)]


def _safe(term: str) -> str:
    return '"' + term.replace('"', '""').replace("\0", " ") + '"'


class Matcher:
    """Some texts in an index of their own.

    >>> matcher = Matcher(["Dogs were running.", "No cats here"])
    >>> matcher.found(["run", "dog", "cat"]).tolist()
    [[True, True, False], [False, False, True]]
    >>> matcher.marked(["run", "cat"], "[", "]")
    ['Dogs were [running].', 'No [cats] here']
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._db = sqlite3.connect(":memory:", isolation_level=None)
        self._db.execute(f"CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='{RULES}')")
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(map(_storable, self.texts)))
        self._db.execute("COMMIT")

    def found(self, terms: Sequence[str]) -> NDArray[np.bool_]:
        """``(texts, terms)``: which text has which word."""
        out = np.zeros((len(self.texts), len(terms)), bool)
        for column, term in enumerate(terms):
            rows = self._db.execute("SELECT rowid FROM t WHERE t MATCH ?", (_safe(term),))
            out[[row[0] for row in rows], column] = True
        return out

    def marked(self, terms: Sequence[str], before: str, after: str) -> list[str]:
        """The texts with ``before`` and ``after`` around every word found."""
        out = list(self.texts)
        if terms:
            sql = f"SELECT rowid, highlight(t, 0, '{_MARK[0]}', '{_MARK[1]}') FROM t WHERE t MATCH ?"
            for row, text in self._db.execute(sql, (any_of(terms),)):
                out[row] = text.replace(_MARK[0], before).replace(_MARK[1], after)
        return out


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
