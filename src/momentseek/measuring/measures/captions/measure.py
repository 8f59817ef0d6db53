"""What a measure of captions is: what each caption adds to the figure, and the figure of what was added."""

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


Letters = Literal["ascii", "all"]
"""Which characters count: ASCII alone, as TVC's evaluator has it, or all."""
T = TypeVar("T")


class CaptionAlignment:
    """The captions of ``run`` and the references of ``truth``, in the order of the references.

    A moment without a caption has an empty one; whether that is right is asked before anything is measured.
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
        """The words of all captions and references, computed once."""
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
        """A result that several measures need, computed the first time it is asked for."""
        if key not in self._kept:
            self._kept[key] = compute()
        return cast(T, self._kept[key])


class CaptionWords:
    """Words of one caption per moment, and of all its references (``offsets`` says which are whose).

    A number written in several words (``1 1/2``, a telephone number) is one PTB token. COCO's evaluator takes it for
    one word in ROUGE-L and cuts it elsewhere; so there are ``caption_tokens`` beside ``captions``.
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
        """Every word's code, of the captions first and the references after them, and where each sentence begins."""
        sentences = [*self.captions, *self.references]
        _, codes = encode_names(list(chain.from_iterable(sentences)))
        return codes.astype(np.int64), offsets_of(map(len, sentences))

    def ngrams(self, order: int) -> Ngrams:
        """How often each run of ``order`` words stands in each sentence; captions first, references after them."""
        if order not in self._ngrams:
            shorter = self.ngrams(order - 1) if order > 1 else None
            self._ngrams[order] = count_ngrams(*self._sentences, shorter)
        return self._ngrams[order]


def _cut(tokens: list[str]) -> list[str]:
    if not any(NO_BREAK_SPACE in token for token in tokens):
        return tokens
    return [word for token in tokens for word in token.split(NO_BREAK_SPACE)]


def closest_lengths(words: CaptionWords) -> FloatArray:
    """For each moment the length of the reference closest to the caption's; of two equally close, the shorter."""
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

    ``statistics`` has a row per moment; ``figures`` turns rows, or sums of rows, into figures. So one caption, a group
    of them, a resample and the whole corpus are measured alike, whether the figure is a mean (CIDEr-D, ROUGE-L) or
    not (BLEU, METEOR).
    """

    letters: Letters = "ascii"

    def __call__(self, view: Alignment) -> FloatArray:
        """Refuse: ranked moments have no captions."""
        raise MomentseekError(
            f"measure {self.name} compares captions, but {view.run.source} holds ranked moments; "
            "give captions and references, or choose another measure"
        )

    @abstractmethod
    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """What each moment's caption adds, ``(moments, columns)``."""

    @abstractmethod
    def figures(self, sums: FloatArray) -> FloatArray:
        """The figure of each row of (summed) statistics."""


@dataclass(frozen=True, kw_only=True)
class MeanCaptionMeasure(CaptionMeasure):
    """A measure of captions whose figure is the mean of what each caption scores."""

    @abstractmethod
    def scores(self, view: CaptionAlignment) -> FloatArray:
        """The score of each moment's caption."""

    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """The score of each caption, alone in its row."""
        return self.scores(view)[:, None]

    def figures(self, sums: FloatArray) -> FloatArray:
        """The scores themselves."""
        return sums[:, 0]
