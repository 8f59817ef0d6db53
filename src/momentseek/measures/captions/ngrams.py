"""Runs of words, counted in many sentences at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.moments.arrays import IntArray


@dataclass(frozen=True, eq=False)
class Ngrams:
    """``count[r]`` times the n-gram ``gram[r]`` stands in ``sentence[r]``; a sentence's in order of appearance."""

    sentence: IntArray
    gram: IntArray
    count: IntArray
    kinds: int
    """Number of different n-grams; ``gram`` is below it."""
    at: IntArray
    """The n-gram that begins at each word of the text, -1 where its sentence ends too soon."""

    def rows(self, first: int, last: int) -> slice:
        """The rows of the sentences from ``first`` to before ``last``."""
        low, high = np.searchsorted(self.sentence, [first, last])
        return slice(int(low), int(high))


def count_ngrams(words: IntArray, offsets: IntArray, shorter: Ngrams | None) -> Ngrams:
    """Count the n-grams one word longer than ``shorter`` (single words without it) in each sentence of ``words``.

    >>> pairs = count_ngrams(*(text := (np.array([5, 7, 5, 7]), np.array([0, 4]))), count_ngrams(*text, None))
    >>> pairs.gram.tolist(), pairs.count.tolist()
    ([0, 1], [2, 1])
    """
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    at = words if shorter is None else _extend(words, owner, shorter.at)
    begins = np.flatnonzero(at >= 0)
    distinct, codes = np.unique(at[begins], return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    kinds = len(distinct)
    coded = np.full(len(words), -1, dtype=np.int64)
    coded[begins] = codes
    _, first, counts = np.unique(owner[begins] * max(kinds, 1) + codes, return_index=True, return_counts=True)
    order = np.argsort(first)
    rows = first[order]
    return Ngrams(owner[begins][rows], codes[rows], counts[order].astype(np.int64), kinds, coded)


def _extend(words: IntArray, owner: IntArray, shorter: IntArray) -> IntArray:
    """The shorter n-gram at each word and the one at the next word name the longer one, if that is still inside."""
    longer = np.full(len(words), -1, dtype=np.int64)
    if len(words) > 1:
        size = int(shorter.max()) + 1
        inside = (shorter[:-1] >= 0) & (shorter[1:] >= 0) & (owner[:-1] == owner[1:])
        longer[:-1] = np.where(inside, shorter[:-1] * size + shorter[1:], -1)
    return longer
