"""How good a captioner is while it is trained: it describes a split, and its captions are measured like any others."""

from __future__ import annotations

from collections.abc import Iterable

from momentseek.errors import MomentseekError
from momentseek.evaluation import evaluate
from momentseek.features.data import Data
from momentseek.models.captioner import Captioner
from momentseek.models.inference.encode import StageCallback
from momentseek.training.captions.description import describe_moments
from momentseek.training.captions.moments import CaptionMoments
from momentseek.training.config import TrainConfig, summed_measures

CAPTION_PROTOCOL = "tvc"
"""Protocol whose rules the measures of captions follow."""


class CaptionValidation:
    """Measures captioners on splits of the data."""

    protocol = CAPTION_PROTOCOL
    first_stage_source = None

    def __init__(self, config: TrainConfig, data: Data) -> None:
        self.config, self.data = config, data
        self._moments: dict[str, CaptionMoments] = {}

    def moments(self, split: str) -> CaptionMoments:
        """The moments of a split, read once."""
        if split not in self._moments:
            found = CaptionMoments(self.data, self.data.captions(split), self.config.captioner_config.preparation)
            if not len(found.split.table.captions):
                raise MomentseekError(
                    f"{found.split.table.source}: has no captions to compare with; name another split to measure on"
                )
            self._moments[split] = found
        return self._moments[split]

    def measures(
        self, model: Captioner, split: str, names: Iterable[str], progress: StageCallback | None = None
    ) -> dict[str, float]:
        """The measures of a captioner on a split, by name."""
        wanted = list(names)
        if not wanted:
            return {}
        moments = self.moments(split)
        was = model.training
        try:
            described = describe_moments(model.eval(), moments, progress=progress)
        finally:
            model.train(was)
        return evaluate(described, moments.split.table, wanted, protocol=self.protocol, missing="zero").means

    def value(self, model: Captioner, progress: StageCallback | None = None) -> float:
        """The figure by which the best checkpoint is chosen: the measure (or their sum) on the validation split."""
        split, names = self.config.data.validate, summed_measures(self.config.training.measure)
        return float(sum(self.measures(model, split, names, progress).values()))
