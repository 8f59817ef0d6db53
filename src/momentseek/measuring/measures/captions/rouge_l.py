"""ROUGE-L: the longest sequence of words that caption and reference share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.captions.measure import CaptionAlignment, MeanCaptionMeasure
from momentseek.measuring.measures.measure import register

BETA = 1.2
"""Weight of recall relative to precision."""
NO_WORDS = [""]
"""An empty caption counts as one empty word, as in COCO's evaluator."""


@register
@dataclass(frozen=True, kw_only=True)
class RougeL(MeanCaptionMeasure):
    r"""F-measure of the longest common subsequence, from its best precision and best recall over the references.

    .. math:: F = \frac{(1 + \beta^2) P R}{R + \beta^2 P}, \quad P = \max_r \frac{LCS(c, r)}{|c|},
        R = \max_r \frac{LCS(c, r)}{|r|}, \quad \beta = 1.2

    Precision and recall may come from different references. Lin, ACL 2004; as COCO's evaluator computes it.
    """

    NAME = "ROUGE-L"
    ABOUT = "longest common subsequence of caption and reference, as an F-measure"

    def scores(self, view: CaptionAlignment) -> FloatArray:
        """Return the F-measure of each caption."""
        words = view.words(self.letters)
        bounds = pairwise(words.offsets.tolist())
        pairs = ((c, words.reference_tokens[a:b]) for c, (a, b) in zip(words.caption_tokens, bounds, strict=True))
        return np.array([rouge_l_score(caption or NO_WORDS, references) for caption, references in pairs])


def rouge_l_score(caption: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the F-measure of one caption, which must have at least one word.

    >>> round(rouge_l_score(["a", "dog", "runs"], [["a", "dog", "sleeps"]]), 4)
    0.6667
    """
    positions: dict[str, int] = {}
    for place, word in enumerate(caption):
        positions[word] = positions.get(word, 0) | 1 << place
    precision = recall = 0.0
    for reference in references:
        words = reference or NO_WORDS
        common = _common_length(positions, len(caption), words)
        precision, recall = max(precision, common / len(caption)), max(recall, common / len(words))
    if not precision or not recall:
        return 0.0
    return ((1 + BETA**2) * precision * recall) / (recall + BETA**2 * precision)


def _common_length(positions: dict[str, int], length: int, other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, with each row of the table in one integer (Hyyrö, 2004).

    >>> _common_length({"a": 0b101, "b": 0b010}, 3, ["b", "a", "c"])
    2
    """
    all_ones = (1 << length) - 1
    row = all_ones
    for word in other:
        match = positions.get(word)
        if match is not None:
            shared = row & match
            row = (row + shared) | (row - shared)
    return length - (row & all_ones).bit_count()
