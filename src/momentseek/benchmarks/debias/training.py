"""Train the models of a debias report for every seed, and predict both splits.

Each model has a folder ``runs/LABEL-SEED`` with the training run and its predictions as ``SPLIT.jsonl``. Finished work
is not repeated; ``predictions.json`` records which weights and data the predictions are from.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from momentseek import __version__
from momentseek.benchmarks.debias.systems import ModelEntrant, TrainedEntrant
from momentseek.cluster.tasks import ClusterTask
from momentseek.cluster.training import in_data
from momentseek.core.atomic import write_all
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import FORMATS, read_run
from momentseek.models.features.data import Data
from momentseek.models.registry import MODELS
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import (
    BEST_CHECKPOINT,
    LAST_CHECKPOINT,
    REPORT_FILE,
    TrainingCallback,
    find_checkpoint,
)
from momentseek.models.training.prediction import predict_split, read_report
from momentseek.models.training.presets import configure
from momentseek.models.training.processes import thread_count
from momentseek.models.training.session import train_or_read

PREDICTIONS_PER_QUERY = 10
"""Number of moments kept per query; the report only uses the first, but others may want more."""
STAMPS_FILE = "predictions.json"
DEFAULT_TABLE: dict[str, Any] = {
    "training": {
        "task": "SVMR",
        "measure": "dR@1[IoU>=0.5]",
        "report": ["R@1[IoU>={0.3,0.5,0.7}]", "dR@1[IoU>={0.3,0.5,0.7}]"],
    }
}
"""Default settings without a preset: moments in the right video (SVMR), selected by discounted recall."""


@dataclass(frozen=True)
class DebiasTask:
    """One model of the report: settings to train it in ``folder``, or a checkpoint that exists already."""

    label: str
    folder: Path
    config: TrainConfig | None = None
    checkpoint: Path | None = None


def debias_tasks(
    entrants: Iterable[ModelEntrant | TrainedEntrant],
    sections: dict[str, Any],
    assignments: Sequence[str],
    seeds: int,
    out: Path,
    where: str = "config",
    data: str | None = None,
) -> list[DebiasTask]:
    """Return one task per model and seed, with all settings checked; nothing is trained yet."""
    found: list[DebiasTask] = []
    for each in entrants:
        if isinstance(each, ModelEntrant):
            if each.name not in MODELS and Path(each.name).is_dir():
                raise MomentseekError(f"{each.name}: is a folder, not a model; to take its checkpoint: ./{each.name}")
            config = configure(sections, each.name, [*assignments, *each.settings], where)
            if data is not None:
                config = replace(config, data=replace(config.data, path=data))
            for seed in range(config.training.seed, config.training.seed + seeds):
                seeded = replace(config, training=replace(config.training, seed=seed))
                found.append(DebiasTask(each.label, out / f"{folder_name(each.label)}-{seed}", config=seeded))
        else:
            for path in checkpoints(Path(each.path)):
                earlier = sum(p.label == each.label for p in found)
                found.append(DebiasTask(each.label, out / f"{folder_name(each.label)}-{earlier}", checkpoint=path))
    labels: dict[Path, str] = {}
    for one in found:
        if labels.setdefault(one.folder, one.label) != one.label:
            raise MomentseekError(
                f"{one.label!r} and {labels[one.folder]!r} would both be kept in {one.folder}; give one another name "
                "(NAME=MODEL)"
            )
    return found


def checkpoints(path: Path) -> list[Path]:
    """Return the checkpoint of a finished training run (or the file itself), or those of its ``seed-N`` folders."""
    if not path.is_dir():
        return [find_checkpoint(path)]
    seeds = sorted(path.glob("seed-*"), key=lambda p: (len(p.name), p.name))
    if seeds and not (path / BEST_CHECKPOINT).is_file():
        return [_finished_checkpoint(seed) for seed in seeds]
    return [_finished_checkpoint(path)]


def carry_out_task(
    task: DebiasTask,
    data: Data,
    splits: Sequence[str],
    *,
    progress: TrainingCallback | None = None,
) -> tuple[Run, ...] | None:
    """Train the model, unless it is trained already, and predict each split; None if training was stopped."""
    checkpoint = task.checkpoint
    if task.config is not None:
        report, _ = train_or_read(task.config, data, task.folder, progress=progress)
        if not report:
            return None
        checkpoint = find_checkpoint(task.folder)
    assert checkpoint is not None
    return tuple(predict_or_read(checkpoint, data, split, task.folder) for split in splits)


def cluster_tasks(tasks: Sequence[DebiasTask], data: Data, splits: Sequence[str]) -> list[ClusterTask]:
    """Return one cluster task per model, which trains it and predicts the splits unless that is done already."""
    return [
        ClusterTask(
            task.folder.name,
            in_data,
            (thread_count(task.config), data.location, _answer_splits, task, tuple(splits)),
            processors=thread_count(task.config),
        )
        for task in tasks
    ]


def _answer_splits(data: Data, task: DebiasTask, splits: Sequence[str]) -> None:
    if carry_out_task(task, data, splits) is None:
        raise MomentseekError("it was stopped and saved; the same command continues")


def predict_or_read(checkpoint: Path, data: Data, split: str, folder: Path) -> Run:
    """Predict moments in the right video of each query, or read them if ``folder`` already has the same predictions."""
    target, stamps = folder / f"{split}.jsonl", _stamps(folder)
    stamp = {
        "weights": hashlib.sha256(checkpoint.read_bytes()).hexdigest()[:16],
        "data": data.fingerprint_of([split]),
        "momentseek": __version__,
    }
    if stamps.get(split) == stamp and target.is_file():
        return read_run(target)
    run = predict_split(checkpoint, data, split, task="SVMR", top=PREDICTIONS_PER_QUERY).run
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**stamps, split: stamp}, indent=2) + "\n"
    write_all({target: FORMATS["native-run"].to_bytes((run,)), folder / STAMPS_FILE: text.encode()})
    return run


def folder_name(label: str) -> str:
    """Convert a label to a folder name, without characters that file systems or shells treat specially.

    >>> folder_name("mdd[confounders=L*A, tree=true]"), folder_name("base + EM")
    ('mdd-confounders=L-A-tree=true', 'base-+-EM')
    """
    kept = "".join(c if c.isalnum() or c in "=+._" else "-" for c in label)
    return "-".join(part for part in kept.split("-") if part).strip(".") or "run"


def _finished_checkpoint(folder: Path) -> Path:
    """Return the checkpoint of a training run; a run that was stopped before its end raises an error."""
    file = find_checkpoint(folder)
    if read_report(folder) is not None:
        return file
    if (folder / LAST_CHECKPOINT).is_file():
        step = load_checkpoint(folder / LAST_CHECKPOINT).step
        raise MomentseekError(
            f"{folder}: was stopped at step {step:,}; finish it first (momentseek train --resume "
            f"{shlex.quote(str(folder))})"
        )
    raise MomentseekError(f"{folder}: holds no {REPORT_FILE} of finished training; name the checkpoint itself ({file})")


def _stamps(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / STAMPS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # predicting again does no harm
        return {}
    return found if isinstance(found, dict) else {}
