"""From a network's chances of the next word to captions: greedily, or by a beam with a length penalty.

A network says, for captions that have begun, how likely each word comes next. Greedy decoding takes the likeliest word
each time (as TVR's MMT does); a beam keeps several beginnings, and the finished caption y with the best

.. math:: \frac{\\log P(y)}{((5 + |y|) / 6)^{\alpha}}

is taken (Wu et al. 2016, eq. 14), \\|y\\| counting its words and [EOS]. No caption is empty: with smoothed labels, and
without a penalty, to say nothing is often the likeliest of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.recognition.captions.inputs import BOS, EOS, UNK, Vocabulary

NextWords = Callable[[IntArray, IntArray], FloatArray]
"""Called with the places of moments, (n,), and the words so far of a caption for each, (n, words), [BOS] first; returns
the logarithms of the chances of the next word, (n, words of the vocabulary)."""


@dataclass(frozen=True, slots=True)
class DecodingSettings:
    """How captions are found: the width of the beam (1 is greedy), the length penalty, the most words."""

    beam: int = 1
    length_penalty: float = 1.0
    """α: 0 leaves the chance alone, which favours short captions; 1 is nearly the mean over the words."""
    longest: int = 18
    """The most words of a caption."""
    plain: bool = True
    """Captions hold words, at least one; false: special ones but [UNK] too, or nothing, as in MMT's public code."""

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
    """The captions of ``count`` moments as numbers of words, without [BOS] and [EOS]."""
    if not count:
        return []
    if settings.beam == 1:
        return _decode_greedily(next_words, count, vocabulary, settings)
    return _search_beam(next_words, count, vocabulary, settings)


def length_factor(words: int, penalty: float) -> float:
    """What the logarithm of a caption's chance is divided by; ``words`` counts [EOS].

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
    rows = np.arange(count)  # of each beginning, the place of its moment; those of a moment lie side by side
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
        if length == settings.longest:  # cut off, as greedy decoding cuts
            _keep_better(best, best_score, rows, begun, chance / factor)
            break
        farthest = length_factor(settings.longest, settings.length_penalty)
        promising = chance / farthest > best_score[rows]  # chances only fall, so others cannot win any more
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
    """Places in ``grown``, flattened, of each moment's ``width`` best, the best first."""
    chosen = []
    cuts = np.flatnonzero(np.diff(rows, prepend=-1))
    for first, last in zip(cuts, [*cuts[1:], len(rows)], strict=True):
        part = grown[first:last].ravel()
        keep = min(width, len(part))
        top = np.sort(np.argpartition(-part, keep - 1)[:keep])
        top = top[np.argsort(-part[top], kind="stable")]
        chosen.append(first * grown.shape[1] + top[np.isfinite(part[top])])
    return np.concatenate(chosen)
