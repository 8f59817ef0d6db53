"""Losses that models share, one file each. They give one value per pair; ``weighted_mean`` makes one number of them."""

from momentseek.models.losses.frame_contrast import frame_contrast
from momentseek.models.losses.hinge import hinge, ranking_hinge
from momentseek.models.losses.mil_nce import mil_nce
from momentseek.models.losses.negatives import Negatives, draw_negatives
from momentseek.models.losses.positives import RelatedMasks, related_masks
from momentseek.models.losses.span_cross_entropy import span_cross_entropy
from momentseek.models.losses.weighting import WEIGHTINGS, pair_weights, weighted_mean

__all__ = [
    "WEIGHTINGS",
    "Negatives",
    "RelatedMasks",
    "draw_negatives",
    "frame_contrast",
    "hinge",
    "mil_nce",
    "ranking_hinge",
    "related_masks",
    "span_cross_entropy",
    "weighted_mean",
    "pair_weights",
]
