"""Words of queries: stop words, word forms, English or not, and spelling.

``english.txt.xz`` has the single words of WordNet 3.0 (Princeton University; see ``WORDNET-LICENSE.txt``), with names
capitalised; ``tools/fit_clip_text.py`` writes it.
"""

from __future__ import annotations

import lzma
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path

ENGLISH_FILE = Path(__file__).with_name("english.txt.xz")
_STOP = (
    "a about all also an and any are as at be been being but by can clip could did do does doing for footage from had "
    "has have having he her hers him his how i if image in into is it its just like me moment my of off on onto or our "
    "out over own photo picture scene see seen she show showing shows shot so some somebody someone something than "
    "that the their them then there these they this those through to together under up very video was we were what "
    "when where which while who whose will with you your"
)
STOP_WORDS = frozenset(_STOP.split())
"""Words without meaning for a picture."""
IRREGULAR = {
    "calves": "calf", "children": "child", "feet": "foot", "geese": "goose", "knives": "knife", "leaves": "leaf",
    "men": "man", "mice": "mouse", "people": "person", "teeth": "tooth", "wolves": "wolf", "women": "woman",
}  # fmt: skip
_FOREIGN = (
    "aan auf aus aux avec bei che dei della dem der des du een ein eine einem einen einer est et gli het ist kein "
    "keine les mit nach naar não nel och por qui sur uma un una und une unter von vor zu zum zur über"
)
FOREIGN_WORDS = frozenset(_FOREIGN.split())
"""Function words of other European languages, which do not occur in English queries."""
_AMBIGUOUS = "am au con das del den di die dos el em en il im la las le los os um y"
AMBIGUOUS_WORDS = frozenset(_AMBIGUOUS.split())
"""Function words of other languages that are also English words, or begin names."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIN_LIKENESS = 0.8
"""Minimum similarity of two spellings for a suggestion."""
MIN_MISSPELT = 4
"""Shorter words are only corrected by swapping two letters."""


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    >>> split_words("A T-shirt, the dog's!")
    ['a', 't', 'shirt', 'the', 'dog']
    """
    return [word.split("'")[0] for word in re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'"))]


@lru_cache(8192)  # queries share most of their words
def word_forms(word: str) -> tuple[str, ...]:
    """Return a word, its form without accents, and its possible base forms, the most likely first.

    Of a name, only the last word changes.

    >>> word_forms("teddy bears")
    ('teddy bears', 'teddy bear')
    >>> word_forms("running")
    ('running', 'runnings', 'runn', 'runne', 'run')
    """
    stem = word[: word.rfind(" ") + 1]
    last = word.removeprefix(stem)
    plain = unicodedata.normalize("NFKD", last).encode("ascii", "ignore").decode()
    found = [last, plain] if last[:1].isascii() else [last]
    if last in IRREGULAR:
        found.append(IRREGULAR[last])
    found += [last[:-3] + "y"] if last.endswith("ies") else []
    found += [last[:-2]] if last.endswith(("ches", "shes", "sses", "xes", "oes", "zes")) else []
    found.append(last[:-1] if last.endswith("s") and len(last) > 3 else last + "s")
    for ending in ("ing", "ed"):
        short = last.removesuffix(ending)
        if short != last and len(short) > 2:
            found += [short, short + "e"] + ([short[:-1]] if short[-1] == short[-2] else [])
    return tuple(stem + form for form in dict.fromkeys(found))


@cache
def english_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the English words and the names, all in lower case."""
    lines = lzma.decompress(ENGLISH_FILE.read_bytes()).decode("ascii").splitlines()
    return (
        frozenset(line for line in lines if line.islower()),
        frozenset(line.lower() for line in lines if not line.islower()),
    )


@lru_cache(8192)
def is_english(word: str, *, names: bool = True) -> bool:
    """Whether a word or one of its forms is in the list of English words, or is a name in it.

    >>> is_english("parachutes"), is_english("Hund"), is_english("eiffel"), is_english("eiffel", names=False)
    (True, False, True, False)
    """
    words, known_names = english_words()
    return any(form in words or (names and form in known_names) for form in word_forms(word.lower()))


def is_foreign(words: Sequence[str], known: Collection[str] = ()) -> bool:
    """Whether a query is in another language, by its function words and by words that are not English.

    >>> [is_foreign(split_words(text)) for text in ("un perro", "ein Baum", "die Katze", "el capitan climbing")]
    [True, True, True, False]
    """
    little = {word for word in words if word in FOREIGN_WORDS}
    others = [word for word in words if not word_is_little(word)]
    strange = [word for word in others if word not in known and not is_english(word, names=False)]
    if little:
        return bool(strange) or len(little) > 1
    return not AMBIGUOUS_WORDS.isdisjoint(words) and bool(strange) and len(strange) == len(others)


def word_is_little(word: str) -> bool:
    """Whether a word is a function word, English or not."""
    return word in STOP_WORDS or word in FOREIGN_WORDS or word in AMBIGUOUS_WORDS or word in LETTERS


def nearest_spelling(word: str, known: Collection[str]) -> str:
    """Return the known word with the most similar spelling, or an empty text if none is near.

    >>> [nearest_spelling(word, {"dog", "dot", "giraffe"}) for word in ("dgo", "girafe", "doq", "elefant")]
    ['dog', 'giraffe', '', '']
    """
    word = word.lower()
    close = [other for other in one_letter_off(word) if other in known]
    if swapped := [other for other in close if sorted(other) == sorted(word)]:
        return swapped[0]
    if len(word) < MIN_MISSPELT:
        return ""
    near = close or [other for other in known if abs(len(other) - len(word)) <= 2]
    near = [other for other in near if other[:1] == word[:1]]
    best = max(near, key=lambda other: SequenceMatcher(None, word, other).ratio(), default="")
    return best if best and SequenceMatcher(None, word, best).ratio() >= MIN_LIKENESS else ""


def one_letter_off(word: str) -> Iterator[str]:
    """Yield all spellings with one letter of a word deleted, swapped with its neighbour, replaced or inserted."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        found = [head + tail[1:], head + tail[1:2] + tail[:1] + tail[2:]] if tail else []
        found += [head + letter + rest for letter in LETTERS for rest in (tail, tail[1:])]
        yield from (other for other in found if other != word)
