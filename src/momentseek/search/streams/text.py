"""What is written in the picture: lines that hold the query's words, as they are or with one letter wrong.

Lines that stand in the picture at the same time are read together: a slide's title and its points, the two rows of a
sign. A word with one letter wrong counts less, and only where words on screen were asked for (``text:``). Plain words
are mostly about the picture, so they must be spelt right and most of them be there: "beach" must not find "peach".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.readings import best_lines, count_lines, near_spellings
from momentseek.library.words import WordMatcher, content_words, plain_words
from momentseek.search.hit import StreamHit
from momentseek.search.state import Ids
from momentseek.search.streams.timed_words import TimedMatch, word_hits
from momentseek.search.streams.word_weights import rarest_words, rarity

MAX_LINES = 400
"""Lines that are looked at."""
MISSPELT = 0.7
"""What a word counts that was read with one letter wrong."""


def search_text(catalog: Catalog, text: str, allowed: Ids | None = None, *, only_text: bool = False) -> list[StreamHit]:
    """StreamHits with the words of a text written in the picture, best first.

    ``only_text`` says that the words were asked for as writing (``text:``); else they may also be about the picture.
    """
    terms = content_words(text)
    if not terms or not catalog.has_readings or not (total := count_lines(catalog)):
        return []
    counts = [count_lines(catalog, term) for term in terms]
    other = {term: near_spellings(catalog, term) if only_text else [] for term in terms}
    matches = best_lines(catalog, rarest_words(terms, counts), allowed, MAX_LINES)
    misspelt = best_lines(catalog, all_spellings(other), allowed, MAX_LINES, spelt=True)
    known = {match.id for match in matches}
    matches += [match for match in misspelt if match.id not in known]
    return judge_lines(matches, terms, other, rarity(counts, total), only_text)


def all_spellings(other: Mapping[str, Sequence[str]]) -> list[str]:
    """The other spellings of all words, each once."""
    return list(dict.fromkeys(spelling for some in other.values() for spelling in some))


def judge_lines(
    matches: Sequence[TimedMatch],
    terms: Sequence[str],
    other: Mapping[str, Sequence[str]],
    weight: NDArray[np.float64],
    only_text: bool,
) -> list[StreamHit]:
    """StreamHits of the lines that match some words best, best first.

    ``other`` are spellings of each term with one letter wrong, ``weight`` is what each counts.
    """
    if not matches:
        return []
    return word_hits(matches, _word_values(matches, terms, other), weight, only_here=only_text)


def _word_values(
    matches: Sequence[TimedMatch], terms: Sequence[str], other: Mapping[str, Sequence[str]]
) -> NDArray[np.float64]:
    """``(lines, terms)``: 1 where a line has a term, less where it has it with a wrong letter, else 0."""
    texts = [match.line.text for match in matches]
    values = WordMatcher(texts).matches(terms).astype(np.float64)
    held = [set(text.split()) for text in plain_words(texts)]
    for column, term in enumerate(terms):
        spellings = set(other[term])
        for row, words in enumerate(held):
            if spellings & words:
                values[row, column] = max(values[row, column], MISSPELT)
    return values
