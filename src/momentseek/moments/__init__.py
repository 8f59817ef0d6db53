"""The vocabulary: moments, judgements of them, ranked runs of them, and how far two overlap.

Names load on first use: a search needs few of them.
"""

from typing import TYPE_CHECKING

from momentseek.late import late_names

if TYPE_CHECKING:
    from momentseek.moments.captions import CaptionTable, captions_of
    from momentseek.moments.checks import POLICIES, DataFinding, Policy
    from momentseek.moments.corpus import Corpus
    from momentseek.moments.judgements import MAX_RELEVANCE, Judgements, Pools, Saliency
    from momentseek.moments.moment import Moment
    from momentseek.moments.overlap import iou, iou_hull
    from momentseek.moments.run import Run

__all__ = [
    "CaptionTable",
    "Corpus",
    "DataFinding",
    "Judgements",
    "MAX_RELEVANCE",
    "Moment",
    "POLICIES",
    "Policy",
    "Pools",
    "Run",
    "Saliency",
    "captions_of",
    "iou",
    "iou_hull",
]

__getattr__ = late_names(
    __name__,
    {
        "CaptionTable": "captions",
        "Corpus": "corpus",
        "DataFinding": "checks",
        "Judgements": "judgements",
        "MAX_RELEVANCE": "judgements",
        "Moment": "moment",
        "POLICIES": "checks",
        "Policy": "checks",
        "Pools": "judgements",
        "Run": "run",
        "Saliency": "judgements",
        "captions_of": "captions",
        "iou": "overlap",
        "iou_hull": "overlap",
    },
)
