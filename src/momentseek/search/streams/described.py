"""What a model says of scenes: captions that hold the query's words.

A caption is a model's opinion of a picture, so it makes no moment more than fair, however many of the words it has, and
beside a picture that is fair it proves nothing new: both have looked at the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from momentseek.library.catalog import Catalog
from momentseek.library.descriptions import best_captions, count_captions
from momentseek.library.words import WordMatcher, content_words
from momentseek.search.hit import StreamHit
from momentseek.search.state import Ids
from momentseek.search.streams.timed_words import TimedMatch, word_hits
from momentseek.search.streams.word_weights import rarest_words, rarity

MAX_CAPTIONS = 400
"""Captions that are looked at."""


def search_described(
    catalog: Catalog, text: str, allowed: Ids | None = None, *, only_described: bool = False
) -> list[StreamHit]:
    """StreamHits with the words of a text in what a model says of a scene, best first.

    ``only_described`` says that the words were asked for in descriptions (``described:``).
    """
    terms = content_words(text)
    if not terms or not catalog.has_descriptions or not (total := count_captions(catalog)):
        return []
    counts = [count_captions(catalog, term) for term in terms]
    matches = best_captions(catalog, rarest_words(terms, counts), allowed, MAX_CAPTIONS)
    return judge_captions(matches, terms, rarity(counts, total), only_described)


def judge_captions(
    matches: Sequence[TimedMatch], terms: Sequence[str], weight: NDArray[np.float64], only_described: bool
) -> list[StreamHit]:
    """StreamHits of the captions that match some words best, best first; ``weight`` is what each term counts."""
    if not matches:
        return []
    values = WordMatcher([match.line.text for match in matches]).matches(terms).astype(np.float64)
    found = word_hits(matches, values, weight, only_here=only_described)
    return [replace(hit, level="fair") if hit.level == "strong" else hit for hit in found]
