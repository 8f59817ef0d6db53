"""One file per measure, a grammar for their names, and the protocols that fix their options."""

from momentseek.measures.alignment import Alignment
from momentseek.measures.axiou import AxIoU
from momentseek.measures.dcg import DCG
from momentseek.measures.discounted_recall import DiscountedRecall
from momentseek.measures.grammar import expand, parse, parse_all
from momentseek.measures.hit import HitRate
from momentseek.measures.judged import JudgedShare
from momentseek.measures.mean_average_precision import MeanAveragePrecision
from momentseek.measures.mean_iou import MeanIoU
from momentseek.measures.measure import MEASURES, Measure
from momentseek.measures.ndcg import NDCG
from momentseek.measures.precision import AveragePrecision
from momentseek.measures.protocols import PROTOCOLS, Protocol, protocol_named
from momentseek.measures.recall import Recall
from momentseek.measures.saliency_precision import SaliencyAP

__all__ = [
    "Alignment",
    "AveragePrecision",
    "AxIoU",
    "DCG",
    "DiscountedRecall",
    "HitRate",
    "JudgedShare",
    "MEASURES",
    "MeanAveragePrecision",
    "MeanIoU",
    "Measure",
    "NDCG",
    "PROTOCOLS",
    "Protocol",
    "Recall",
    "SaliencyAP",
    "expand",
    "parse",
    "parse_all",
    "protocol_named",
]
