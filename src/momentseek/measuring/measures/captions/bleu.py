"""BLEU@n: the share of the captions' n-grams that are in a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.captions.measure import (
    CaptionAlignment,
    CaptionMeasure,
    CaptionWords,
    closest_lengths,
)
from momentseek.measuring.measures.measure import register

TINY, SMALL = 1e-15, 1e-9
"""Constants that COCO's evaluator adds to counts and to their divisors, so that nothing is divided by 0."""


@register
@dataclass(frozen=True, kw_only=True)
class Bleu(CaptionMeasure):
    r"""Geometric mean of the precisions of 1- to k-grams, times a penalty for captions that are too short.

    .. math:: \left(\prod_{j \le k} p_j\right)^{1/k} \min(1, e^{1 - r/c})

    with :math:`p_j` the share of the captions' j-grams that are in a reference (each at most as often as in the
    reference that has it most often), c the captions' words and r the words of the references closest in length.
    It is counted over all captions together, so it is not a mean. Papineni et al., ACL 2002; as COCO's evaluator
    computes it.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import CaptionTable
    >>> truth = CaptionTable.from_groups(["m"], [["a dog runs home", "the dog is running"]])
    >>> run = CaptionTable.from_groups(["m"], [["the dog runs"]])
    >>> measure = parse("BLEU@1")
    >>> measure.figures(measure.statistics(CaptionAlignment(run, truth))).round(4).tolist()  # e^(1 - 4/3)
    [0.7165]
    """

    NAME = "BLEU"
    ABOUT = "share of the captions' n-grams that are in a reference, up to n = K; over all captions together"

    k: int

    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """Return the number of words, words of the closest reference, then matches and n-grams for each n."""
        words = view.words(self.letters)
        lengths = view.once(("closest", self.letters), lambda: closest_lengths(words))
        columns = [words.caption_lengths.astype(np.float64), lengths]
        for order in range(1, self.k + 1):
            key = ("matches", self.letters, order)
            columns.append(view.once(key, lambda order=order: count_matches(words, order)))  # type: ignore[misc]
            columns.append(np.maximum(words.caption_lengths - order + 1, 0).astype(np.float64))
        return np.column_stack(columns)

    def figures(self, sums: FloatArray) -> FloatArray:
        """Return the BLEU of each row."""
        product = np.ones(len(sums))
        for order in range(self.k):
            product = product * ((sums[:, 2 + 2 * order] + TINY) / (sums[:, 3 + 2 * order] + SMALL))
        ratio = (sums[:, 0] + TINY) / (sums[:, 1] + SMALL)
        with np.errstate(over="ignore"):
            penalty = np.where(ratio < 1, np.exp(1 - 1 / np.maximum(ratio, TINY)), 1.0)
        return product ** (1.0 / self.k) * penalty


def count_matches(words: CaptionWords, order: int) -> FloatArray:
    """Count the n-grams of each moment's caption that a reference has, each at most as often as in one reference."""
    grams = words.ngrams(order)
    moments = len(words.captions)
    mine, theirs = grams.rows(0, moments), grams.rows(moments, moments + len(words.references))
    size = max(grams.kinds, 1)
    key = words.owner[grams.sentence[theirs] - moments] * size + grams.gram[theirs]
    order_ = np.lexsort((grams.count[theirs], key))
    key, limit = key[order_], grams.count[theirs][order_]
    last = np.flatnonzero(np.append(key[1:] != key[:-1], True)) if len(key) else np.zeros(0, dtype=np.int64)
    key, limit = key[last], limit[last]
    wanted = grams.sentence[mine] * size + grams.gram[mine]
    position = np.searchsorted(key, wanted)
    found = np.zeros(len(wanted), dtype=bool)
    inside = position < len(key)
    found[inside] = key[position[inside]] == wanted[inside]
    clipped = np.zeros(len(wanted))
    clipped[found] = np.minimum(grams.count[mine][found], limit[position[found]])
    return np.bincount(grams.sentence[mine], weights=clipped, minlength=moments).astype(np.float64)
