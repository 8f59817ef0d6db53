"""What models are trained to make small, one file each. Functions give one value per pair; ``weighted`` joins them."""

from momentseek.models.losses.frame_contrast import frame_contrast
from momentseek.models.losses.hinge import hinge, ranking_hinge
from momentseek.models.losses.info_nce import info_nce, mil_nce
from momentseek.models.losses.negatives import Negatives, drawn
from momentseek.models.losses.positives import Related, related
from momentseek.models.losses.span_cross_entropy import span_cross_entropy
from momentseek.models.losses.weighting import WEIGHTINGS, weighted, weights

__all__ = [
    "WEIGHTINGS",
    "Negatives",
    "Related",
    "drawn",
    "frame_contrast",
    "hinge",
    "info_nce",
    "mil_nce",
    "ranking_hinge",
    "related",
    "span_cross_entropy",
    "weighted",
    "weights",
]
