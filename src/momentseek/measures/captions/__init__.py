"""Measures of captions, one file each: do a system's words say what people's do?"""

from momentseek.measures.captions import bleu, cider, meteor, meteor_exact, rouge_l
from momentseek.measures.captions.alignment import CaptionAlignment
from momentseek.measures.captions.measure import CaptionMeasure

__all__ = ["CaptionAlignment", "CaptionMeasure", "bleu", "cider", "meteor", "meteor_exact", "rouge_l"]
