"""What a model is worth while it is trained: it predicts a split as anybody would, and is measured as any run is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from momentseek.errors import MomentseekError
from momentseek.evaluation import evaluate
from momentseek.features.data import Data
from momentseek.formats import read_run
from momentseek.measures import parse_all
from momentseek.models import CorpusModel
from momentseek.models.inference import from_run, predict
from momentseek.moments import Run
from momentseek.training.beginning import digest_of
from momentseek.training.config import TrainConfig, measures_of

Progress = Callable[[str, int, int], None]
DEPTH = 40
"""Moments predicted per query unless a measure looks deeper; TVR-Ranking's deepest cut-off."""
PROTOCOL = "paper"
"""Whose rules the measures follow: ``evaluate``'s default."""


def depth_for(measures: Iterable[str]) -> int:
    """Moments per query that these measures need.

    >>> depth_for(["NDCG@20[IoU>=0.5]"]), depth_for(["R@{1,100}[IoU>=0.5]"])
    (40, 100)
    """
    return max([DEPTH, *(m.reach or 0 for m in parse_all(measures))])


class Validation:
    """Measures models on splits of the data, with the config's task, end times and first stage."""

    def __init__(self, config: TrainConfig, data: Data) -> None:
        self.config, self.data = config, data
        self._first: dict[str, Run] = {}

    def run(self, model: CorpusModel, split: str, depth: int = DEPTH, progress: Progress | None = None) -> Run:
        """What the model returns for the queries of a split."""
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
        self, model: CorpusModel, split: str, names: Iterable[str], progress: Progress | None = None
    ) -> dict[str, float]:
        """Means of measures on a split, by name."""
        wanted = list(names)
        if not wanted:
            return {}
        run = self.run(model, split, depth_for(wanted), progress)
        return evaluate(run, self.data.split(split).truth, wanted, protocol=PROTOCOL, missing="zero").means

    def value(self, model: CorpusModel, progress: Progress | None = None) -> float:
        """What checkpoints are chosen by: the config's measure (or sum of measures) on the validation split."""
        split, names = self.config.data.validate, measures_of(self.config.training.measure)
        return float(sum(self.measures(model, split, names, progress).values()))

    def first_stage(self, split: str) -> Run | None:
        """The videos another system found, where the config names one; None if the model ranks them itself."""
        source = self.config.data.first_stage
        if source is None:
            return None
        if split not in self._first:
            self._first[split] = first_stage(source, self.data, split, self.config.model_config.videos)
        return self._first[split]

    @cached_property
    def found_by(self) -> dict[str, str] | None:
        """The first stage and a digest of it, as it was before the first step; None if none is searched."""
        source = self.config.data.first_stage
        if source is None or self.config.training.task != "VCMR":
            return None
        return {"path": source, "digest": digest_of(Path(source))}

    def check(self, model: CorpusModel) -> None:
        """Refuse, before training, a model that could not be measured, or a first stage that would not do for it."""
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
        _ = self.found_by

    def _with_pools(self, used: Sequence[str]) -> str:
        """A split with pools, for a sentence; one that is not used yet, if there is one."""
        unused = [s for s in self.data.splits if s not in used]
        return next((s for s in unused if self.data.split(s).truth.pools is not None), "SPLIT (one with pools)")


def first_stage(source: str, data: Data, split: str, depth: int) -> Run:
    """Videos for each query of a split: of a run file, or found by the model of a checkpoint."""
    from momentseek.training.checkpoint import load
    from momentseek.training.setup import refuse_other_dims

    path = Path(source)
    if path.is_dir() or path.suffix == ".safetensors":
        found = load(path)
        refuse_other_dims(found, data, split, source)
        if not found.model.retrieves:
            raise MomentseekError(
                f"{path}: {found.config.model} ranks no videos; name a model that does, such as xml, or a run"
            )
        return predict(found.model, data, data.split(split), k=depth, task="VR")
    run = read_run(path)
    missing = [q for q in data.split(split).truth.query_ids if q not in run]
    if missing:
        raise MomentseekError(
            f"{path}: says nothing of query {missing[0]} of split {split}; give a first stage for all its queries"
        )
    of = data.split(split)
    from_run(run, of.truth.query_ids, {name: i for i, name in enumerate(of.corpus)}, depth)  # refuses other videos
    return run
