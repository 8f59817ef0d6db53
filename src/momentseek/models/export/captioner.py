"""The two graphs of a captioner: moments as the decoder reads them, and the next word of a caption that has begun."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.models.captioner import Captioner
from momentseek.models.export.graphs import Axes, Inputs, difference_from_torch, trace
from momentseek.models.export.writing import ExportReport, write_export
from momentseek.models.zoo.mmt import MMT
from momentseek.recognition.captions.inputs import MomentParts, stack_moments
from momentseek.recognition.exported.captioner import CAPTION_KIND, MOMENTS_GRAPH, NEXT_WORD_GRAPH
from momentseek.recognition.exported.manifest import MANIFEST_FORMAT, EncoderRef


class MomentMemory(nn.Module):
    """Moments as the decoder reads them."""

    def __init__(self, model: MMT) -> None:
        super().__init__()
        self.model = model

    def forward(self, clips: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        """(moments, clips, columns), (moments, rows) twice -> (moments, rows, hidden)."""
        return self.model.encode(clips, tokens, mask)


class NextWord(nn.Module):
    """Scores of the word that comes next."""

    def __init__(self, model: MMT) -> None:
        super().__init__()
        self.model = model

    def forward(self, memory: Tensor, mask: Tensor, begun: Tensor) -> Tensor:
        """(captions, rows, hidden), (captions, rows), (captions, words) -> (captions, vocabulary)."""
        return self.model.logits(memory, mask, begun)[:, -1]


def export_captioner(
    model: Captioner,
    name: str,
    out: Path,
    *,
    encoders: Mapping[str, EncoderRef] | None = None,
    clip_seconds: float = 1.5,
    trained: Mapping[str, Any] | None = None,
    force: bool = False,
) -> ExportReport:
    """Write a captioner as a folder that ``recognition.exported`` runs without torch, whole or not at all."""
    if not isinstance(model, MMT):
        raise MomentseekError(f"{name} cannot be exported yet; train mmt")
    was = model.training
    try:
        graphs, difference = draw(model)
    finally:
        model.train(was)
    values = {
        "format": MANIFEST_FORMAT,
        "model": name,
        "config": dataclasses.asdict(model.config),
        "dims": {"video": model.dims.video, "vocabulary": list(model.dims.vocabulary)},
        "clip_seconds": clip_seconds,
        "encoders": {kind: dataclasses.asdict(source) for kind, source in (encoders or {}).items() if kind == "video"},
        "head": {"kind": CAPTION_KIND},
        "trained": dict(trained or {}),
    }
    return write_export(out, graphs, values, difference, force=force)


def draw(model: MMT) -> tuple[dict[str, bytes], float]:
    """Both graphs, and their largest difference from torch."""
    rows = ("moments", "rows")
    moments = [_random_moments(model, clips, words) for clips, words in ((2, 3), (1, 1), (3, 2), (0, 1))]
    axes: Axes = {"clips": ("moments", "clips"), **dict.fromkeys(("tokens", "mask", "memory"), rows)}
    memory = trace(MomentMemory(model), moments[0], ("memory",), axes)
    begun = []
    for length, given in enumerate(moments, start=1):
        with torch.no_grad():
            encoded = model.encode(*given.values())
        words = torch.randint(len(model.vocabulary), (len(encoded), min(length, model.config.max_caption)))
        begun.append({"memory": encoded, "mask": given["mask"], "begun": words})
    axes = {"memory": rows, "mask": rows, "begun": ("moments", "words"), "logits": ("moments",)}
    following = trace(NextWord(model), begun[1], ("logits",), axes)
    difference = max(
        difference_from_torch(MomentMemory(model), memory, moments),
        difference_from_torch(NextWord(model), following, begun),
    )
    return {MOMENTS_GRAPH: memory, NEXT_WORD_GRAPH: following}, difference


def _random_moments(model: MMT, clips: int, words: int) -> Inputs:
    """Three moments of at most this many random clips and words, as far as the model sees and reads."""
    rng, known, prepared = np.random.default_rng(clips), model.vocabulary, model.config.preparation
    parts = [
        MomentParts(
            rng.standard_normal((max(0, clips - less) if prepared.sees else 0, model.dims.video), np.float32),
            tuple(rng.choice(known.words, max(0, words - less)).tolist()) if prepared.reads else (),
        )
        for less in range(3)
    ]
    found = stack_moments(parts, known, model.dims.video)
    given = {"clips": found.clips, "tokens": found.tokens, "mask": found.mask}
    return {name: torch.from_numpy(values) for name, values in given.items()}
