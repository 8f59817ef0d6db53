"""Words as the catalog's full-text index sees them: safe match expressions, and which words of a text matched.

The index stems words and drops accents (SQLite FTS5, ``porter unicode61``). Which words of a text matched is found with
a small index in memory that follows the same rules, so that a word marked in the results is a word that was found.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from momentseek.library.spelling import join_numbers, sign_of, spellings, write_out_signs

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""FTS5's tokenizer, the same for all indices of the catalog."""
SPELLING_TOKENIZER = TOKENIZER.removeprefix("porter ")
"""The same without stemming, for words that may be misspelt."""
_COMMON = (
    "a about all also an and any are as at be been but by can did do does for from had has have he her "
    "him his how i if in into is it its just like me my no not of on one or our out over she so some "
    "something someone than that the their them then there these they this those through to under up very "
    "was we were what when where which while who will with you your "
)
COMMON_WORDS = frozenset(_COMMON.split())
"""English words that say little about a moment; they are only sought if a text has no others."""
MAX_SPARE_INDICES = 16
"""Largest number of spare indices for matchers."""
_MARK = "\x02", "\x03"
_SIGNS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED_LETTER = re.compile(f"[{_SIGNS}]")
"""A letter of a script without spaces between words (Thai to Khmer, Japanese, Chinese): each counts as a word."""
_TEXT_END = "\x1e"


def has_full_text_search() -> bool:
    """Whether this Python's SQLite has FTS5, which libraries need."""
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("CREATE VIRTUAL TABLE t USING fts5 (text)")
        except sqlite3.OperationalError:
            return False
        return True


def words(text: str) -> list[str]:
    """The words of a text in order, in lower case.

    >>> words("Don't panic: it's 5:30!")
    ['don', 't', 'panic', 'it', 's', '5', '30']
    """
    return [word.lower() for word in re.findall(r"[^\W_]+", text)]  # İ in lower case is two characters


def content_words(text: str) -> list[str]:
    """The meaningful words of a text, each once; all its words if none is meaningful.

    Numbers of two words are one, and signs such as % are words.

    >>> content_words("the dog and the other dog"), content_words("to be or not to be")
    (['dog', 'other'], ['to', 'be', 'or', 'not'])
    >>> content_words("twenty-one dogs, 5%")
    ['21', 'dogs', '5', 'percent']
    """
    each = list(dict.fromkeys(join_numbers(words(write_out_signs(text)))))
    return [word for word in each if word not in COMMON_WORDS and (len(word) > 1 or word.isdecimal())] or each


def match_any(terms: Sequence[str]) -> str:
    """An FTS5 expression that matches texts with any of the terms, however written; empty if there are no terms.

    >>> match_any(["dog", "NEAR", "two"])
    '"dog" OR "NEAR" OR "two" OR "2"'
    """
    return " OR ".join(_quote(form) for term in terms for form in spellings(term))


def match_form(form: str) -> str:
    """An FTS5 expression that matches texts with a word, or words in a row, written in just this way."""
    return _quote(form)


def is_one_letter_off(word: str, other: str) -> bool:
    """Whether two words differ by one replaced, missing or additional letter, or by two swapped neighbours.

    >>> [is_one_letter_off("station", other) for other in ("stat1on", "staton", "statioon", "sattion", "stations")]
    [True, True, True, True, True]
    >>> is_one_letter_off("station", "station"), is_one_letter_off("station", "stallion")
    (False, False)
    """
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    shorter = min(len(word), len(other))
    same = next((i for i in range(shorter) if word[i] != other[i]), shorter)
    if len(word) == len(other):
        swapped = word[same : same + 2] == other[same : same + 2][::-1] and word[same + 2 :] == other[same + 2 :]
        return swapped or word[same + 1 :] == other[same + 1 :]
    longer, short = (word, other) if len(word) > len(other) else (other, word)
    return longer[same + 1 :] == short[same:]


def plain_words(texts: Sequence[str]) -> list[str]:
    """Each text reduced to its words: without case, accents and punctuation, one space between two words.

    >>> plain_words(["Où est-il?", "我的猫"])
    ['ou est il', '我 的 猫']
    """
    if not texts:
        return []
    whole = _TEXT_END.join(text.replace(_TEXT_END, " ") for text in texts)
    whole = whole.lower() if whole.isascii() else unicodedata.normalize("NFKD", whole).casefold()
    letters = set(whole) - {_TEXT_END}
    signs = {c for c in letters if UNSPACED_LETTER.match(c)}
    other: dict[str, str | int | None] = {
        c: "" if unicodedata.combining(c) else " " for c in letters - signs - {" "} if not c.isalnum()
    }
    whole = whole.translate(str.maketrans(other))
    if signs:
        whole = UNSPACED_LETTER.sub(r" \g<0> ", whole)
    while "  " in whole:
        whole = whole.replace("  ", " ")
    return [text.strip() for text in whole.split(_TEXT_END)]


def _quote(term: str) -> str:
    return '"' + term.replace('"', '""').replace("\0", " ") + '"'


class WordMatcher:
    """Finds which words match in each of some texts, by the same word index as a library's.

    >>> matcher = WordMatcher(["Dogs were running.", "No cats here"])
    >>> matcher.matches(["run", "dog", "cat"]).tolist()
    [[True, True, False], [False, False, True]]
    >>> matcher.mark(["run", "cat"], "[", "]")
    ['Dogs were [running].', 'No [cats] here']
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._db = _take_index()
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(map(_storable, self.texts)))

    def __del__(self) -> None:
        if len(_SPARE_INDICES) < MAX_SPARE_INDICES:
            self._db.execute("ROLLBACK")
            _SPARE_INDICES.append(self._db)
        else:
            self._db.close()

    def matches(self, terms: Sequence[str]) -> NDArray[np.bool_]:
        """``(texts, terms)``: whether a text has a term, in any of its forms."""
        out = np.zeros((len(self.texts), len(terms)), bool)
        for column, term in enumerate(terms):
            rows = self._db.execute("SELECT rowid FROM t WHERE t MATCH ?", (match_any([term]),))
            out[[row[0] for row in rows], column] = True
            if (sign := sign_of(term)) is not None:
                out[:, column] |= np.array([sign in text for text in self.texts], bool)
        return out

    def mark(self, terms: Sequence[str], before: str, after: str) -> list[str]:
        """The texts with ``before`` and ``after`` around every word that matches one of the terms."""
        out = list(self.texts)
        if terms:
            sql = f"SELECT rowid, highlight(t, 0, '{_MARK[0]}', '{_MARK[1]}') FROM t WHERE t MATCH ?"
            for row, text in self._db.execute(sql, (match_any(terms),)):
                out[row] = text.replace(_MARK[0], before).replace(_MARK[1], after)
        for sign in filter(None, map(sign_of, terms)):
            out = [text.replace(sign, f"{before}{sign}{after}") for text in out]
        return out


_SPARE_INDICES: list[sqlite3.Connection] = []
"""Spare empty indices in memory, because creating one takes thirty times as long as filling it."""


def _take_index() -> sqlite3.Connection:
    with suppress(IndexError):
        return _SPARE_INDICES.pop()
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.execute(f"CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='{TOKENIZER}')")
    database.execute("CREATE VIRTUAL TABLE places USING fts5vocab (t, instance)")
    return database


@lru_cache(8192)
def index_tokens(text: str) -> tuple[str, ...]:
    """The words of a text in order, as the catalog's indices store them.

    >>> index_tokens("Running dogs"), index_tokens("...")
    (('run', 'dog'), ())
    """
    matcher = WordMatcher([text])
    return tuple(term for (term,) in matcher._db.execute("SELECT term FROM places ORDER BY offset"))


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
