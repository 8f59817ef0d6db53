"""How far two splits hold the same videos and pairs: equal counts alone prove nothing.

Clipping ends to the video before re-splitting Charades gives 1,441 videos and 3,375 pairs instead of 1,442 and 3,375,
and yet only 86 % of them are the published ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from momentseek.moments import Judgements


@dataclass(frozen=True, slots=True)
class Overlap:
    """The sizes of two collections and of what they share."""

    ours: int
    theirs: int
    both: int

    @property
    def precision(self) -> float:
        """The share of our items that are also theirs."""
        return self.both / self.ours if self.ours else 0.0

    @property
    def recall(self) -> float:
        """The share of their items that are also ours."""
        return self.both / self.theirs if self.theirs else 0.0

    @property
    def iou(self) -> float:
        """Number of shared items divided by the number of all items."""
        union = self.ours + self.theirs - self.both
        return self.both / union if union else 1.0


@dataclass(frozen=True, slots=True)
class Membership:
    """How far one split and a published one hold the same videos and pairs."""

    split: str
    reference: str
    videos: Overlap
    pairs: Overlap


def overlap(ours: Iterable[Hashable], theirs: Iterable[Hashable]) -> Overlap:
    """Count what two collections share, including repeats.

    >>> both = overlap("aab", "abbc")
    >>> both, both.precision, both.recall, both.iou
    (Overlap(ours=3, theirs=4, both=2), 0.6666666666666666, 0.5, 0.4)
    """
    one, two = Counter(ours), Counter(theirs)
    return Overlap(one.total(), two.total(), (one & two).total())


def compare_membership(split: str, ours: Judgements, theirs: Judgements) -> Membership:
    """Compare a split with a published one: videos by name, pairs by video and times (spellings of sentences vary)."""
    return Membership(
        split,
        theirs.source,
        overlap(set(_video_names(ours)), set(_video_names(theirs))),
        overlap(_pairs(ours), _pairs(theirs)),
    )


def _video_names(table: Judgements) -> list[str]:
    return [table.videos[code] for code in table.video.tolist()]


def _pairs(table: Judgements) -> Iterable[Hashable]:
    return zip(_video_names(table), table.start.tolist(), table.end.tolist(), strict=True)
