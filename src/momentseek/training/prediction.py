"""What a trained model answers to the queries of a split: a checkpoint, its data and its own settings make a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.features.data import Data, open_data
from momentseek.formats import read_run
from momentseek.measures import parse_all
from momentseek.models.inference import from_run, predict
from momentseek.models.inference.encode import StageCallback
from momentseek.moments import Run
from momentseek.moments.arrays import IntArray
from momentseek.training.checkpoint import load_checkpoint, refuse_other_dims
from momentseek.training.folder import is_checkpoint
from momentseek.training.processes import torch_device

DEFAULT_DEPTH = 40
"""Moments predicted per query unless a measure looks deeper: TVR-Ranking's deepest cut-off."""
POOL_DEPTH = 50
"""Moments predicted per query of a split with pools, at least: MVMR's deepest cut-off."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The run of a trained model on a split, and how it was made."""

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
    device: str | None = None,
    progress: StageCallback | None = None,
) -> Prediction:
    """Answer the queries of a split with the model of a checkpoint, a file or the folder of a training run.

    ``task`` is VCMR (moments in all videos), SVMR (moments in the right video) or VR (videos); by default VCMR for a
    split with pools, else what the model was trained for. ``top`` is the number of predictions per query: by default
    40 (50 in pools), or as many as the measures of the training report need. ``videos`` names another model's
    checkpoint, or a run, whose first ``first`` videos of each query are searched. ``whole_corpus`` searches all videos
    although the split has a pool for each query. ``nms`` drops moments that overlap a better one of their video by
    more than this IoU. ``device`` is cpu, cuda, … or auto; by default as in training.
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
                f"{chosen} does not search the videos of another model; leave out {'`videos`' if videos else '`first`'}"
            )
        if chosen == "VR" and not trained.model.retrieves:
            raise MomentseekError(
                f'{source}: {trained.config.model} ranks no videos; ask for moments (task="VCMR" or "SVMR")'
            )
        stage = str(videos or trained.config.data.first_stage or "") if chosen == "VCMR" else ""
        if stage and has_pools and whole_corpus and is_checkpoint(Path(stage)):
            raise MomentseekError(
                f'{stage}: would find videos of each query\'s pool only; let it write a run (task="VR", '
                "whole_corpus=True) and give that (`videos`)"
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
        return Prediction(
            run,
            trained.config.model,
            trained.step,
            chosen,
            stage or None,
            pooled and chosen != "SVMR",
            fewer[0],
            opened.simulated,
        )


def first_stage_run(source: str, data: Data, split: str, depth: int) -> Run:
    """Videos for each query of a split: read from a run's file, or found by the model of a checkpoint."""
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
    """Moments per query that measures look at, and at least ``DEFAULT_DEPTH``.

    >>> needed_depth(["NDCG@20[IoU>=0.5]"]), needed_depth(["R@{1,100}[IoU>=0.5]"])
    (40, 100)
    """
    return max([DEFAULT_DEPTH, *(measure.reach or 0 for measure in parse_all(measures))])
