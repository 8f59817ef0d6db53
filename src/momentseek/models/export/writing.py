"""Writing a model as a folder that the library takes: two graphs and ``model.json``."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from momentseek.encoders.hashes import sha256
from momentseek.encoders.runtime import session
from momentseek.encoders.trained.manifest import CLIPS, FILE, FORMAT, WORDS, Source, fingerprint_of
from momentseek.errors import MomentseekError
from momentseek.models.batch import Clips, Words
from momentseek.models.export.networks import clips_network, exportable, widths, words_network
from momentseek.models.model import CorpusModel
from momentseek.models.xml import XML

TOLERANCE = 1e-4
"""How far the graphs may be from torch, as a share of the largest number."""
QUERIES, VIDEOS = 3, 2
"""Of random numbers, on which both are compared."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how far at most it is from torch."""

    folder: Path
    fingerprint: str
    difference: float
    bytes: int


def export(
    model: CorpusModel,
    name: str,
    out: Path,
    *,
    encoders: Mapping[str, Source] | None = None,
    clip_seconds: float = 1.5,
    end_time: str = "inclusive",
    trained: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Exported:
    """Write a model called ``name`` as a folder ``out``, whole or not at all.

    ``encoders`` are those of the features it was trained on, by ``video``, ``subtitle`` and ``query``; without them the
    export cannot serve a library. ``trained`` is told along: step, measure, data.
    """
    drawn = exportable(model, name)
    was = drawn.training
    drawn.eval()
    try:
        graphs = {CLIPS: clips_network(drawn), WORDS: words_network(drawn)}
        difference = _compared(drawn, graphs)
        values = _values(drawn, name, encoders or {}, clip_seconds, end_time, trained or {})
    finally:
        drawn.train(was)
    if not difference <= TOLERANCE:
        raise MomentseekError(
            f"{name}: the exported graphs differ from the model by {difference:.1e}; nothing was written, report this"
        )
    _check_place(out, force)
    temporary = Path(tempfile.mkdtemp(dir=out.absolute().parent, prefix=f".{out.name}."))
    try:
        temporary.chmod(0o755)
        for file, data in graphs.items():
            (temporary / file).write_bytes(data)
        values["files"] = {file: sha256(temporary / file) for file in graphs}
        values["fingerprint"] = fingerprint_of(values)
        (temporary / FILE).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        temporary.replace(out)
    except OSError as e:
        raise MomentseekError(f"{out}: cannot be written ({e.strerror}); check the folder") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Exported(out, str(values["fingerprint"]), difference, sum(map(len, graphs.values())))


def _check_place(out: Path, force: bool) -> None:
    if not out.absolute().parent.is_dir():
        raise MomentseekError(f"{out}: there is no folder {out.parent}; make it first")
    if out.is_file():
        raise MomentseekError(f"{out}: is a file; name a folder for the exported model")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not (out / FILE).is_file():
        raise MomentseekError(f"{out}: holds other files; name a new folder for the exported model")
    if not force:
        raise MomentseekError(f"{out}: is there already; choose another name, or overwrite it (--force)")


def _values(
    model: XML,
    name: str,
    encoders: Mapping[str, Source],
    clip_seconds: float,
    end_time: str,
    trained: Mapping[str, Any],
) -> dict[str, Any]:
    """What the manifest says, its hashes left out."""
    used = {*model.modalities, "query"}
    sources = {kind: dataclasses.asdict(source) for kind, source in encoders.items() if kind in used}
    filters = model.boundaries_head.filters.weight.detach().cpu().numpy()[:, 0]
    width = model.config.hidden * len(model.modalities)
    return {
        "format": FORMAT,
        "model": name,
        "config": dataclasses.asdict(model.config),
        "dims": dataclasses.asdict(model.dims),
        "clip_seconds": clip_seconds,
        "encoders": sources,
        "head": {
            "modalities": len(model.modalities), "match": width, "spans": width,
            "start": filters[0].tolist(), "end": filters[1].tolist(), "end_time": end_time,
        },
        "trained": dict(trained),
    }  # fmt: skip


@torch.no_grad()
def _compared(model: XML, graphs: Mapping[str, bytes]) -> float:
    """The largest difference between the graphs and torch in curves and video scores, as a share of the largest."""
    rng = np.random.default_rng(0)
    most, longest = model.config.max_clips, model.config.max_words
    clips: dict[str, NDArray[Any]] = {
        part: rng.standard_normal((VIDEOS, most, width), np.float32) for part, width in widths(model).items()
    }
    clips["mask"] = np.arange(most) < np.array([[most], [max(1, most // 3)]])
    words = {
        "words": rng.standard_normal((QUERIES, longest, model.dims.query), np.float32),
        "mask": np.arange(longest) < np.array([[longest], [max(1, longest // 2)], [1]]),
    }
    match, spans = session(graphs[CLIPS]).run(["match", "spans"], clips)
    query, asked = session(graphs[WORDS]).run(["match", "spans"], words)
    tensors = {part: torch.from_numpy(rows) for part, rows in clips.items()}
    videos = model.encode_clips(Clips(tensors.get("video"), tensors.get("subtitle"), tensors["mask"]))
    queries = model.encode_words(Words(torch.from_numpy(words["words"]), torch.from_numpy(words["mask"])))
    worst = 0.0
    for q in range(QUERIES):
        row = {key: value[[q] * VIDEOS] for key, value in queries.items()}
        worst = max(worst, _far(spans @ asked[q], model.curve(row, videos).numpy(), clips["mask"]))
    sides = [part.reshape(*part.shape[:-1], len(model.modalities), -1) for part in (match, query)]
    cosines = np.einsum("vlmd,qmd->qvml", *sides)
    best = np.where(clips["mask"][None, :, None], cosines, -np.inf).max(-1).sum(-1)
    return max(worst, _far(best, model.match(queries, videos).numpy(), np.True_))


def _far(ours: NDArray[Any], torchs: NDArray[Any], mask: Any) -> float:
    difference = np.abs(np.where(mask, ours - torchs, 0)).max()
    return float(difference / max(1.0, np.abs(np.where(mask, torchs, 0)).max()))
