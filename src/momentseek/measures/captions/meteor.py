"""METEOR 1.5: words that match exactly, by stem, as synonyms or as paraphrases, and in how few pieces."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from momentseek.measures.captions.alignment import CaptionAlignment
from momentseek.measures.captions.measure import CaptionMeasure
from momentseek.measures.captions.meteor_program import meteor_statistics
from momentseek.measures.measure import register
from momentseek.moments.arrays import FloatArray

ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
"""English, task ``rank``: weight of recall, shape and size of the penalty, weight of content against function words."""
STAGES = (1.0, 0.6, 0.8, 0.6)
"""Weights of matches: exact, stem, synonym, paraphrase."""


@register
@dataclass(frozen=True, kw_only=True)
class Meteor(CaptionMeasure):
    r"""Weighted precision and recall of matched words, less a penalty for the pieces into which the matches fall.

    .. math:: F (1 - \gamma (\mathrm{chunks} / \mathrm{matches})^\beta), \quad F = \frac{P R}{\alpha P + (1 - \alpha) R}

    for the reference that gives the most; of all captions from their summed statistics, so it is no mean. Denkowski
    and Lavie, WMT 2014. The matching is done by the authors' own Java program, and where it is not there this measure
    is refused: a part of it is not METEOR.
    """

    NAME = "METEOR"
    ABOUT = "METEOR 1.5 by its authors' program; needs Java and the package pycocoevalcap"

    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """What the program says of each caption: lengths, function words, matches of four kinds, chunks."""
        words = view.words(self.letters)
        bounds = pairwise(words.offsets.tolist())
        pairs = [
            (" ".join(caption), [" ".join(reference) for reference in words.reference_tokens[a:b]])
            for caption, (a, b) in zip(words.caption_tokens, bounds, strict=True)
        ]
        statistics = meteor_statistics(pairs)
        mine, theirs, chunks = statistics[:, [0, 21]], statistics[:, [1, 22]], statistics[:, 20]
        whole = (mine[:, 0] == mine[:, 1]) & (theirs[:, 0] == theirs[:, 1]) & (chunks == 1)
        statistics[whole, 20] = 0  # as the program adds them: a caption that matches as a whole is in no pieces
        return statistics

    def figures(self, sums: FloatArray) -> FloatArray:
        """METEOR of each row."""
        matches = sums[:, 4:20].reshape(len(sums), 4, 4) * np.array(STAGES)[None, :, None]
        content, function = matches[:, :, :2].sum(axis=1), matches[:, :, 2:].sum(axis=1)
        found = DELTA * content + (1 - DELTA) * function
        possible = DELTA * (sums[:, :2] - sums[:, 2:4]) + (1 - DELTA) * sums[:, 2:4]
        precision, recall = np.divide(found, possible, out=np.zeros_like(found), where=possible > 0).T
        return score(precision, recall, sums[:, 20], (sums[:, 21] + sums[:, 22]) / 2)


def score(precision: FloatArray, recall: FloatArray, chunks: FloatArray, matches: FloatArray) -> FloatArray:
    """F-measure less the penalty for the pieces in which the matches lie."""
    below = ALPHA * precision + (1 - ALPHA) * recall
    f = np.divide(precision * recall, below, out=np.zeros_like(below), where=below > 0)
    pieces = np.divide(chunks, matches, out=np.zeros_like(below), where=matches > 0)
    return np.asarray(f * (1 - GAMMA * pieces**BETA))
