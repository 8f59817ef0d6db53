"""The words that a captioner knows: those of its training captions that occur often enough, and seven special ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import IntArray

PAD, CLS, SEP, VID, BOS, EOS, UNK = SPECIAL_WORDS = ("[PAD]", "[CLS]", "[SEP]", "[VID]", "[BOS]", "[EOS]", "[UNK]")
"""Padding, the beginning and end of the clips, a clip's word, the beginning and end of words, an unknown word."""
MAX_WORDS = 1_000_000
MAX_WORD_CHARACTERS = 200


@dataclass(frozen=True)
class Vocabulary:
    """Words by number, the special ones first.

    >>> known = Vocabulary((*SPECIAL_WORDS, "a", "dog", "runs"))
    >>> known.numbers(["a", "cat", "runs"]), known.text([7, 8, 9, 5, 8])
    ([7, 6, 9], 'a dog runs')
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(SPECIAL_WORDS)] != SPECIAL_WORDS:
            raise MomentseekError(f"a vocabulary begins with {', '.join(SPECIAL_WORDS)}; this one does not")
        if len(set(self.words)) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise MomentseekError(f"the vocabulary has {twice!r} twice; each word must have one number")
        if len(self.words) > MAX_WORDS or any(not w or len(w) > MAX_WORD_CHARACTERS for w in self.words):
            raise MomentseekError(
                f"a vocabulary has at most {MAX_WORDS:,} words of 1 to {MAX_WORD_CHARACTERS} characters"
            )

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def forbidden(self) -> IntArray:
        """Numbers of the words that no caption holds: all special ones but [EOS], which ends it."""
        return np.array([self.number[word] for word in SPECIAL_WORDS if word != EOS], dtype=np.int64)

    def numbers(self, words: Iterable[str]) -> list[int]:
        """The numbers of words; unknown ones are [UNK]."""
        unknown = self.number[UNK]
        return [self.number.get(word, unknown) for word in words]

    def text(self, numbers: Iterable[int]) -> str:
        """The words before the first [EOS], with blanks between them."""
        words = []
        for number in numbers:
            if self.words[number] == EOS:
                break
            words.append(self.words[number])
        return " ".join(words)


def build_vocabulary(captions: Iterable[Sequence[str]], more_than: int = 5) -> Vocabulary:
    """The vocabulary of captions, each a list of words: what occurs more than ``more_than`` times, the commonest first.

    >>> build_vocabulary([["a", "dog", "runs"], ["a", "dog"], ["a"]], more_than=1).words[7:]
    ('a', 'dog')
    """
    counts = Counter(word for caption in captions for word in caption)
    often = [word for word, count in counts.items() if count > more_than and word not in SPECIAL_WORDS]
    return Vocabulary((*SPECIAL_WORDS, *sorted(often, key=lambda word: (-counts[word], word))))
