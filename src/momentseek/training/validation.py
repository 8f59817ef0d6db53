"""How good a model is while it is trained: it predicts a split, and its run is evaluated like any other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from momentseek.errors import MomentseekError
from momentseek.evaluation import evaluate
from momentseek.features.data import Data
from momentseek.models import CorpusModel
from momentseek.models.inference import predict
from momentseek.models.inference.encode import StageCallback
from momentseek.moments import Run
from momentseek.training.config import TrainConfig, summed_measures
from momentseek.training.prediction import DEFAULT_DEPTH, first_stage_run, needed_depth
from momentseek.training.warm_start import source_digest

VALIDATION_PROTOCOL = "paper"
"""Protocol whose rules the measures follow: the default of ``evaluate``."""


class Validation:
    """Measures models on splits of the data, with the config's task, end times and first stage."""

    protocol = VALIDATION_PROTOCOL

    def __init__(self, config: TrainConfig, data: Data) -> None:
        self.config, self.data = config, data
        self._first: dict[str, Run] = {}

    def run(
        self, model: CorpusModel, split: str, depth: int = DEFAULT_DEPTH, progress: StageCallback | None = None
    ) -> Run:
        """The run of a model on a split, ``depth`` moments per query."""
        training = self.config.training
        was = model.training
        try:
            return predict(
                model.eval(),
                self.data,
                self.data.split(split),
                k=depth,
                task=training.task,
                videos=self.first_stage(split) if training.task == "VCMR" else None,
                nms=training.nms,
                end_time=cast(Any, training.end_time),
                progress=progress,
            )
        finally:
            model.train(was)

    def measures(
        self, model: CorpusModel, split: str, names: Iterable[str], progress: StageCallback | None = None
    ) -> dict[str, float]:
        """The mean of each measure over the queries of a split, by name."""
        wanted = list(names)
        if not wanted:
            return {}
        run = self.run(model, split, needed_depth(wanted), progress)
        return evaluate(run, self.data.split(split).truth, wanted, protocol=VALIDATION_PROTOCOL, missing="zero").means

    def value(self, model: CorpusModel, progress: StageCallback | None = None) -> float:
        """The figure by which the best checkpoint is chosen: the measure (or their sum) on the validation split."""
        split, names = self.config.data.validate, summed_measures(self.config.training.measure)
        return float(sum(self.measures(model, split, names, progress).values()))

    def first_stage(self, split: str) -> Run | None:
        """The videos that another system found for a split's queries; None if the model ranks videos itself."""
        source = self.config.data.first_stage
        if source is None:
            return None
        if split not in self._first:
            self._first[split] = first_stage_run(source, self.data, split, self.config.model_config.videos)
        return self._first[split]

    @cached_property
    def first_stage_source(self) -> dict[str, str] | None:
        """Path and digest of the first stage, as it was before the first step; None if there is none."""
        source = self.config.data.first_stage
        if source is None or self.config.training.task != "VCMR":
            return None
        return {"path": source, "digest": source_digest(Path(source))}

    def check(self, model: CorpusModel) -> None:
        """Refuse, before training, a model that could not be measured, or a first stage that does not suit it."""
        task, source = self.config.training.task, self.config.data
        if not model.retrieves and task == "VR":
            raise MomentseekError(
                f"{self.config.model} ranks no videos and cannot be measured by them (task=VR); train for moments "
                "(task=VCMR with a first_stage, or task=SVMR)"
            )
        measured = [s for s in (source.validate, source.test if self.config.training.report else None) if s]
        bare = [s for s in measured if self.data.split(s).truth.pools is None]
        if not model.retrieves and task == "VCMR" and source.first_stage is None and bare:
            if len(bare) < len(measured):
                key, none = ("test", ", or test= for none") if bare == [source.test] else ("validate", "")
                raise MomentseekError(
                    f"{bare[0]} has no pools, and {self.config.model} ranks no videos; set {key}="
                    f"{self._with_pools(measured)}{none}"
                )
            raise MomentseekError(
                f"{self.config.model} searches videos that another model found; name its checkpoint or run "
                "(first_stage=PATH), measure it on pools (MVMR), or train for known videos (task=SVMR)"
            )
        if task == "VCMR":
            for split in measured:
                self.first_stage(split)
        _ = self.first_stage_source

    def _with_pools(self, used: Sequence[str]) -> str:
        """The name of a split with pools that is not used yet, for a message."""
        unused = [s for s in self.data.splits if s not in used]
        return next((s for s in unused if self.data.split(s).truth.pools is not None), "SPLIT (one with pools)")
