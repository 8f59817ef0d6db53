"""Decode captions from a network's next-word probabilities: greedily, or by beam search with a length penalty.

Greedy decoding takes the most likely word each time (as TVR's MMT does). A beam keeps several partial captions, and the
finished caption y with the best

.. math:: \frac{\\log P(y)}{((5 + |y|) / 6)^{\alpha}}

is taken (Wu et al. 2016, eq. 14), where \\|y\\| counts its words and [EOS]. No caption is empty, although with smoothed
labels and without a penalty the empty caption is often the most likely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.recognition.captions.inputs import BOS, EOS, UNK, Vocabulary

NextWords = Callable[[IntArray, IntArray], FloatArray]
"""A function of the indices of moments, (n,), and the words so far of a caption for each, (n, words), [BOS] first. It
returns the log probabilities of the next word, (n, size of the vocabulary)."""


@dataclass(frozen=True, slots=True)
class DecodingSettings:
    """Settings of caption decoding: the beam size (1 is greedy), the length penalty, the maximum number of words."""

    beam: int = 1
    length_penalty: float = 1.0
    """α: 0 uses the plain probability, which favours short captions; 1 is nearly the mean over the words."""
    longest: int = 18
    """Maximum number of words in a caption."""
    plain: bool = True
    """Captions are at least one plain word; if false, special words but [UNK] and empty captions are allowed, as in
    MMT's public code."""

    def __post_init__(self) -> None:
        if not 1 <= self.beam <= MAX_BEAM:
            raise MomentseekError(f"a beam keeps 1 to {MAX_BEAM} captions, not {self.beam}")
        if not 0 <= self.length_penalty <= MAX_PENALTY:
            raise MomentseekError(f"a length penalty is from 0 to {MAX_PENALTY:g}, not {self.length_penalty:g}")
        if self.longest < 1:
            raise MomentseekError(f"a caption has at least 1 word, not {self.longest}")


MAX_BEAM = 64
MAX_PENALTY = 10.0


def decode_captions(
    next_words: NextWords, count: int, vocabulary: Vocabulary, settings: DecodingSettings
) -> list[list[int]]:
    """Return the captions of ``count`` moments as word numbers, without [BOS] and [EOS]."""
    if not count:
        return []
    if settings.beam == 1:
        return _decode_greedily(next_words, count, vocabulary, settings)
    return _search_beam(next_words, count, vocabulary, settings)


def length_factor(words: int, penalty: float) -> float:
    """Return the divisor of a caption's log probability; ``words`` counts [EOS].

    >>> length_factor(1, 0.7), length_factor(7, 0.0), length_factor(7, 1.0)
    (1.0, 1.0, 2.0)
    """
    return float(((5 + words) / 6) ** penalty)


def _chances(next_words: NextWords, rows: IntArray, begun: IntArray, vocabulary: Vocabulary, plain: bool) -> FloatArray:
    found = np.array(next_words(rows, begun), dtype=np.float64)
    found[:, vocabulary.forbidden if plain else vocabulary.number[UNK]] = -np.inf
    if plain and begun.shape[1] == 1:
        found[:, vocabulary.number[EOS]] = -np.inf
    return found


def _decode_greedily(
    next_words: NextWords, count: int, vocabulary: Vocabulary, settings: DecodingSettings
) -> list[list[int]]:
    end = vocabulary.number[EOS]
    captions: list[list[int]] = [[] for _ in range(count)]
    rows = np.arange(count)
    begun = np.full((count, 1), vocabulary.number[BOS], dtype=np.int64)
    for _ in range(settings.longest):
        word = _chances(next_words, rows, begun, vocabulary, settings.plain).argmax(1)
        going = word != end
        rows, begun = rows[going], np.concatenate([begun, word[:, None]], axis=1)[going]
        for row, number in zip(rows.tolist(), word[going].tolist(), strict=True):
            captions[row].append(number)
        if not len(rows):
            break
    return captions


def _search_beam(
    next_words: NextWords, count: int, vocabulary: Vocabulary, settings: DecodingSettings
) -> list[list[int]]:
    width, end = settings.beam, vocabulary.number[EOS]
    best_score = np.full(count, -np.inf)
    best: list[list[int]] = [[] for _ in range(count)]
    rows = np.arange(count)  # the moment of each partial caption; those of one moment are adjacent
    begun = np.full((count, 1), vocabulary.number[BOS], dtype=np.int64)
    chance = np.zeros(count)
    for length in range(1, settings.longest + 1):
        grown = chance[:, None] + _chances(next_words, rows, begun, vocabulary, settings.plain)
        factor = length_factor(length, settings.length_penalty)
        _keep_better(best, best_score, rows, begun, grown[:, end] / factor)
        grown[:, end] = -np.inf
        chosen = _best_of_each(rows, grown, width)
        beginning, word = np.divmod(chosen, grown.shape[1])
        rows, chance = rows[beginning], grown[beginning, word]
        begun = np.concatenate([begun[beginning], word[:, None]], axis=1)
        if length == settings.longest:  # truncated, as in greedy decoding
            _keep_better(best, best_score, rows, begun, chance / factor)
            break
        farthest = length_factor(settings.longest, settings.length_penalty)
        promising = chance / farthest > best_score[rows]  # probabilities only decrease, so no other can win
        rows, begun, chance = rows[promising], begun[promising], chance[promising]
        if not len(rows):
            break
    return best


def _keep_better(
    best: list[list[int]], best_score: FloatArray, rows: IntArray, begun: IntArray, ended: FloatArray
) -> None:
    for at in np.flatnonzero(ended > best_score[rows]).tolist():
        row = int(rows[at])
        if ended[at] > best_score[row]:
            best_score[row], best[row] = ended[at], begun[at, 1:].tolist()


def _best_of_each(rows: IntArray, grown: FloatArray, width: int) -> IntArray:
    """Return the indices into the flattened ``grown`` of each moment's ``width`` best, the best first."""
    chosen = []
    cuts = np.flatnonzero(np.diff(rows, prepend=-1))
    for first, last in zip(cuts, [*cuts[1:], len(rows)], strict=True):
        part = grown[first:last].ravel()
        keep = min(width, len(part))
        top = np.sort(np.argpartition(-part, keep - 1)[:keep])
        top = top[np.argsort(-part[top], kind="stable")]
        chosen.append(first * grown.shape[1] + top[np.isfinite(part[top])])
    return np.concatenate(chosen)
