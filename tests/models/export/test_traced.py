"""The graphs of models that re-rank, against torch and as re-ranking runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Clips, Words
from momentseek.models.export import rerankers
from momentseek.models.export.graphs import difference_from_torch, trace
from momentseek.models.export.writing import EXPORTABLE, export
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel
from momentseek.models.registry import build
from momentseek.recognition.exported import reranker as runtime
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.recognition.exported.preparation import edges
from momentseek.recognition.exported.reranker import VideoFeatures

DIMS = Dims(8, 16, 12)
SOURCES = {"video": EncoderRef("colours", "c", 16), "query": EncoderRef("minilm", "m", 8)}
BASE: dict[str, Any] = {"hidden": 16, "max_clips": 12, "max_words": 6}
VARIANTS: dict[str, dict[str, Any]] = {
    "ctrl": {"windows": (2, 4)},
    "acrn": {"windows": (2, 4)},
    "ablr": {},
    "scdm": {"head": 4},
    "drn": {"stride": 2, "max_clips": 8},
    "tsp_prl": {"moves": 3, "seen": 3, "unit": 4},
    "tcn_dcm": {"stride": 2, "max_clips": 6, "longest": 6, "map_layers": 1, "kernel": 3},
}


def model_of(name: str, **more: Any) -> CorpusModel:
    torch.manual_seed(0)
    model = build(name, BASE | VARIANTS[name] | more, DIMS).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return model


def test_every_such_model_is_tried_here() -> None:
    elsewhere = {"tan2d", "mdd", "cet", "moment_detr", "qd_detr", "univtg", "spr"}
    assert {*VARIANTS, *elsewhere} == set(rerankers.RERANKER_KIND.names) <= set(EXPORTABLE)


@pytest.mark.parametrize("name", VARIANTS)
def test_re_ranking_finds_what_the_model_finds(name: str, tmp_path: Path) -> None:
    """A film shorter than the model reads, and one in windows; the graph also knows when it is another model's."""
    model = model_of(name)
    done = export(model, name, tmp_path / "out", encoders=SOURCES, window=18.0, nms=0.4)
    assert done.difference < 1e-5
    reranker = runtime.load_reranker(tmp_path / "out")
    rng = np.random.default_rng(1)
    words, rows = rng.standard_normal((4, 8), np.float32), rng.standard_normal((9, 16), np.float32)
    (found,) = reranker.spans_of(words, "a b c d", [VideoFeatures(rows, None, 13.0)])
    assert len(found.score)
    if model.continuous:
        start, end, score = answer_of(model, words, rows, 13.0)
        np.testing.assert_allclose(found.score, score, atol=1e-5)
        mine, wanted = np.argsort(found.start), np.argsort(start)  # the order of equal scores is not compared
        for one, other in ((found.score, score), (found.start, start), (found.end, end)):
            np.testing.assert_allclose(one[mine], other[wanted], atol=1e-4)
    film = rng.standard_normal((40, 16), np.float32)
    (parts,) = reranker.spans_of(words, "a b c d", [VideoFeatures(film, None, 59.0)])
    assert (parts.start >= 0).all()
    assert (parts.end <= 59.0).all()
    assert (parts.start < parts.end).all()
    assert (np.diff(parts.score) <= 0).all()
    if name != "ablr":  # which says one moment of each window, in whose middle it need not lie
        assert parts.end.max() > 30.0
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(-1.2)
    assert rerankers.difference(model, (tmp_path / "out" / "joint.onnx").read_bytes()) > 1e-4


@torch.no_grad()
def answer_of(model: CorpusModel, words: Any, rows: Any, duration: float) -> tuple[Any, Any, Any]:
    """The model's moments in seconds, best first, as its definition says."""
    ready = model.config.preparation
    clips = torch.from_numpy(ready.prepare_clips(rows, "video"))[None]
    videos = model.encode_clips(Clips(clips, None, torch.ones(clips.shape[:2], dtype=torch.bool)))
    asked = torch.from_numpy(ready.prepare_words(words))[None]
    queries = model.encode_words(Words(asked, torch.ones(asked.shape[:2], dtype=torch.bool)))
    start, end, score = (x[0].numpy() for x in model.moments(queries, videos))
    covered = edges(len(rows), model.config.max_clips, model.config.fit, 1.5, duration)[-1]
    start, end = (np.clip(x.astype(np.float64) * covered, 0, duration) for x in (start, end))
    order = [i for i in np.argsort(-score, kind="stable") if score[i] > -np.inf and end[i] > start[i]]
    return start[order], end[order], score[order]


def test_a_diverged_model_says_so(tmp_path: Path) -> None:
    export(model_of("ctrl"), "ctrl", tmp_path / "out", encoders=SOURCES, window=30.0)
    rows = np.full((9, 16), np.nan, np.float32)
    with pytest.raises(MomentseekError, match="its training has diverged"):
        runtime.load_reranker(tmp_path / "out").spans_of(
            np.ones((2, 8), np.float32), "a b", [VideoFeatures(rows, None, 13.5)]
        )


def test_subtitles_go_through_the_graph(tmp_path: Path) -> None:
    model = model_of("ctrl", modalities="video+subtitle")
    sources = SOURCES | {"subtitle": EncoderRef("minilm", "m", 12)}
    export(model, "ctrl", tmp_path / "out", encoders=sources, window=30.0)
    rng = np.random.default_rng(0)
    seen, said = rng.standard_normal((9, 16), np.float32), rng.standard_normal((9, 12), np.float32)
    reranker = runtime.load_reranker(tmp_path / "out")
    one, other = (
        reranker.spans_of(np.ones((2, 8), np.float32), "a b", [VideoFeatures(seen, part, 13.5)])[0].score
        for part in (said, -said)
    )
    assert not np.allclose(np.sort(one), np.sort(other))


def test_a_graph_that_gives_no_numbers_is_not_the_model() -> None:
    class Honest(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 1.0, x.sum(-1)

    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.log(x - 2.0), x.sum(-1)

    given = {"x": torch.ones(1, 3)}
    assert difference_from_torch(Honest(), trace(Honest(), given, ("times", "scores"), {}), [given]) == 0.0
    assert difference_from_torch(Honest(), trace(Broken(), given, ("times", "scores"), {}), [given]) == np.inf


def test_a_module_that_torch_cannot_follow_prints_no_graph(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError):
        trace(torch.nn.Bilinear(2, 3, 1), {"x": torch.ones(1, 2), "y": torch.ones(1, 3)}, ("z",), {})
    assert capfd.readouterr() == ("", "")
