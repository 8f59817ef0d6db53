"""The graphs of MMN and CroCs against torch, with weights and running statistics of some size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from momentseek.models.batch import Clips, Words
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.recognition.exported.manifest import EncoderRef, read_encoder_manifest, read_kind
from momentseek.recognition.runtime import session

SOURCES = {
    "video": EncoderRef("colours", "c", 12),
    "subtitle": EncoderRef("minilm", "m", 10),
    "query": EncoderRef("minilm", "m", 8),
}
SMALL = {"hidden": 16, "space": 8, "max_clips": 12, "longest": 12, "map_layers": 3, "kernel": 5, "max_words": 7}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "mmn": ("mmn", {}),
    "crocs": ("crocs", {}),
    "lstm": ("mmn", {"text": "lstm", "text_layers": 2}),
    "padded-first": ("mmn", {"padding": "first"}),
    "two-modalities": ("mmn", {"norm": False, "modalities": "video+subtitle", "endpoints": True}),
    "sparse-map": ("mmn", {"max_clips": 40, "longest": 40, "kernel": 3}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_graphs_say_what_torch_says(variant: str, tmp_path: Path) -> None:
    name, settings = VARIANTS[variant]
    torch.manual_seed(0)
    model = build(name, {**SMALL, **settings}, Dims(8, 12, 10))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(layer.running_mean)
            torch.nn.init.uniform_(layer.running_var, 0.5, 2.0)
    model.eval()
    assert export(model, name, tmp_path / "out", encoders=SOURCES, window=30.0).difference < 1e-5
    about = read_encoder_manifest(tmp_path / "out")
    assert (read_kind(tmp_path / "out"), about.match, about.spans) == ("map", 8, 16)
    known = about.moments
    assert known is not None
    assert (known.clips, known.window) == (model.config.max_clips, 20)
    rng = np.random.default_rng(1)
    clips, words = session(tmp_path / "out/clips.onnx"), session(tmp_path / "out/words.onnx")
    given = {i.name: rng.standard_normal((3, *i.shape[1:]), np.float32) for i in clips.get_inputs()}
    text, said = rng.standard_normal((3, 5, 8), np.float32), np.arange(5) < np.array([[5], [2], [1]])
    (moments,), (queries,) = clips.run(["moments"], given), words.run(["spans"], {"words": text, "mask": said})
    tensors = {part: torch.from_numpy(rows) for part, rows in given.items()}
    mask = torch.ones(3, known.clips, dtype=torch.bool)
    with torch.no_grad():
        videos = model.encode_clips(Clips(tensors.get("video"), tensors.get("subtitle"), mask))
        asked = model.encode_words(Words(torch.from_numpy(text), torch.from_numpy(said)))
        wanted = model.spans(asked, videos).numpy()
    np.testing.assert_allclose(np.linalg.norm(moments, axis=2), 1, atol=1e-5)
    for rows, query, grid in zip(moments, queries, wanted, strict=True):
        np.testing.assert_allclose(known.scores(rows, query), grid[known.start, known.length - 1], atol=1e-4)
        assert np.isfinite(grid).sum() == len(known.start)
