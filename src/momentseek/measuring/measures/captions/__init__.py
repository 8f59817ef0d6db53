"""Measures that compare a system's captions with people's, one module each."""

from __future__ import annotations

from momentseek.measuring.measures.captions import bleu, cider, meteor, meteor_exact, rouge_l
from momentseek.measuring.measures.captions.measure import CaptionAlignment, CaptionMeasure

__all__ = ["CaptionAlignment", "CaptionMeasure", "bleu", "cider", "meteor", "meteor_exact", "rouge_l"]
