"""Measures, one module each, the grammar of their names, and the protocols that set their options."""

from __future__ import annotations

from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.captions import CaptionAlignment, CaptionMeasure
from momentseek.measuring.measures.grammar import PROTOCOLS, Protocol, expand, parse, parse_all
from momentseek.measuring.measures.measure import MEASURES, Measure

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
