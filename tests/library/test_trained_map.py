"""Libraries whose vectors are of moments: MMN and CroCs, added and searched by ONNX Runtime alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.library.segments import StoredVectors
from momentseek.library.store import LibraryStore
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.recognition.exported.encoder import MomentMapEncoder, load_trained_encoder
from momentseek.recognition.exported.manifest import EncoderRef, read_kind

SOURCES = {
    "video": EncoderRef("colours", "colours-1", 4),
    "subtitle": EncoderRef("minilm", "letters-1", 27),
    "query": EncoderRef("minilm", "letters-1", 27),
}
SETTINGS = {"hidden": 16, "space": 8, "max_clips": 4, "longest": 4, "map_layers": 2, "kernel": 3}
WINDOW = 9.0
"""Seconds, six clips."""


@pytest.fixture
def model(light: ModuleType, tmp_path: Path) -> Path:
    """A model with weights of chance, that reads cues too."""
    torch.manual_seed(0)
    built = build("crocs", {**SETTINGS, "modalities": "video+subtitle"}, Dims(27, 4, 27))
    for weight in built.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.5)
    export(built, "crocs", tmp_path / "model", encoders=SOURCES, window=WINDOW)
    return tmp_path / "model"


@pytest.fixture
def long(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """A film of 27 seconds, longer than the model reads at once, and a short one."""
    folder = tmp_path / "films"
    folder.mkdir()
    film(folder / "long.mp4", (220, 20, 20), (20, 220, 20), (20, 20, 220), seconds=9.0)
    film(folder / "short.mp4", (20, 220, 20), seconds=4.5)
    (folder / "short.srt").write_text("1\n00:00:00,000 --> 00:00:02,900\nAll is green.\n")
    return folder


def test_a_library_of_moments_from_adding_to_searching(model: Path, tmp_path: Path, long: Path):
    assert read_kind(model) == "map"
    place = tmp_path / "library"
    with Library.open(place, create=True, encoder=f"model:{model}") as opened:
        assert opened.add(long).added == 2
        assert opened.verify().clean
        assert (opened.engine.localiser, opened.store.encoders.model_kind) == ("map", "map")
        found = opened.search("a green thing", all=True, streams=("vision",), explain=True)
        assert {hit.name for hit in found} == {"long.mp4", "short.mp4"}
        assert all(0 <= hit.start < hit.end <= hit.duration and hit.end - hit.start <= WINDOW for hit in found)
        assert all(len(hit.curve) == {"long.mp4": 18, "short.mp4": 3}[hit.name] for hit in found)
        assert len({(hit.name, hit.start, hit.end) for hit in found}) == len(found)
        for other in ("height", "scenes", "watershed"):
            assert opened.search("a green thing", all=True, localiser=other)
        own = load_trained_encoder(model)
        assert isinstance(own, MomentMapEncoder)
        state, videos = opened.store.snapshot(), {video.name: video for video in opened.videos()}
        moments = StoredVectors.find(state.spans, videos["long.mp4"].id)
        assert moments is not None
        assert len(moments) == own.span_rows(18) > own.span_rows(6)
        # what a hit scores is what the model says of its vectors
        query = own.encode_spans(["a green thing"])[0]
        scores = own.moments.scores(moments.half.astype(np.float32), query)
        best = max(hit.streams["vision"].score for hit in found if hit.name == "long.mp4")
        assert best == pytest.approx(scores.max(), abs=1e-5)

        opened.remove("short.mp4")
        opened.compact()
        assert opened.verify().clean
        damage(opened)
    with Library.open(place) as opened:
        assert not opened.verify().clean
        opened.verify(repair=True)
        opened.store.retry()
        opened.add(long)
        assert opened.verify().clean
        assert opened.search("a green thing", all=True)
        opened.reencode("colours")
        assert (opened.verify().clean, opened.engine.localiser, opened.store.encoders.model_kind) == (
            True,
            "height",
            "",
        )
        with pytest.raises(MomentseekError, match="the localiser 'map' needs a library"):
            opened.search("a green thing", all=True, localiser="map")
        opened.reencode(f"model:{model}")
        assert (opened.verify().clean, opened.engine.localiser) == (True, "map")
        again = StoredVectors.find(
            opened.store.snapshot().spans, next(v.id for v in opened.videos() if v.name == "long.mp4")
        )
        assert again is not None
        np.testing.assert_array_equal(again.half, moments.half)


def damage(library: LibraryStore, stream: str = "spans") -> None:
    (row,) = library.store.catalog.segments(stream)
    path = library.store.paths.segments / f"{row.name}.vec"
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[-200:-100] = b"\x7f" * 100
    path.write_bytes(data)


LOST = "the library's copy of its model is gone; make its vectors again: momentseek reencode --model FOLDER"


@pytest.mark.parametrize("file", ["model.json", "words.onnx"])
def test_lost_model_is_reported_and_reencoding_restores_it(file: str, model: Path, tmp_path: Path, long: Path):
    with Library.open(tmp_path / "library", create=True, encoder=f"model:{model}") as opened:
        opened.add(long / "short.mp4")
        (copy,) = opened.store.paths.models.rglob(file)
        copy.unlink()
    with Library.open(tmp_path / "library") as opened:
        with pytest.raises(MomentseekError, match=LOST):
            opened.search("a green thing")
        assert any(LOST in problem for problem in opened.verify().problems)
        damage(opened, "speech")  # which does not need the model
        mended = opened.verify(repair=True)
        assert "what is said in 1 video was encoded again" in mended.repaired
        assert [problem for problem in mended.problems if LOST not in problem] == []
        assert copy.parent.is_dir()
        opened.reencode(f"model:{model}")
        assert opened.verify().clean
        assert opened.search("a green thing", all=True)
