"""Exported graphs against torch, on models with weights of some size (fresh ones are nearly linear)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Clips, Words
from momentseek.models.export import vectors, writing
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.recognition.exported.manifest import EncoderRef, read_encoder_manifest
from momentseek.recognition.runtime import session

DIMS = Dims(8, 16, 12)
SOURCES = {
    "video": EncoderRef("colours", "c", 16),
    "subtitle": EncoderRef("minilm", "m", 12),
    "query": EncoderRef("minilm", "m", 8),
}
VARIANTS = {
    "xml": ("xml", {}),
    "xml-lstm-max": ("xml", {"encoder": "lstm", "modular": False}),
    "xml-cnn-video": ("xml", {"encoder": "cnn", "modalities": "video"}),
    "xml-public-code": ("xml", {"cross_linear": False, "kernel": 3, "endpoints": True}),
    "xml-no-query-map": ("xml", {"query_linear": False, "modalities": "subtitle"}),
    "reloclnet": ("reloclnet", {}),
    "reloclnet-cnn": ("reloclnet", {"encoder": "cnn"}),
}


def model_of(name: str, settings: dict[str, object]) -> CorpusModel:
    torch.manual_seed(0)
    model = build(name, {"hidden": 32, "heads": 4, "max_clips": 20, "max_words": 6, **settings}, DIMS)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.parametrize("variant", VARIANTS)
def test_graphs_say_what_torch_says(variant: str, tmp_path: Path) -> None:
    model = model_of(*VARIANTS[variant]).eval()
    done = export(model, variant, tmp_path / "out", encoders=SOURCES)
    assert done.difference < 1e-5
    about = read_encoder_manifest(tmp_path / "out")
    clips, words = session(tmp_path / "out/clips.onnx"), session(tmp_path / "out/words.onnx")
    rng = np.random.default_rng(1)
    given = {
        i.name: rng.standard_normal((3, 9, i.shape[2]), np.float32) for i in clips.get_inputs() if i.name != "mask"
    }
    mask = np.arange(9) < np.array([[9], [4], [1]])
    text, said = rng.standard_normal((3, 5, 8), np.float32), np.arange(5) < np.array([[5], [2], [1]])
    match, spans = clips.run(["match", "spans"], {**given, "mask": mask})
    query, asked = words.run(["match", "spans"], {"words": text, "mask": said})
    tensors = {name: torch.from_numpy(rows) for name, rows in given.items()}
    with torch.no_grad():
        videos = model.encode_clips(Clips(tensors.get("video"), tensors.get("subtitle"), torch.from_numpy(mask)))
        queries = model.encode_words(Words(torch.from_numpy(text), torch.from_numpy(said)))
        curve = model.curve(queries, videos).numpy()
        wanted = model.match(queries, videos).numpy()
    np.testing.assert_allclose(np.einsum("vld,vd->vl", spans, asked)[mask], curve[mask], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(match[mask], axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(query, axis=1), 1, atol=1e-5)
    parts = [rows.reshape(*rows.shape[:-1], about.modalities, -1) for rows in (match, query)]
    cosines = np.where(mask[:, None], np.einsum("vlmd,qmd->qvml", *parts), -np.inf)
    np.testing.assert_allclose(cosines.max(-1).sum(-1), wanted, atol=1e-5)
    kernels = model.boundaries_head.filters.weight.detach().numpy()
    np.testing.assert_array_equal([about.start, about.end], kernels[:, 0])


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, out = model_of("xml", {}), tmp_path / "out"
    assert model.training
    export(model, "xml", out, encoders=SOURCES, trained={"step": 7})
    assert model.training
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert json.loads((out / "model.json").read_text())["trained"] == {"step": 7}
    with pytest.raises(MomentseekError, match="already exists"):
        export(model, "xml", out, encoders=SOURCES)
    monkeypatch.setattr(writing, "fingerprint_of", _full)
    with pytest.raises(MomentseekError, match="cannot be written"):
        export(model, "xml", out, encoders=SOURCES, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert read_encoder_manifest(out).model == "xml"
    monkeypatch.undo()
    export(model, "xml", out, encoders=SOURCES, trained={"step": 8}, force=True)
    assert json.loads((out / "model.json").read_text())["trained"] == {"step": 8}


def test_folders_of_other_things_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(MomentseekError, match="holds other files"):
        export(model_of("xml", {}), "xml", tmp_path, encoders=SOURCES, force=True)
    with pytest.raises(MomentseekError, match="is a file"):
        export(model_of("xml", {}), "xml", tmp_path / "letters.txt", encoders=SOURCES, force=True)
    with pytest.raises(MomentseekError, match="create it first"):
        export(model_of("xml", {}), "xml", tmp_path / "no" / "folder", encoders=SOURCES)


def _full(values: object) -> str:
    raise OSError(28, "No space left on device")


def test_the_same_weights_are_the_same_export(tmp_path: Path) -> None:
    first = export(model_of("xml", {}), "xml", tmp_path / "a", encoders=SOURCES, trained={"step": 1})
    second = export(model_of("xml", {}), "xml", tmp_path / "b", encoders=SOURCES, trained={"step": 2})
    assert first.fingerprint == second.fingerprint
    other = model_of("xml", {})
    with torch.no_grad():
        other.word_projection.linear.bias[0] += 1e-3
    assert export(other, "xml", tmp_path / "c", encoders=SOURCES).fingerprint != first.fingerprint


def test_graphs_that_differ_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, trace = vectors.QueryVectors(model_of("xml", {"query_linear": False})), vectors.trace

    def trace_another(module: torch.nn.Module, *given: Any) -> bytes:
        return trace(other if isinstance(module, vectors.QueryVectors) else module, *given)

    monkeypatch.setattr(vectors, "trace", trace_another)
    with pytest.raises(MomentseekError, match="differ from the model"):
        export(model_of("xml", {}), "xml", tmp_path / "out", encoders=SOURCES)
    assert not (tmp_path / "out").exists()


def test_only_models_of_clips_are_exported(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match=r"mcn cannot be exported.*train xml, reloclnet, "):
        export(build("mcn", {"hidden": 8}, DIMS), "mcn", tmp_path / "out")
