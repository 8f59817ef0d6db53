"""CIDEr and CIDEr-D: similarity of captions and references in words that are rare among the references."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray, IntArray, Positions
from momentseek.measuring.measures.captions.measure import CaptionAlignment, CaptionWords, MeanCaptionMeasure
from momentseek.measuring.measures.measure import register

LONGEST = 4
"""Length of the longest n-grams that count, in words."""
SIGMA = 6.0
"""Standard deviation, in words, of the Gaussian by which CIDEr-D penalises differences in length."""
SCALE = 10.0


@register
@dataclass(frozen=True, kw_only=True)
class CiderD(MeanCaptionMeasure):
    r"""Cosine of TF-IDF vectors of caption and reference, clipped and penalised by difference in length; 0 to 10.

    .. math:: \frac{10}{4} \sum_{n \le 4} \operatorname{mean}_r \frac{\sum_g \min(c_g, r_g)\, r_g}{\|c\| \|r\|}
        e^{-(l_c - l_r)^2 / 72}

    The weight of an n-gram is its count times :math:`\ln N - \ln \max(1, df)`, where df of the N moments have it in a
    reference. So a subset of the moments has other weights, and with one moment all are 0. Vedantam et al., CVPR
    2015; as COCO's evaluator computes it, which counts pairs of words for l.
    """

    NAME = "CIDEr-D"
    ABOUT = "similarity in n-grams that are rare in the references, from 0 to 10"

    def scores(self, view: CaptionAlignment) -> FloatArray:
        """Return the score of each caption."""
        words = view.words(self.letters)
        return similarity(words, clip=True)


@register
@dataclass(frozen=True, kw_only=True)
class Cider(MeanCaptionMeasure):
    r"""CIDEr-D without clipping and length penalty: the plain cosine, from 0 to 10.

    .. math:: \frac{10}{4} \sum_{n \le 4} \operatorname{mean}_r \cos(c, r)

    A caption can raise it by repeating rare words, which is why CIDEr-D replaced it. Vedantam et al., CVPR 2015.
    """

    NAME = "CIDEr"
    ABOUT = "CIDEr-D without clipping and length penalty, from 0 to 10; papers usually report CIDEr-D"

    def scores(self, view: CaptionAlignment) -> FloatArray:
        """Return the score of each caption."""
        return similarity(view.words(self.letters), clip=False)


def similarity(words: CaptionWords, clip: bool) -> FloatArray:
    """Return each caption's mean similarity to its references, times 10."""
    moments, references = len(words.captions), len(words.references)
    per_order = np.stack([_cosines(words, order, clip) for order in range(1, LONGEST + 1)], axis=1)
    if clip:
        pairs = np.maximum(np.concatenate([words.caption_lengths, words.reference_lengths]) - 1, 0)
        apart = (pairs[:moments][words.owner] - pairs[moments:]).astype(np.float64)
        per_order *= (np.e ** (-(apart**2) / (2 * SIGMA**2)))[:, None]
    sums = np.stack([np.bincount(words.owner, weights=column, minlength=moments) for column in per_order.T], axis=1)
    counts = np.diff(words.offsets)
    assert len(words.owner) == references
    mean: FloatArray = np.mean(sums, axis=1) / np.maximum(counts, 1) * SCALE
    return mean


def _cosines(words: CaptionWords, order: int, clip: bool) -> FloatArray:
    """Return, for each reference, the similarity of its moment's caption in n-grams of one order."""
    grams = words.ngrams(order)
    moments, references = len(words.captions), len(words.references)
    mine, theirs = grams.rows(0, moments), grams.rows(moments, moments + references)
    owner, size = words.owner[grams.sentence[theirs] - moments], max(grams.kinds, 1)
    seen = np.sort(owner * size + grams.gram[theirs])  # np.unique hashes, which is five times slower here
    once = seen[np.diff(seen, prepend=-1) != 0]
    frequency = np.bincount(once % size, minlength=grams.kinds).astype(np.float64)
    rarity = np.log(float(moments)) - np.log(np.maximum(1.0, frequency))
    weight = grams.count * rarity[grams.gram]
    norm = np.sqrt(np.bincount(grams.sentence, weights=weight**2, minlength=moments + references))
    caption_row, reference_row = _shared_rows(
        grams.sentence[mine] * size + grams.gram[mine], owner * size + grams.gram[theirs], grams.sentence[theirs]
    )
    ours, other = weight[mine][caption_row], weight[theirs][reference_row]
    products = (np.minimum(ours, other) if clip else ours) * other
    product = np.bincount(grams.sentence[theirs][reference_row] - moments, weights=products, minlength=references)
    scale = norm[:moments][words.owner] * norm[moments:]
    cosines: FloatArray = np.divide(product, scale, out=np.zeros(references), where=scale != 0)
    return cosines


def _shared_rows(captions: IntArray, references: IntArray, sentence: IntArray) -> tuple[Positions, Positions]:
    """Return the rows of captions and references with equal keys, by reference sentence, then in caption order.

    COCO's evaluator adds in this order, so our sums equal its sums to the last bit.
    """
    order = np.argsort(captions)
    position = np.searchsorted(captions[order], references)
    inside = position < len(captions)
    found = np.flatnonzero(inside)[captions[order][position[inside]] == references[inside]]
    rows = order[position[found]]
    kept = np.lexsort((rows, sentence[found]))
    return rows[kept], found[kept]
