"""What a measure of captions is: what each caption adds to the figure, and the figure of what was added."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from momentseek.errors import MomentseekError
from momentseek.measures.alignment import Alignment
from momentseek.measures.captions.alignment import CaptionAlignment, Letters
from momentseek.measures.measure import Measure
from momentseek.moments.arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class CaptionMeasure(Measure):
    """A measure of one caption per moment against the moment's references.

    ``statistics`` has a row per moment; ``figures`` turns rows, or sums of rows, into figures. So one caption, a group
    of them, a resample and the whole corpus are measured alike, whether the figure is a mean (CIDEr-D, ROUGE-L) or
    not (BLEU, METEOR).
    """

    letters: Letters = "ascii"

    def __call__(self, view: Alignment) -> FloatArray:
        """Refuse: ranked moments have no captions."""
        raise MomentseekError(
            f"measure {self.name} compares captions, but {view.run.source} holds ranked moments; "
            "give captions and references, or choose another measure"
        )

    @abstractmethod
    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """What each moment's caption adds, ``(moments, columns)``."""

    @abstractmethod
    def figures(self, sums: FloatArray) -> FloatArray:
        """The figure of each row of (summed) statistics."""


@dataclass(frozen=True, kw_only=True)
class MeanCaptionMeasure(CaptionMeasure):
    """A measure of captions whose figure is the mean of what each caption scores."""

    @abstractmethod
    def scores(self, view: CaptionAlignment) -> FloatArray:
        """The score of each moment's caption."""

    def statistics(self, view: CaptionAlignment) -> FloatArray:
        """The score of each caption, alone in its row."""
        return self.scores(view)[:, None]

    def figures(self, sums: FloatArray) -> FloatArray:
        """The scores themselves."""
        return sums[:, 0]
