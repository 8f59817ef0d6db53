"""Libraries of Slate: one vector per clip, spans by three curves, exactly what the model says."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from tests.library.test_trained import SOURCES, vectors, without_torch

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.library.store import LibraryStore
from momentseek.models.batch import Clips, Words
from momentseek.models.export.writing import export
from momentseek.models.features.data import Dims
from momentseek.models.registry import build
from momentseek.models.zoo.slate import Slate
from momentseek.recognition.exported import encoder as encoder_module
from momentseek.recognition.exported.encoder import load_trained_encoder
from momentseek.recognition.exported.manifest import read_kind
from momentseek.recognition.exported.span_head import SpanCurves

SMALL = {"hidden": 16, "heads": 2, "max_words": 8, "longest": 4, "context": 3}


def slate(**settings: object) -> Slate:
    torch.manual_seed(0)
    model = build("slate", SMALL | settings, Dims(27, 4, 27))
    assert isinstance(model, Slate)
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.5)
    return model.eval()


@pytest.fixture
def exported(light: ModuleType, tmp_path: Path) -> Path:
    done = export(slate(), "slate", tmp_path / "model", encoders=SOURCES)
    assert done.difference < 1e-5
    return tmp_path / "model"


@pytest.fixture
def trained(exported: Path, tmp_path: Path, films: Path) -> Path:
    with LibraryStore.open(tmp_path / "trained", create=True, encoder=f"model:{exported}") as opened:
        assert opened.add(films).added == 3
    return tmp_path / "trained"


@torch.no_grad()
def test_long_videos_are_read_in_parts_as_if_whole(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module, "CLIPS_PER_RUN", 16)
    model, own = slate(), load_trained_encoder(exported)
    rng = np.random.default_rng(0)
    seen, said = (rng.standard_normal((70, n)).astype(np.float32) for n in (4, 27))
    said[10:20] = 0
    found, none = own.context(seen, said)
    assert none is None
    prepared = [
        torch.from_numpy(own.about.preparation.prepare_clips(x, k)[None])
        for x, k in ((seen, "video"), (said, "subtitle"))
    ]
    whole = model.encode_clips(Clips(*prepared, torch.ones(1, 70, dtype=torch.bool)))["clips"][0]
    np.testing.assert_allclose(found, whole.numpy(), atol=1e-5)


@torch.no_grad()
def test_queries_and_spans_are_torchs(exported: Path) -> None:
    model, own = slate(), load_trained_encoder(exported)
    head = own.about.curves
    assert head is not None
    rng = np.random.default_rng(1)
    tables = [rng.standard_normal((n, 27)).astype(np.float32) for n in (5, 2)]
    match, rows = own.queries(tables)
    x, _ = own.context(*(rng.standard_normal((9, n)).astype(np.float32) for n in (4, 27)))
    for table, unit, row in zip(tables, match, rows, strict=True):
        ready = torch.from_numpy(own.about.preparation.prepare_words(table)[None])
        words = model.encode_words(Words(ready, torch.ones(1, len(table), dtype=torch.bool)))
        query = head.query(row)
        for name, vector in zip(("clips", "start", "end"), query.vectors, strict=True):
            np.testing.assert_allclose(vector, words[name][0].numpy(), atol=1e-5)
        np.testing.assert_allclose(unit, query.what, atol=1e-5)
        np.testing.assert_allclose(query.reach, head.scales, rtol=1e-4)
        videos = {"clips": torch.from_numpy(x)[None], "mask": torch.ones(1, 9, dtype=torch.bool)}
        grid = SpanCurves.of(query.curves(x), query).grid(1, 4)
        np.testing.assert_allclose(grid, model.spans(words, videos)[0].numpy(), atol=1e-4)


def test_one_stream_is_kept_and_reencoding_goes_both_ways(trained: Path, tmp_path: Path, films: Path, exported: Path):
    with LibraryStore.open(trained) as opened:
        assert {row.stream for row in opened.catalog.segments()} == {"vision", "speech"}
        assert opened.verify().clean
        wanted = vectors(opened)
    with Library.open(tmp_path / "plain", create=True, encoder="colours") as opened:
        opened.add(films)
        opened.reencode(f"model:{exported}")
        assert opened.verify().clean
        made = vectors(opened.store)
        assert opened.engine.localiser == "learned"
        assert opened.search("a green thing", all=True)
        opened.reencode("colours")
        assert opened.verify().clean
        assert opened.engine.localiser == "height"
    for name, (rows, spans) in wanted.items():
        np.testing.assert_array_equal(made[name][0], rows)
        assert spans is made[name][1] is None


def test_reencoding_decodes_nothing_that_is_known(tmp_path: Path, films: Path, exported: Path, trained: Path) -> None:
    with LibraryStore.open(trained) as opened:
        wanted = vectors(opened)
    with LibraryStore.open(tmp_path / "plain", create=True, encoder="colours") as opened:
        opened.add(films)
        for path in (films / "a.mp4", films / "b.mp4", films / "deep" / "c.mkv"):
            path.write_bytes(b"no video any more")
        report = opened.reencode(f"model:{exported}")
        assert (report.changed, report.failed) == (3, [])
        made = vectors(opened)
    for name, (rows, _) in wanted.items():
        np.testing.assert_array_equal(made[name][0], rows)


def test_search_gives_the_models_best_spans_in_order(trained: Path) -> None:
    with Library.open(trained) as opened:
        model = opened.store.encoders.model
        assert model is not None
        head = model.about.curves
        assert head is not None
        query = head.query(model.encode_spans(["a green thing"])[0])
        best = {
            name: query.best(rows.astype(np.float32), np.array([0, len(rows)]))[0]
            for name, (rows, _) in vectors(opened.store).items()
        }
        found = opened.search("a green thing", all=True, k=50, streams=("vision",))
        first = {}
        for hit in found:
            first.setdefault(hit.name, hit.streams["vision"].score)
        assert list(first) == sorted(best, key=lambda name: -best[name])
        for name, score in first.items():
            assert score == pytest.approx(best[name], abs=1e-4)
        without = opened.search("a green thing -blue", all=True, k=50, streams=("vision",))
        assert {hit.name for hit in without} == set(best)
        assert opened.search("a green thing", all=True, localiser="scenes")


def test_no_torch_is_needed_and_verify_says_how_complete(exported: Path, tmp_path: Path, films: Path) -> None:
    assert read_kind(exported) == "spans"
    without_torch(tmp_path / "new", "add", films, "--model", exported)
    found = json.loads(without_torch(tmp_path / "new", "search", "a green thing", "--json", "--all"))
    assert found["hits"]
    assert "the first 20 moments by spans are complete for 100.0% of 32 queries" in without_torch(
        tmp_path / "new", "verify", "--recall"
    )
    told = json.loads(without_torch(tmp_path / "new", "verify", "--recall", "--json"))
    assert told["recall"]["spans"]["complete"] == 1


@pytest.mark.parametrize("setting", ["endpoints", "per_video"])
def test_what_depends_on_the_whole_video_cannot_be_exported(setting: str, tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match=f"{setting}=true"):
        export(slate(**{setting: True}), "slate", tmp_path / "out", encoders=SOURCES)


def test_every_setting_can_be_exported(tmp_path: Path) -> None:
    variants = (
        {"modalities": "video"},
        {"context": 0, "blocks": 1},
        {"edges": False, "space": 8},
        {"encoder": "linear"},
    )
    for at, settings in enumerate(variants):
        done = export(slate(**settings), "slate", tmp_path / str(at), encoders=SOURCES)
        assert done.difference < 1e-5
