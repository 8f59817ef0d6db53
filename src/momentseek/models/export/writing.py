"""Write a model as a folder that a library can use, with its graphs and ``model.json``."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.atomic import usual_mode
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.plugins import source_of
from momentseek.models.export.graphs import ExportableKind, ModelGraphs
from momentseek.models.export.rerankers import RERANKER_KIND
from momentseek.models.export.vectors import VECTOR_KINDS
from momentseek.models.model import CorpusModel
from momentseek.recognition.exported.manifest import MANIFEST_FILE, MANIFEST_FORMAT, EncoderRef, fingerprint_of
from momentseek.recognition.weights.files import sha256

EXPORTABLE_KINDS: tuple[ExportableKind, ...] = (*VECTOR_KINDS, RERANKER_KIND)
EXPORTABLE = tuple(name for kind in EXPORTABLE_KINDS for name in kind.names)

MAX_DIFFERENCE = 1e-4
"""Maximum difference between the graphs and torch, relative to the largest value."""


@dataclass(frozen=True)
class ExportReport:
    """The folder of an export, and the largest difference between its graphs and torch."""

    folder: Path
    model: str
    fingerprint: str
    difference: float
    bytes: int


def export(
    model: CorpusModel,
    name: str,
    out: Path,
    *,
    encoders: Mapping[str, EncoderRef] | None = None,
    clip_seconds: float = 1.5,
    end_time: str = "inclusive",
    window: float | None = None,
    cut: float | None = None,
    nms: float | None = None,
    trained: Mapping[str, Any] | None = None,
    force: bool = False,
) -> ExportReport:
    """Write a model called ``name`` as a folder ``out``, which appears when it is complete.

    ``encoders`` are those of the training features, by ``video``, ``subtitle`` and ``query``; without them the export
    cannot serve a library. ``window`` is, for a model that stretches whole videos, the longest video in seconds that it
    reads at once. Longer videos are cut; a model of moments cuts them into windows of ``cut`` seconds if that is less.
    ``nms`` is the IoU above which a model drops the worse of two moments. ``trained`` is stored in the manifest: step,
    measure, data.
    """
    settings = {"end_time": end_time, "window": window, "cut": cut, "clip_seconds": clip_seconds, "nms": nms}
    found = draw_graphs(model, name, settings)
    used = {*found.modalities, "query"}
    values = {
        "format": MANIFEST_FORMAT,
        "model": name,
        "config": dataclasses.asdict(model.config),
        "dims": dataclasses.asdict(model.dims),
        "clip_seconds": clip_seconds,
        "encoders": {kind: dataclasses.asdict(source) for kind, source in (encoders or {}).items() if kind in used},
        "head": dict(found.head),
        "trained": dict(trained or {}),
    }
    return write_export(out, found.graphs, values, found.difference, force=force)


def write_export(
    out: Path, graphs: Mapping[str, bytes], values: dict[str, Any], difference: float, *, force: bool
) -> ExportReport:
    """Write graphs and their manifest as a folder, under a temporary name until it is complete."""
    if not difference <= MAX_DIFFERENCE:
        raise MomentseekError(
            f"{values['model']}: the exported graphs differ from the model by {difference:.1e}; nothing was written, "
            "report this"
        )
    _check_place(out, force)
    temporary = Path(tempfile.mkdtemp(dir=out.absolute().parent, prefix=f".{out.name}."))
    try:
        temporary.chmod(usual_mode(0o777))
        for file, data in graphs.items():
            (temporary / file).write_bytes(data)
        values["files"] = {file: sha256(temporary / file) for file in graphs}
        values["fingerprint"] = fingerprint_of(values)
        (temporary / MANIFEST_FILE).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        temporary.replace(out)
    except OSError as e:
        raise MomentseekError(f"{out}: cannot be written ({e.strerror}); check the folder") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return ExportReport(
        out, str(values["model"]), str(values["fingerprint"]), difference, sum(map(len, graphs.values()))
    )


def _check_place(out: Path, force: bool) -> None:
    if not out.absolute().parent.is_dir():
        raise MomentseekError(f"{out}: there is no folder {out.parent}; create it first")
    if out.is_file():
        raise MomentseekError(f"{out}: is a file; name a folder for the exported model")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not (out / MANIFEST_FILE).is_file():
        raise MomentseekError(f"{out}: holds other files; name a new folder for the exported model")
    if not force:
        raise MomentseekError(
            f"{out}: already exists; choose another name, or overwrite it ({parameter('force', True)})"
        )


def draw_graphs(model: CorpusModel, name: str, settings: Mapping[str, Any]) -> ModelGraphs:
    """Trace the graphs of a model; refuses a kind that cannot be exported."""
    kind = next((kind for kind in EXPORTABLE_KINDS if isinstance(model, kind.takes)), None)
    if source_of(type(model).__module__) is not None:
        return _draw_plugin(model, name, kind or RERANKER_KIND, settings)
    if kind is None:
        raise MomentseekError(
            f"{name} cannot be exported: it can neither make a library's vectors nor re-rank what one finds; "
            f"train {', '.join(EXPORTABLE[:-1])} or {EXPORTABLE[-1]}"
        )
    return _draw(model, kind, settings)


def _draw(model: CorpusModel, kind: ExportableKind, settings: Mapping[str, Any]) -> ModelGraphs:
    was = model.training
    model.eval()
    try:
        return kind.draw(model, settings)
    finally:
        model.train(was)


def _draw_plugin(model: CorpusModel, name: str, kind: ExportableKind, settings: Mapping[str, Any]) -> ModelGraphs:
    """Trace the graphs of a plug-in's model, as the built-in kind that it extends, or else as a re-ranker."""
    try:
        return _draw(model, kind, settings)
    except MomentseekError:
        raise
    except Exception as e:  # the exporter runs the plug-in's code
        why = (str(e) or type(e).__name__).strip().splitlines()[0]
        raise MomentseekError(
            f"{name} cannot be exported, since torch's exporter cannot follow it ({why}); change it, or search with "
            "`momentseek predict`"
        ) from None
