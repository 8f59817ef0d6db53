"""The graph of query and video together against torch, on models with weights of some size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.export import rerankers
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.recognition.exported import reranker as runtime
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.recognition.exported.manifest import read_encoder_manifest as read_encoder
from momentseek.recognition.exported.reranker import VideoFeatures

DIMS = Dims(8, 16, 12)
SOURCES = {
    "video": EncoderRef("colours", "c", 16),
    "subtitle": EncoderRef("minilm", "m", 12),
    "query": EncoderRef("minilm", "m", 8),
}
MAP = {"hidden": 16, "max_clips": 8, "longest": 8, "max_words": 6, "map_layers": 2, "kernel": 3, "text_layers": 2}
EDGES = {"hidden": 16, "heads": 4, "layers": 2, "max_clips": 12, "longest": 12, "max_words": 6}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tan2d": ("tan2d", MAP),
    "tan2d-convolved": ("tan2d", {**MAP, "moments": "convolution", "modalities": "video+subtitle", "endpoints": True}),
    "tan2d-public-code": ("tan2d", {**MAP, "padding": "first"}),
    "tan2d-sparse-map": ("tan2d", {**MAP, "max_clips": 40, "longest": 40, "map_layers": 1}),
    "mdd": ("mdd", {**MAP, "heads": 4}),
    "mdd-actions": ("mdd", {**MAP, "heads": 4, "confounders": "A", "tree": False}),
    "mdd-plain": ("mdd", {**MAP, "heads": 4, "confounders": "none"}),
    "cet": ("cet", EDGES),
    "cet-lengths": ("cet", {**EDGES, "shortest": 3, "longest": 5, "modalities": "video+subtitle"}),
}


def model_of(variant: str) -> CorpusModel:
    torch.manual_seed(0)
    name, settings = VARIANTS[variant]
    model = build(name, settings, DIMS)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_graph_says_what_torch_says(variant: str) -> None:
    """Both tell spans apart by far more than they differ, or the comparison would say nothing."""
    model = model_of(variant).eval()
    assert rerankers.difference(model, rerankers.network(model)) < 1e-5
    with torch.no_grad():
        other = model_of(variant).eval()
        other.get_parameter("sentence.lstm.weight_ih_l0" if "cet" not in variant else "words.weight").mul_(1.5)
    assert rerankers.difference(model, rerankers.network(other)) > 1e-3


HIGHLIGHTS: dict[str, Any] = {"hidden": 16, "heads": 4, "feedforward": 24, "max_clips": 12, "max_words": 6}
SPR: dict[str, Any] = {
    "hidden": 16, "heads": 4, "layers": 1, "segment": 3, "context": 1, "window": 8, "proposals": 2, "per_video": 2,
    "refine_hidden": 16, "refine_heads": 2, "max_clips": 12, "longest": 8, "max_words": 6,
}  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "part"), [
    ("moment_detr", HIGHLIGHTS, "word_in.0.linear.weight"),
    ("moment_detr", {**HIGHLIGHTS, "word_positions": True, "pre_norm": True, "align_columns": 4}, "span.layers.0.bias"),
    ("qd_detr", {**HIGHLIGHTS, "modalities": "video+subtitle"}, "decoder.layers.0.across.value.weight"),
    ("univtg", HIGHLIGHTS, "ends.layers.0.weight"),
    ("spr", SPR, "refiner.word_projection.linear.weight"),
])  # fmt: skip
def test_moments_at_any_time_are_what_torch_says(name: str, settings: dict[str, Any], part: str) -> None:
    torch.manual_seed(0)
    model, other = (build(name, settings, DIMS).eval() for _ in range(2))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    other.load_state_dict(model.state_dict())
    assert rerankers.difference(model, rerankers.network(model)) < 1e-5
    with torch.no_grad():
        other.get_parameter(part).mul_(1.5)
    assert rerankers.difference(model, rerankers.network(other)) > 1e-4


@pytest.mark.parametrize("part", ["top", "down", "score"])
def test_the_tree_of_verbs_and_nouns_is_in_the_graph(part: str) -> None:
    model, other = model_of("mdd").eval(), model_of("mdd").eval()
    with torch.no_grad():
        for one in (model, other):
            for name, weight in one.named_parameters():
                if name.startswith(("sentence", "tree")):  # so loud that the gate is heard in the scores
                    weight.mul_(4)
        other.get_parameter(f"tree.{part}.weight").mul_(-1)
    assert rerankers.difference(model, rerankers.network(model)) < 3e-6
    assert rerankers.difference(model, rerankers.network(other)) > 3e-5


def test_an_export_is_read_back(tmp_path: Path) -> None:
    done = export(
        model_of("mdd"),
        "mdd",
        tmp_path / "out",
        encoders=SOURCES,
        window=33.0,
        nms=0.4,
        end_time="start",
        clip_seconds=2.0,
    )
    about = runtime.read_reranker_manifest(tmp_path / "out")
    assert (about.model, about.fingerprint, about.roles, about.nms, about.end_time) == (
        "mdd", done.fingerprint, True, 0.4, "start",
    )  # fmt: skip
    assert (about.video, about.subtitle, about.query) == (SOURCES["video"], None, SOURCES["query"])
    assert (about.preparation.fit, about.max_clips, about.window_clips) == ("stretch", 8, 16)
    with pytest.raises(MomentseekError, match=r"mdd looks at query and video together.*search --rerank"):
        read_encoder(tmp_path / "out")


def test_what_cannot_rerank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="there is no such folder"):
        runtime.read_reranker_manifest(tmp_path / "out")
    export(build("xml", {"hidden": 16, "heads": 2}, DIMS), "xml", tmp_path / "xml", encoders=SOURCES)
    with pytest.raises(MomentseekError, match=r"xml makes a library's vectors .* and does not re-rank"):
        runtime.read_reranker_manifest(tmp_path / "xml")
    export(model_of("cet"), "cet", tmp_path / "cet")
    with pytest.raises(MomentseekError, match="does not say which encoders"):
        runtime.read_reranker_manifest(tmp_path / "cet")
    export(model_of("cet"), "cet", tmp_path / "cet", encoders=SOURCES, force=True)
    (tmp_path / "cet" / "joint.onnx").write_bytes(b"other")
    with pytest.raises(MomentseekError, match="is not the file that was exported"):
        runtime.read_reranker_manifest(tmp_path / "cet")


def test_a_diverged_model_says_so(tmp_path: Path) -> None:
    export(model_of("tan2d"), "tan2d", tmp_path / "out", encoders=SOURCES, window=30.0)
    rows = np.full((9, 16), np.nan, np.float32)
    with pytest.raises(MomentseekError, match="its training has diverged"):
        runtime.load_reranker(tmp_path / "out").spans_of(
            np.ones((2, 8), np.float32), "a b", [VideoFeatures(rows, None, 13.5)]
        )
