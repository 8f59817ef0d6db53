"""report.json: what was trained, on which data, for how long, and how good the best checkpoint is."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from momentseek import __version__
from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError
from momentseek.models import CorpusModel
from momentseek.models.captioner import Captioner
from momentseek.models.inference.encode import StageCallback
from momentseek.training.captions.validation import CaptionValidation
from momentseek.training.checkpoint import load_captioner, load_checkpoint
from momentseek.training.folder import REPORT_FILE
from momentseek.training.validation import Validation


def write_report(
    out: Path,
    validation: Validation | CaptionValidation,
    counts: Mapping[str, Any],
    stopped: str,
    progress: StageCallback | None = None,
) -> dict[str, Any]:
    """Evaluate the best checkpoint on the validation and the test split, and write report.json."""
    config, data = validation.config, validation.data
    names, splits = list(config.training.report), [s for s in (config.data.validate, config.data.test) if s]
    model: CorpusModel | Captioner
    if isinstance(validation, CaptionValidation):
        model = captioner = load_captioner(out).model
        scores = {split: validation.measures(captioner, split, names, progress) for split in splits}
    else:
        model = corpus_model = load_checkpoint(out).model
        scores = {split: validation.measures(corpus_model, split, names, progress) for split in splits}
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
        raise MomentseekError(f"{out / REPORT_FILE}: cannot be read ({e}); delete it and continue (`resume`)") from None
    if not isinstance(found, dict):
        raise MomentseekError(f"{out / REPORT_FILE}: is no report of a training run; delete it and continue (`resume`)")
    return found
