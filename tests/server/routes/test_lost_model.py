"""A library whose copy of its trained model is lost: the page still opens, and searches say what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.search.localise.localiser import DEFAULT_LOCALISER


def test_the_status_is_told_without_the_model(
    serve: Callable[..., TestClient], shared: Path, tmp_path: Path, light: None
) -> None:
    torch.manual_seed(0)
    made = {"video": EncoderRef("colours", "colours-1", 4), "query": EncoderRef("minilm", "letters-1", 27)}
    small = {"hidden": 16, "heads": 2, "max_clips": 8, "max_words": 8, "modalities": "video"}
    xml = build("xml", small, Dims(27, 4, None))
    export(xml, "xml", tmp_path / "model", encoders=made)
    with Library.open(tmp_path / "library", create=True, encoder=f"model:{tmp_path / 'model'}") as library:
        library.add(shared / "more")
        copies = library.store.paths.models
    client = serve(tmp_path / "library")
    assert client.get("/api/v1/status").json()["localiser"] == "learned"
    shutil.rmtree(copies)
    told = client.get("/api/v1/status")
    assert told.status_code == 200
    assert told.json()["localiser"] == DEFAULT_LOCALISER
    assert told.json()["library"]["videos"] == 1
    answer = client.get("/api/v1/search", params={"q": "green"})
    assert not answer.is_success
    assert "copy of its model is gone" in answer.json()["error"]["message"]
