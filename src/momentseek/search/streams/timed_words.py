"""Hits of texts with times (lines on screen, captions of scenes) that hold the words of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.search.hit import StreamHit
from momentseek.search.streams.word_weights import word_level


class TimedText(Protocol):
    """A text with its times."""

    @property
    def start(self) -> float: ...

    @property
    def end(self) -> float: ...

    @property
    def text(self) -> str: ...

    @property
    def at(self) -> float:
        """Time in seconds of the frame to show."""


class TimedMatch(Protocol):
    """A text that holds words of a query."""

    @property
    def video(self) -> int: ...

    @property
    def line(self) -> TimedText: ...

    @property
    def bm25(self) -> float: ...


def word_hits(
    matches: Sequence[TimedMatch], values: NDArray[np.float64], weight: NDArray[np.float64], *, only_here: bool
) -> list[StreamHit]:
    """StreamHits of texts with times, best first; ``values`` ``(texts, words)`` says which has which word.

    ``only_here`` says that the words were asked for in these texts; else they may also be about the picture, and weak
    hits are left out.
    """
    out = []
    for group in join_lines(matches, values):
        value = values[group].max(axis=0)
        share = float((weight * value).sum() / weight.sum())
        level = word_level(share, int((value == 1).sum()), only_here)
        if level == "weak" and not only_here:
            continue
        bm25 = max(matches[i].bm25 for i in group)
        score = float((weight * value).sum()) + bm25 / (1 + bm25)  # weight decides, BM25 breaks its ties
        lines = [matches[i].line for i in group]
        best = lines[int(np.argmax((values[group] * weight).sum(axis=1)))]
        start, end = max(line.start for line in lines), min(line.end for line in lines)
        peak = min(max(best.at, start), end)
        out.append(StreamHit(matches[group[0]].video, start, end, score, level, peak))
    return sorted(out, key=lambda hit: (-hit.score, hit.video, hit.start, hit.end))


def join_lines(matches: Sequence[TimedMatch], values: NDArray[np.float64]) -> list[list[int]]:
    """Join lines that stand in the picture together and bring missing words; returns positions by group."""
    order = sorted(range(len(matches)), key=lambda i: (-values[i].sum(), matches[i].video, matches[i].line.start, i))
    groups: list[list[int]] = []
    by_video: dict[int, list[list[int]]] = {}
    for i in order:
        line = matches[i].line
        for group in by_video.get(matches[i].video, ()):
            start = max(matches[j].line.start for j in group)
            end = min(matches[j].line.end for j in group)
            brings = (values[i] > values[group].max(axis=0)).any()
            if brings and line.start < end and start < line.end:
                group.append(i)
                break
        else:
            groups.append([i])
            by_video.setdefault(matches[i].video, []).append(groups[-1])
    return groups
