from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.server.settings import ServerSettings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """With weights of chance, for the library's encoders."""
    return exported(tmp_path / "films-tan2d", "colours-1")


def exported(folder: Path, fingerprint: str) -> Path:
    torch.manual_seed(0)
    settings = {"hidden": 16, "max_clips": 8, "longest": 8, "map_layers": 1, "kernel": 3, "text_layers": 1}
    made = {"video": EncoderRef("colours", fingerprint, 4), "query": EncoderRef("minilm", "letters-1", 27)}
    export(build("tan2d", settings, Dims(27, 4, None)), "tan2d", folder, encoders=made, window=30.0)
    return folder


def test_a_model_looks_again(serve: Callable[..., TestClient], shared: Path, model: Path) -> None:
    client = serve(rerank=(model,))
    assert client.get("/api/v1/status").json()["rerankers"] == ["films-tan2d"]
    asked: dict[str, str | int] = {"q": "green", "all": True, "rerank": "films-tan2d", "rerank_videos": 1, "k": 4}
    answer = client.get("/api/v1/search", params=asked).json()
    with Library.open(shared / "library") as library:
        found = library.search("green", 4, all=True, rerank=model, rerank_videos=1)
    assert [(h["start"], h["end"], h["score"]) for h in answer["hits"]] == [(h.start, h.end, h.score) for h in found]
    first = answer["hits"][0]
    assert first["reranked"]["score"] == first["score"] == first["streams"]["rerank"]["score"]
    assert first["reranked"]["first"]["rank"] == 1
    assert client.post("/api/v1/search", json=asked).json()["hits"] == answer["hits"]
    exported_file = client.get("/api/v1/export", params={**asked, "kind": "json"}).json()
    assert exported_file["hits"][0]["reranked"]["first"] == first["reranked"]["first"]
    plain = client.get("/api/v1/search", params={"q": "green", "all": True}).json()
    assert all(hit["reranked"] is None for hit in plain["hits"])


def test_only_models_that_the_server_was_given(
    client: TestClient, serve: Callable[..., TestClient], model: Path
) -> None:
    asked = {"q": "green", "rerank": str(model)}
    told = client.get("/api/v1/search", params=asked)
    assert told.status_code == 422
    assert "momentseek serve --rerank adds some" in told.json()["error"]["message"]
    told = serve(rerank=(model,)).get("/api/v1/search", params=asked)
    assert "there are films-tan2d" in told.json()["error"]["message"]


def test_what_cannot_serve_is_refused_at_the_start(serve: Callable[..., TestClient], tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="trained on vectors of pictures"):
        serve(rerank=(exported(tmp_path / "other", "colours-9"),))
    with pytest.raises(MomentseekError, match="have the same name"):
        ServerSettings(rerank=(tmp_path / "a" / "m", tmp_path / "b" / "m"))
