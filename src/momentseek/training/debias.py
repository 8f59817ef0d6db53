"""The runs of a debias report: models trained for every seed, and what they answer on both splits.

A run lies in ``runs/LABEL-SEED``: its training, and its predictions as ``SPLIT.jsonl``. What is finished is not done
again; ``predictions.json`` says of which weights and data the predictions are.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from momentseek import __version__
from momentseek.atomic import write_all
from momentseek.errors import MomentseekError
from momentseek.evaluation.debias.entrants import ModelEntrant, TrainedEntrant
from momentseek.features.data import Data
from momentseek.formats import FORMATS, Writing, read_run
from momentseek.models import MODELS
from momentseek.models.inference import predict
from momentseek.moments import Run
from momentseek.training.checkpoint import find, load
from momentseek.training.config import TrainConfig
from momentseek.training.presets import configure
from momentseek.training.progress import Tell
from momentseek.training.report import read_report
from momentseek.training.setup import BEST, LAST, REPORT, device, refuse_other_dims
from momentseek.training.spread import train_or_read

TOP = 10
"""Predictions per query: the report looks at the first, whoever reads the files may look further."""
STAMPS = "predictions.json"
PLAIN: dict[str, Any] = {
    "training": {
        "task": "SVMR",
        "measure": "dR@1[IoU>=0.5]",
        "report": ["R@1[IoU>={0.3,0.5,0.7}]", "dR@1[IoU>={0.3,0.5,0.7}]"],
    }
}
"""What is trained for where no preset says: moments in the right video."""


@dataclass(frozen=True)
class Planned:
    """A run to be made: a config to train in ``folder``, or a checkpoint that is there already."""

    label: str
    folder: Path
    config: TrainConfig | None = None
    checkpoint: Path | None = None


def plan(
    entrants: Iterable[ModelEntrant | TrainedEntrant],
    sections: dict[str, Any],
    assignments: Sequence[str],
    seeds: int,
    out: Path,
    where: str = "config",
) -> list[Planned]:
    """Every run, with its settings checked; nothing is trained yet."""
    found: list[Planned] = []
    for each in entrants:
        if isinstance(each, ModelEntrant):
            if each.name not in MODELS and Path(each.name).is_dir():
                raise MomentseekError(f"{each.name}: is a folder, not a model; to take a run from it: ./{each.name}")
            config = configure(sections, each.name, [*assignments, *each.settings], where)
            for seed in range(config.training.seed, config.training.seed + seeds):
                seeded = replace(config, training=replace(config.training, seed=seed))
                found.append(Planned(each.label, out / f"{safe(each.label)}-{seed}", config=seeded))
        else:
            for path in checkpoints(Path(each.path)):
                earlier = sum(p.label == each.label for p in found)
                found.append(Planned(each.label, out / f"{safe(each.label)}-{earlier}", checkpoint=path))
    labels: dict[Path, str] = {}
    for one in found:
        if labels.setdefault(one.folder, one.label) != one.label:
            raise MomentseekError(
                f"{one.label!r} and {labels[one.folder]!r} would both be kept in {one.folder}; give one another name "
                "(NAME=MODEL)"
            )
    return found


def checkpoints(path: Path) -> list[Path]:
    """The checkpoint of a finished run's folder (or the file itself), or those of its ``seed-N`` folders."""
    if not path.is_dir():
        return [find(path)]
    seeds = sorted(path.glob("seed-*"), key=lambda p: (len(p.name), p.name))
    if seeds and not (path / BEST).is_file():
        return [_finished(seed) for seed in seeds]
    return [_finished(path)]


def carry_out(
    planned: Planned,
    data: Data,
    splits: Sequence[str],
    *,
    tell: Tell | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Run, ...] | None:
    """Train, unless that is done, and predict each split in the right video; None if training was stopped."""
    checkpoint = planned.checkpoint
    if planned.config is not None:
        report, _ = train_or_read(planned.config, data, planned.folder, tell=tell)
        if not report:
            return None
        checkpoint = find(planned.folder)
    assert checkpoint is not None
    return tuple(predicted(checkpoint, data, split, planned.folder, progress) for split in splits)


def predicted(
    checkpoint: Path,
    data: Data,
    split: str,
    folder: Path,
    progress: Callable[[str, int, int], None] | None = None,
) -> Run:
    """What a checkpoint answers on a split; read from ``folder`` if the same was predicted before."""
    target, stamps = folder / f"{split}.jsonl", _stamps(folder)
    stamp = {
        "weights": hashlib.sha256(checkpoint.read_bytes()).hexdigest()[:16],
        "data": data.fingerprint_of([split]),
        "momentseek": __version__,
    }
    if stamps.get(split) == stamp and target.is_file():
        return read_run(target)
    found = load(checkpoint)
    training = found.config.training
    data.use(found.model.config.modalities)
    data.check([split])
    refuse_other_dims(found, data, split, str(checkpoint))
    run = predict(
        found.model.to(device(training.device)),
        data,
        data.split(split),
        k=TOP,
        task="SVMR",
        nms=training.nms,
        end_time=cast(Any, training.end_time),
        progress=progress,
    )
    writer = FORMATS["native-run"].write_runs
    assert writer is not None
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**stamps, split: stamp}, indent=2) + "\n"
    write_all({target: writer((run,), Writing()), folder / STAMPS: text.encode()})
    return run


def safe(label: str) -> str:
    """A label as the name of a folder.

    >>> safe("mdd[confounders=L*A, tree=true]"), safe("base + EM")
    ('mdd-confounders=L-A-tree=true', 'base-+-EM')
    """
    kept = "".join(c if c.isalnum() or c in "=+._" else "-" for c in label)
    return "-".join(part for part in kept.split("-") if part).strip(".") or "run"


def _finished(folder: Path) -> Path:
    """The checkpoint of a run; refused if its training was stopped, as half a training says little of a model."""
    file = find(folder)
    if read_report(folder) is not None:
        return file
    if (folder / LAST).is_file():
        raise MomentseekError(
            f"{folder}: was stopped at step {load(folder / LAST).step:,}; go on with it (momentseek train --resume "
            f"{shlex.quote(str(folder))})"
        )
    raise MomentseekError(f"{folder}: holds no {REPORT} of a finished run; name the checkpoint itself ({file})")


def _stamps(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / STAMPS).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # predicting again does no harm
        return {}
    return found if isinstance(found, dict) else {}
