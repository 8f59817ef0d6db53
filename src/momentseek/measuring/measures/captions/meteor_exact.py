"""METEOR-exact: METEOR's formula with exact word matches only. It is not METEOR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.captions.measure import CaptionAlignment, CaptionMeasure
from momentseek.measuring.measures.captions.meteor import score
from momentseek.measuring.measures.measure import register

BEAM = 40
"""Width of the beam of partial alignments, as in METEOR."""


@register
@dataclass(frozen=True, kw_only=True)
class MeteorExact(CaptionMeasure):
    r"""METEOR's formula over words that match exactly; no stems, synonyms or paraphrases, all words weigh the same.

    .. math:: F (1 - \gamma (\mathrm{chunks} / \mathrm{matches})^\beta), \quad F = \frac{P R}{\alpha P + (1 - \alpha) R}

    with METEOR 1.5's :math:`\alpha = .85, \beta = .2, \gamma = .6`, for the best reference. The figure of all captions
    is computed from their summed statistics. It needs no Java, is lower than METEOR, and must not be called METEOR.
    """

    NAME = "METEOR-exact"
    ABOUT = "METEOR's formula over words that match exactly; not METEOR, and not comparable with it"

    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """Return the number of words of caption and best reference, matches and chunks."""
        words = view.words(self.letters)
        bounds = pairwise(words.offsets.tolist())
        rows = [
            self._best(caption, words.references[a:b]) for caption, (a, b) in zip(words.captions, bounds, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 4)

    def _best(self, caption: Sequence[str], references: Sequence[Sequence[str]]) -> FloatArray:
        rows = [[len(caption), len(reference), *match_words(caption, reference)] for reference in references]
        table = np.array(rows or [[len(caption), 0, 0, 0]], dtype=np.float64)
        best: FloatArray = table[int(np.argmax(self.figures(table)))]
        return best

    def figures(self, sums: FloatArray) -> FloatArray:
        """Return the figure of each row."""
        mine, theirs, matches, chunks = sums.T
        precision = np.divide(matches, mine, out=np.zeros_like(matches), where=mine > 0)
        recall = np.divide(matches, theirs, out=np.zeros_like(matches), where=theirs > 0)
        return score(precision, recall, chunks, matches)


def match_words(caption: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Return the largest number of matches of equal words, and the smallest number of chunks they can form.

    A chunk is a sequence of words that are adjacent and in the same order on both sides; a caption equal to its
    reference has none. Alignments are found by a beam search word by word, as in METEOR.

    >>> match_words("the cat saw the dog".split(), "the dog saw the cat".split())
    (5, 3)
    """
    spare = Counter(caption) - Counter(reference)
    positions: dict[str, list[int]] = {}
    for position, word in enumerate(reference):
        positions.setdefault(word, []).append(position)
    # (chunks, position of the previous word's match or -2, positions taken, matches, words left out)
    beam: list[tuple[int, int, int, int, tuple[str, ...]]] = [(0, -2, 0, 0, ())]
    for word in caption:
        grown: dict[tuple[int, int, tuple[str, ...]], tuple[int, int, int, int, tuple[str, ...]]] = {}
        for chunks, last, taken, matches, left in beam:
            options = [
                (chunks + (position != last + 1), position, taken | 1 << position, matches + 1, left)
                for position in positions.get(word, ())
                if not taken >> position & 1
            ]
            if word not in positions:
                options.append((chunks, -2, taken, matches, left))
            elif left.count(word) < spare[word]:
                options.append((chunks, -2, taken, matches, tuple(sorted((*left, word)))))
            for option in options:
                key = (option[1], option[2], option[4])
                if key not in grown or option < grown[key]:
                    grown[key] = option
        beam = sorted(grown.values())[:BEAM]
    chunks, _, _, matches, _ = min(beam)
    whole = chunks == 1 and matches == len(caption) == len(reference)
    return matches, 0 if whole else chunks
