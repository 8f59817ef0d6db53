"""Ranking of videos and spans from scores, in numpy: trained models and the library's search use the same functions."""

from momentseek.ranking.merge import merge
from momentseek.ranking.spans import Spans, best_spans, span_grid
from momentseek.ranking.suppress import suppress
from momentseek.ranking.times import END_TIMES, moments_of
from momentseek.ranking.top import Running, top, top_videos

__all__ = [
    "END_TIMES",
    "Running",
    "Spans",
    "best_spans",
    "merge",
    "moments_of",
    "span_grid",
    "suppress",
    "top",
    "top_videos",
]
