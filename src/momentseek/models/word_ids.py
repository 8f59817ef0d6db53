"""Words of queries as numbers, and the vocabulary that a model keeps among its weights.

A batch carries for each word a number made of its letters, the same everywhere; a model knows those of its training
queries' most frequent words (``Vocabulary`` of a captioner is the same with names). So no list of words has to travel
with the data, and a checkpoint holds all that it needs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

import torch
from torch import Tensor, nn

from momentseek.captioning.words import caption_words
from momentseek.errors import MomentseekError

PADDING, BEGIN, END, UNKNOWN = range(4)
"""The first entries of a vocabulary: no word, the beginning and the end of a sentence, a word that is not known."""
NOWHERE = torch.iinfo(torch.int64).max
"""What stands in the unused places of a vocabulary."""


@cache
def word_id(word: str) -> int:
    """A number of a word, from 1 to 2^63 - 2, that depends on its letters only.

    >>> word_id("door") == word_id("door"), word_id("door") == word_id("doors")
    (True, False)
    """
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) % (NOWHERE - 1) + 1


def word_ids(texts: Sequence[str], most: int) -> Tensor:
    """(texts, ``most``): the number of each of the first ``most`` words; 0 in the padding.

    As wide for any texts, since texts and rows of features differ in length: what a model makes of them is kept row by
    row.
    """
    rows = [[word_id(word) for word in caption_words(text)[:most]] for text in texts]
    for text, row in zip(texts, rows, strict=True):
        if not row:
            raise MomentseekError(f"a query has no text ({text!r}), and the model reads the words; give the texts")
    found = torch.zeros(len(rows), most, dtype=torch.long)
    for i, row in enumerate(rows):
        found[i, : len(row)] = torch.tensor(row)
    return found


class KnownWords(nn.Module):
    """The words that a model knows: their numbers in order, kept with its weights."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.known: Tensor
        self.register_buffer("known", torch.full((size,), NOWHERE, dtype=torch.long))

    @property
    def entries(self) -> int:
        """Number of entries, the special ones included."""
        return len(self.known) + UNKNOWN + 1

    def learn(self, texts: Iterable[str]) -> None:
        """Take the most frequent words of some texts; those that are as frequent go by the alphabet."""
        seen = Counter(word for text in texts for word in caption_words(text))
        chosen = sorted(seen, key=lambda word: (-seen[word], word))[: len(self.known)]
        self.known.fill_(NOWHERE)
        if chosen:
            self.known[: len(chosen)] = torch.tensor(sorted(map(word_id, chosen)))

    def forward(self, ids: Tensor) -> Tensor:
        """Entries of the vocabulary, of any shape.

        >>> words = KnownWords(5)
        >>> words.learn(["a dog runs"])
        >>> sorted(words(word_ids(["a dog runs"], 3)).tolist()[0]), words(word_ids(["cat"], 2)).tolist()
        ([4, 5, 6], [[3, 0]])
        """
        place = torch.searchsorted(self.known, ids).clamp(max=len(self.known) - 1)
        found = torch.where(self.known[place] == ids, place + UNKNOWN + 1, UNKNOWN)
        return torch.where(ids == 0, PADDING, found)
