"""Predict the moments of a split with a trained model, measure them, and write the report of a training run."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from momentseek import __version__
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import IntArray
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import HIGHLIGHTS, evaluate
from momentseek.measuring.formats import read_run
from momentseek.measuring.measures import parse_all
from momentseek.models.features.data import Data, open_data
from momentseek.models.inference.encode import StageCallback
from momentseek.models.inference.first_stage import from_run
from momentseek.models.inference.prediction import predict, summarise
from momentseek.models.layers.highlights import HighlightConfig
from momentseek.models.model import CorpusModel, ModelConfig
from momentseek.models.training.captions import NetworkValidation
from momentseek.models.training.checkpoint import load_captioner, load_checkpoint, refuse_other_dims
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import REPORT_FILE, is_checkpoint
from momentseek.models.training.processes import torch_device
from momentseek.models.training.warm_start import source_digest

DEFAULT_DEPTH = 40
"""Minimum number of moments predicted per query: TVR-Ranking's largest cutoff. Measures can ask for more."""
POOL_DEPTH = 50
"""Minimum number of moments predicted per query of a split with pools: MVMR's largest cutoff."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The run of a trained model on a split, and the settings it was predicted with."""

    run: Run
    model: str
    """Name of the model, such as ``xml``."""
    step: int
    """Training steps that the checkpoint had taken."""
    task: str
    """``VCMR``, ``SVMR`` or ``VR``."""
    first_stage: str | None
    """Checkpoint or run whose videos were searched; None if the model ranked the videos itself."""
    in_pools: bool
    """Whether each query searched only the videos of its pool."""
    queries_with_fewer_videos: int
    """Queries that searched fewer videos than ``first`` asked for; 0 if it was not given."""
    simulated: bool
    """Whether the data are simulated."""
    joined_streams: bool = False
    """Whether imported weights that know no ``streams`` normalised several files of video features as one."""

    def figures(self) -> dict[str, str | int | bool]:
        """The task and the counts of the prediction."""
        return {
            "task": self.task,
            "queries": len(self.run),
            "moments": len(self.run.start),
            "pools": self.in_pools,
            "queries_with_fewer_videos": self.queries_with_fewer_videos,
            "simulated": self.simulated,
        }


def predict_split(
    checkpoint: str | os.PathLike[str],
    data: Data | str | os.PathLike[str],
    split: str,
    *,
    task: str | None = None,
    top: int | None = None,
    videos: str | os.PathLike[str] | None = None,
    first: int | None = None,
    whole_corpus: bool = False,
    nms: float | None = None,
    summary: float | None = None,
    device: str | None = None,
    progress: StageCallback | None = None,
) -> Prediction:
    """Predict moments for the queries of a split with a checkpoint (a file, or the folder of a training run).

    ``task`` is VCMR (moments in all videos), SVMR (moments in the right video) or VR (videos). It defaults to VCMR for
    a split with pools, else to the task the model was trained for. ``top`` is the number of predictions per query: by
    default 40 (50 in pools), or as many as the measures of the training report need. ``videos`` names the checkpoint
    of another model, or a run, whose first ``first`` videos of each query are searched. ``whole_corpus`` searches all
    videos even if the split has a pool for each query. ``nms`` drops moments that overlap a better one in their video
    by more than this IoU. With ``summary``, the predictions are the most salient clips of each video, up to this share
    of its duration. ``device`` is cpu, cuda, … or auto; by default the one of training.
    """
    trained = load_checkpoint(checkpoint)
    training, source = trained.config.training, str(checkpoint)
    with open_data(data) as opened:
        opened.use(trained.model.config.modalities)
        opened.check([split])
        refuse_other_dims(trained, opened, split, source)
        has_pools = opened.split(split).truth.pools is not None
        pooled = has_pools and not whole_corpus
        chosen = task or ("VCMR" if has_pools else training.task)
        if chosen != "VCMR" and (videos or first):
            raise MomentseekError(
                f"{chosen} does not search the videos of another model; leave out "
                f"{parameter('videos' if videos else 'first')}"
            )
        if chosen == "VR" and not trained.model.retrieves:
            raise MomentseekError(
                f"{source}: {trained.config.model} ranks no videos; ask for moments "
                f"({parameter('task', 'VCMR', 'SVMR')})"
            )
        stage = str(videos or trained.config.data.first_stage or "") if chosen == "VCMR" else ""
        if stage and has_pools and whole_corpus and is_checkpoint(Path(stage)):
            raise MomentseekError(
                f"{stage}: would find videos of each query's pool only; let it write a run ({parameter('task', 'VR')}, "
                f"{parameter('whole_corpus', True)}) and give that ({parameter('videos')})"
            )
        fewer: list[int] = []

        def count_fewer(searched: IntArray) -> None:
            fewer.append(int(np.count_nonzero(searched < (first or 0))))

        run = predict(
            trained.model.to(torch_device(device or training.device)),
            opened,
            opened.split(split),
            k=top or max(needed_depth(training.report), POOL_DEPTH if pooled else 1),
            task=chosen,
            videos=first_stage_run(stage, opened, split, first or trained.model.config.videos) if stage else None,
            first=first,
            pools=not whole_corpus,
            nms=training.nms if nms is None else nms,
            end_time=cast(Any, training.end_time),
            progress=progress,
            searched=count_fewer,
        )
        if summary is not None:
            run = summarise(run, opened, trained.model.config, summary)
        return Prediction(
            run=run,
            model=trained.config.model,
            step=trained.step,
            task=chosen,
            first_stage=stage or None,
            in_pools=pooled and chosen != "SVMR",
            queries_with_fewer_videos=fewer[0],
            simulated=opened.simulated,
            joined_streams=trained.imported and _joins_streams(trained.model.config, opened),
        )


def _joins_streams(config: ModelConfig, data: Data) -> bool:
    """Whether a model of Moment-DETR's family, whose public code normalises each file, normalises several as one."""
    several = data.video is not None and len(data.video.streams) > 1
    return several and isinstance(config, HighlightConfig) and config.normalise and not config.streams


def first_stage_run(source: str, data: Data, split: str, depth: int) -> Run:
    """The videos for each query of a split, read from a run's file or found by the model of a checkpoint."""
    path = Path(source)
    if is_checkpoint(path):
        trained = load_checkpoint(path)
        refuse_other_dims(trained, data, split, source)
        if not trained.model.retrieves:
            raise MomentseekError(
                f"{path}: {trained.config.model} ranks no videos; name a model that does, such as xml, or a run"
            )
        return predict(trained.model, data, data.split(split), k=depth, task="VR")
    run = read_run(path)
    queried = data.split(split)
    missing = [query for query in queried.truth.query_ids if query not in run]
    if missing:
        raise MomentseekError(
            f"{path}: says nothing of query {missing[0]} of split {split}; give a first stage for all its queries"
        )
    places = {name: i for i, name in enumerate(queried.corpus)}
    from_run(run, queried.truth.query_ids, places, depth)  # refuses videos that are not in the corpus
    return run


def needed_depth(measures: Iterable[str]) -> int:
    """Number of moments per query that the measures need, at least ``DEFAULT_DEPTH``.

    >>> needed_depth(["NDCG@20[IoU>=0.5]"]), needed_depth(["R@{1,100}[IoU>=0.5]"])
    (40, 100)
    """
    return max([DEFAULT_DEPTH, *(measure.max_rank or 0 for measure in parse_all(measures))])


class Validation(NetworkValidation):
    """Evaluates models on splits of the data, with the config's task, end times and first stage."""

    protocol = "paper"

    def __init__(self, config: TrainConfig, data: Data) -> None:
        super().__init__(config, data)
        self._first: dict[str, Run] = {}

    def run(
        self,
        model: CorpusModel,
        split: str,
        depth: int = DEFAULT_DEPTH,
        progress: StageCallback | None = None,
        *,
        saliency: bool = True,
    ) -> Run:
        """Predict ``depth`` moments per query of a split, with the clips' ``saliency`` if the model rates clips."""
        training = self.config.training
        return predict(
            model,
            self.data,
            split,
            k=depth,
            task=training.task,
            videos=self.first_stage(split) if training.task == "VCMR" else None,
            nms=training.nms,
            end_time=cast(Any, training.end_time),
            saliency=saliency,
            progress=progress,
        )

    def measures(
        self, model: CorpusModel, split: str, names: Sequence[str], progress: StageCallback | None = None
    ) -> dict[str, float]:
        """The mean of each measure over the queries of a split, by name.

        Measures of highlights are left out for models that rate no clips.
        """
        highlights = [n for n in names if any(measure.NAME in HIGHLIGHTS for measure in parse_all([n]))]
        asked = [n for n in names if model.rates_clips or n not in highlights]
        if not asked:
            return {}
        rated = model.rates_clips and bool(highlights)
        run = self.run(model, split, needed_depth(asked), progress, saliency=rated)
        return evaluate(run, self.data.split(split).truth, asked, protocol=self.protocol, missing="zero").means

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
        """Path and digest of the first stage before the first step; None if there is none."""
        source = self.config.data.first_stage
        if source is None or self.config.training.task != "VCMR":
            return None
        return {"path": source, "digest": source_digest(Path(source))}

    def check(self, model: CorpusModel) -> None:
        """Refuse, before training, a model that cannot be measured, or a first stage that does not fit its splits."""
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


def write_report(
    out: Path,
    validation: NetworkValidation,
    counts: Mapping[str, Any],
    stopped: str,
    progress: StageCallback | None = None,
) -> dict[str, Any]:
    """Evaluate the best checkpoint on the validation and the test split, and write report.json."""
    config, data = validation.config, validation.data
    names, splits = list(config.training.report), [s for s in (config.data.validate, config.data.test) if s]
    model = load_captioner(out).model if config.describes else load_checkpoint(out).model
    scores = {split: validation.measures(model, split, names, progress) for split in splits}
    report = {
        "model": config.model,
        "train": config.data.train,
        "began_from": counts.get("begun"),
        "first_stage": validation.first_stage_source,
        "seed": config.training.seed,
        "measure": config.training.measure,
        "best": counts["best"],
        "best_step": counts["best_step"],
        "steps": counts["step"],
        "stopped": stopped,
        "seconds": round(counts["seconds"], 1),
        "parameters": sum(p.numel() for p in model.parameters()),
        "protocol": validation.protocol,
        "scores": scores,
        "data": {
            "name": data.name,
            "fingerprint": data.fingerprint_of([config.data.train, *scores]),
            "simulated": data.simulated,
        },
        "versions": {"momentseek": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "config": config.table(),
    }
    write_bytes(out / REPORT_FILE, (json.dumps(report, indent=2, ensure_ascii=False) + "\n").encode())
    return report


def read_report(out: Path) -> dict[str, Any] | None:
    """The report of a finished training run; None if there is none yet."""
    try:
        found = json.loads((out / REPORT_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as e:
        raise MomentseekError(
            f"{out / REPORT_FILE}: cannot be read ({e}); delete it and continue ({parameter('resume')})"
        ) from None
    if not isinstance(found, dict):
        raise MomentseekError(
            f"{out / REPORT_FILE}: is no report of a training run; delete it and continue ({parameter('resume')})"
        )
    return found
