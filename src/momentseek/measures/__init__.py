"""One file per measure, a grammar for their names, and the protocols that fix their options."""

from momentseek.measures.alignment import Alignment
from momentseek.measures.captions import CaptionAlignment, CaptionMeasure
from momentseek.measures.grammar import expand, parse, parse_all
from momentseek.measures.measure import MEASURES, Measure
from momentseek.measures.protocols import PROTOCOLS, Protocol

MEASURES.load()

__all__ = [
    "Alignment",
    "CaptionAlignment",
    "CaptionMeasure",
    "MEASURES",
    "Measure",
    "PROTOCOLS",
    "Protocol",
    "expand",
    "parse",
    "parse_all",
]
