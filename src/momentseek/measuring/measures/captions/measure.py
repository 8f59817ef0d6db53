"""The base class of caption measures, and the words and n-grams of captions that they count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, TypeVar, cast

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray, encode_names, offsets_of
from momentseek.core.moments.captions import CaptionTable
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.captions.ptb import NO_BREAK_SPACE, caption_words
from momentseek.measuring.measures.measure import Measure


@dataclass(frozen=True, eq=False)
class Ngrams:
    """The n-gram ``gram[r]`` occurs ``count[r]`` times in ``sentence[r]``; rows are in order of appearance."""

    sentence: IntArray
    gram: IntArray
    count: IntArray
    kinds: int
    """Number of different n-grams; ``gram`` is below it."""
    at: IntArray
    """The n-gram that begins at each word of the text, -1 if its sentence ends before."""

    def rows(self, first: int, last: int) -> slice:
        """Return the rows of the sentences from ``first`` up to, but not including, ``last``."""
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
    """Number each word's longer n-gram by the shorter ones at it and at the next word; -1 past a sentence's end."""
    longer = np.full(len(words), -1, dtype=np.int64)
    if len(words) > 1:
        size = int(shorter.max()) + 1
        inside = (shorter[:-1] >= 0) & (shorter[1:] >= 0) & (owner[:-1] == owner[1:])
        longer[:-1] = np.where(inside, shorter[:-1] * size + shorter[1:], -1)
    return longer


Letters = Literal["ascii", "all"]
"""Which characters count: only ASCII, as in TVC's evaluator, or all."""
T = TypeVar("T")


class CaptionAlignment:
    """The captions of ``run`` and the references of ``truth``, in the order of the references.

    A moment without a caption gets an empty one; ``evaluate`` checks beforehand whether that is allowed.
    """

    def __init__(self, run: CaptionTable, truth: CaptionTable) -> None:
        self.run = run
        self.truth = truth
        self._kept: dict[Hashable, object] = {}

    @property
    def size(self) -> int:
        """Number of moments with references."""
        return len(self.truth)

    @cached_property
    def answered(self) -> list[bool]:
        """Which moments have a caption."""
        run = self.run
        return [i in run.position and bool(run.caption_counts[run.position[i]]) for i in self.truth.query_ids]

    def words(self, letters: Letters) -> CaptionWords:
        """Return the words of all captions and references, computed once."""
        return self.once(("words", letters), lambda: self._words(letters))

    def _words(self, letters: Letters) -> CaptionWords:
        run, first = self.run, self.run.caption_offsets
        texts = [
            run.captions[int(first[run.position[i]])] if known else ""
            for i, known in zip(self.truth.query_ids, self.answered, strict=True)
        ]
        ascii_only = letters == "ascii"
        references = caption_words(self.truth.captions, ascii_only)
        return CaptionWords(caption_words(texts, ascii_only), references, self.truth.caption_offsets)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of ``compute``, cached under ``key``, for results that several measures need."""
        if key not in self._kept:
            self._kept[key] = compute()
        return cast(T, self._kept[key])


class CaptionWords:
    """Words of one caption per moment, and of all its references, grouped by ``offsets``.

    A number written in several words (``1 1/2``, a telephone number) is one PTB token. COCO's evaluator counts it as
    one word in ROUGE-L and splits it elsewhere, so there are both ``caption_tokens`` and ``captions``.
    """

    def __init__(self, captions: list[list[str]], references: list[list[str]], offsets: IntArray) -> None:
        self.caption_tokens = captions
        self.reference_tokens = references
        self.captions = list(map(_cut, captions))
        self.references = list(map(_cut, references))
        self.offsets = offsets
        self._ngrams: dict[int, Ngrams] = {}

    @cached_property
    def owner(self) -> IntArray:
        """The moment of each reference."""
        return np.repeat(np.arange(len(self.captions), dtype=np.int64), np.diff(self.offsets))

    @cached_property
    def caption_lengths(self) -> IntArray:
        """Number of words of each caption."""
        return np.fromiter(map(len, self.captions), np.int64, len(self.captions))

    @cached_property
    def reference_lengths(self) -> IntArray:
        """Number of words of each reference."""
        return np.fromiter(map(len, self.references), np.int64, len(self.references))

    @cached_property
    def _sentences(self) -> tuple[IntArray, IntArray]:
        """The code of every word, first of the captions and then of the references, and where each sentence begins."""
        sentences = [*self.captions, *self.references]
        _, codes = encode_names(list(chain.from_iterable(sentences)))
        return codes.astype(np.int64), offsets_of(map(len, sentences))

    def ngrams(self, order: int) -> Ngrams:
        """Count the n-grams of ``order`` words in each sentence: the captions first, then the references."""
        if order not in self._ngrams:
            shorter = self.ngrams(order - 1) if order > 1 else None
            self._ngrams[order] = count_ngrams(*self._sentences, shorter)
        return self._ngrams[order]


def _cut(tokens: list[str]) -> list[str]:
    if not any(NO_BREAK_SPACE in token for token in tokens):
        return tokens
    return [word for token in tokens for word in token.split(NO_BREAK_SPACE)]


def closest_lengths(words: CaptionWords) -> FloatArray:
    """Return for each moment the reference length closest to the caption's; the shorter one of two equally close."""
    lengths = words.reference_lengths
    apart = np.abs(lengths - words.caption_lengths[words.owner])
    order = np.lexsort((lengths, apart, words.owner))
    closest = np.zeros(len(words.captions))
    some = np.diff(words.offsets) > 0
    closest[some] = lengths[order][words.offsets[:-1][some]]
    return closest


@dataclass(frozen=True, kw_only=True)
class CaptionMeasure(Measure):
    """A measure of one caption per moment against the moment's references.

    ``statistics`` has a row per moment; ``figures`` turns rows, or sums of rows, into figures. So a caption, a group
    of captions, a resample and the whole corpus are measured in the same way, whether the figure is a mean (CIDEr-D,
    ROUGE-L) or not (BLEU, METEOR).
    """

    letters: Letters = "ascii"

    def __call__(self, view: Alignment) -> FloatArray:
        """Raise an error, because ranked moments have no captions."""
        raise MomentseekError(
            f"measure {self.name} compares captions, but {view.run.source} holds ranked moments; "
            "give captions and references, or choose another measure"
        )

    @abstractmethod
    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """Return what each moment's caption adds to the figure, ``(moments, columns)``."""

    @abstractmethod
    def figures(self, sums: FloatArray) -> FloatArray:
        """Return the figure of each row of (summed) statistics."""


@dataclass(frozen=True, kw_only=True)
class MeanCaptionMeasure(CaptionMeasure):
    """A caption measure whose figure is the mean of the scores of all captions."""

    @abstractmethod
    def scores(self, view: CaptionAlignment) -> FloatArray:
        """Return the score of each moment's caption."""

    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """Return the score of each caption as a row of one column."""
        return self.scores(view)[:, None]

    def figures(self, sums: FloatArray) -> FloatArray:
        """Return the scores themselves."""
        return sums[:, 0]
