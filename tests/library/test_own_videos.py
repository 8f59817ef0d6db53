"""From annotated videos to a library that finds in them what was annotated: features, training, export, add, search."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

from momentseek.api.library import Library
from momentseek.benchmarks.datasets.library_features import write_library_features
from momentseek.cli.checkpoints import export as export
from momentseek.cli.data.features import features
from momentseek.core.errors import MomentseekError
from momentseek.library.store import LibraryStore
from momentseek.models.features.data import Data
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train
from momentseek.recognition.encoders.registry import IMAGE_TEXT_ENCODERS, register_image_text
from momentseek.recognition.exported.manifest import sources_of

GREY = (120, 120, 120)
COLOURS = {
    "red": (220, 20, 20),
    "green": (20, 220, 20),
    "blue": (20, 20, 220),
    "yellow": (220, 220, 20),
    "violet": (220, 20, 220),
}


@pytest.fixture
def annotated(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """Films that are grey but for one scene of a colour each, at another place in each, and annotations of those."""
    folder = tmp_path / "own"
    folder.mkdir()
    lines = []
    for at, (name, colour) in enumerate(COLOURS.items()):
        scenes = [GREY] * 5
        scenes[1 + at % 3] = colour
        film(folder / f"{at}.mp4", *scenes, seconds=4.5)
        span = [4.5 * (1 + at % 3), 4.5 * (2 + at % 3)]
        lines += [
            {"desc_id": 10 * at + i, "desc": text.format(name), "vid_name": str(at), "ts": span, "duration": 22.5}
            for i, text in enumerate(("{} appears", "it turns {}", "the {} part"))
        ]
    (folder / "0.srt").write_text("1\n00:00:05,000 --> 00:00:08,000\nIt is all red now.\n")
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder


def test_features_are_the_librarys_vectors(library: LibraryStore, annotated: Path, tmp_path: Path):
    library.add(annotated)
    done = write_library_features(library, {"train": annotated / "train.jsonl"}, tmp_path / "data")
    assert (done.videos, done.clips, done.cues, dict(done.queries)) == (5, 75, 1, {"train": 15})
    with Data.open(tmp_path / "data") as data:
        data.check(["train"])
        split = data.split("train")
        assert split.corpus == tuple("01234")
        assert (data.dims.query, data.dims.video, data.dims.subtitle) == (27, 4, 27)
        red = data.video.read("0")  # type: ignore[union-attr]
        assert (red[3:6, 0] > 2 * red[3:6, 1]).all()
        assert np.allclose(red[0, 0], red[0, 1], atol=0.02)
        said = data.subtitle.read("0")  # type: ignore[union-attr]
        np.testing.assert_array_equal(np.flatnonzero(said.any(axis=1)), [3, 4, 5])
        assert len(split.query.read("10")) == 2
        assert {kind: source.spec for kind, source in sources_of(data.path).items()} == {
            "video": "colours",
            "subtitle": "minilm",
            "query": "minilm",
        }


def test_features_in_moment_detrs_layout_are_the_same(library: LibraryStore, annotated: Path, tmp_path: Path):
    library.add(annotated)
    truths = {"train": annotated / "train.jsonl"}
    write_library_features(library, truths, tmp_path / "hdf5")
    for _ in range(2):
        write_library_features(library, truths, tmp_path / "npz", layout="npz", force=True)
    with np.load(tmp_path / "npz" / "video_features" / "0.npz") as video:
        assert list(video) == ["features"]
    with np.load(tmp_path / "npz" / "train_query_features" / "qid10.npz") as query:
        assert list(query) == ["last_hidden_state"]
    with Data.open(tmp_path / "hdf5") as one, Data.open(tmp_path / "npz") as two:
        two.check(["train"])
        assert one.dims == two.dims
        np.testing.assert_array_equal(one.video.read("3"), two.video.read("3"))  # type: ignore[union-attr]
        np.testing.assert_array_equal(one.split("train").query.read("10"), two.split("train").query.read("10"))


def test_queries_can_be_put_into_the_pictures_space(library: LibraryStore, annotated: Path, tmp_path: Path):
    library.add(annotated)
    write_library_features(library, {"train": annotated / "train.jsonl"}, tmp_path / "data", own_text=True)
    with Data.open(tmp_path / "data") as data:
        assert data.dims.query == data.dims.video
        expected = library.encoders.vision.encode(["red appears"])
        np.testing.assert_allclose(data.split("train").query.read("0"), expected, atol=1e-6)
        assert "query" not in sources_of(data.path)


def test_features_that_cannot_be_made_are_refused(
    library: LibraryStore, annotated: Path, tmp_path: Path, light: ModuleType
):
    truth, out = annotated / "train.jsonl", tmp_path / "data"
    with pytest.raises(MomentseekError, match="is empty; add videos first"):
        write_library_features(library, {"train": truth}, out)
    library.add(annotated / "0.mp4")
    with pytest.raises(MomentseekError, match="video 1 and 3 others are not in the library"):
        write_library_features(library, {"train": truth}, out)
    library.add(annotated)
    lines = truth.read_text().splitlines()
    late = tmp_path / "late.jsonl"
    late.write_text(lines[0].replace("[4.5, 9.0]", "[4.5, 40.0]").replace("22.5", "40.0") + "\n")
    with pytest.raises(MomentseekError, match=r"ends at 40 s and the video at 22\.4 s"):
        write_library_features(library, {"train": late}, out)
    assert not out.exists()
    write_library_features(library, {"train": truth}, out)
    with pytest.raises(MomentseekError, match="is not empty"):
        write_library_features(library, {"train": truth}, out)
    write_library_features(library, {"train": truth}, out, force=True)
    with pytest.raises(MomentseekError, match="holds other files"):
        write_library_features(library, {"train": truth}, annotated, force=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("xml", marks=pytest.mark.figures), "reloclnet"])
def test_a_model_trained_on_ones_own_videos_finds_them(
    name: str, library: LibraryStore, annotated: Path, tmp_path: Path, light: ModuleType
):
    library.add(annotated)
    write_library_features(library, {"train": annotated / "train.jsonl"}, tmp_path / "data")
    settings = {"hidden": 32, "heads": 4, "max_clips": 40, "longest": 6, "span_weight": 1.0, "dropout": 0.0}
    training = {"steps": 40, "lr": 0.004, "batch": 15, "measure": "R@1[IoU>=0.7]", "validate_every": 20, "threads": 1}
    config = TrainConfig.of(
        {
            "model": {"name": name, **settings},
            "training": {**training, "report": ["R@1[IoU>=0.7]"]},
            "data": {"path": str(tmp_path / "data"), "validate": "train"},
        }
    )
    with Data.open(tmp_path / "data") as data:
        assert train(config, data, tmp_path / "run").best == 1.0
    told = CliRunner().invoke(export, [str(tmp_path / "run"), "--out", str(tmp_path / "model"), "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["serves_libraries"]
    with pytest.raises(MomentseekError, match="export it first: momentseek export"):
        Library.open(tmp_path / "trained", create=True, encoder=f"model:{tmp_path / 'run'}")
    with Library.open(tmp_path / "trained", create=True, encoder=f"model:{tmp_path / 'model'}") as trained:
        trained.add(annotated)
        for at, colour in enumerate(COLOURS):
            first = trained.search(f"it turns {colour}", streams=["vision"], all=True)[0]
            assert first.name == f"{at}.mp4"
            assert (first.start, first.end) == (4.5 * (1 + at % 3), 4.5 * (2 + at % 3))


@pytest.mark.slow
@pytest.mark.figures
def test_a_model_of_moments_trained_on_ones_own_videos_finds_them(
    library: LibraryStore, annotated: Path, tmp_path: Path, light: ModuleType
):
    library.add(annotated)
    write_library_features(library, {"train": annotated / "train.jsonl"}, tmp_path / "data")
    settings = {"hidden": 32, "space": 16, "max_clips": 15, "longest": 15, "map_layers": 2, "kernel": 3, "norm": False}
    training = {"steps": 150, "lr": 0.003, "batch": 15, "measure": "R@1[IoU>=0.5]", "validate_every": 50, "threads": 1}
    config = TrainConfig.of(
        {
            "model": {"name": "mmn", **settings},
            "training": {**training, "report": ["R@1[IoU>=0.5]"]},
            "data": {"path": str(tmp_path / "data"), "validate": "train"},
        }
    )
    with Data.open(tmp_path / "data") as data:
        assert train(config, data, tmp_path / "run").best >= 0.8
    told = CliRunner().invoke(export, [str(tmp_path / "run"), "--out", str(tmp_path / "model"), "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads((tmp_path / "model/model.json").read_text())["head"]["window"] == 15
    with Library.open(tmp_path / "trained", create=True, encoder=f"model:{tmp_path / 'model'}") as trained:
        trained.add(annotated)
        found = [trained.search(f"it turns {colour}", streams=["vision"], all=True)[0] for colour in COLOURS]
        assert sum(hit.name == f"{at}.mp4" for at, hit in enumerate(found)) >= 4
        middles = [4.5 * (1.5 + at % 3) for at in range(len(COLOURS))]
        assert sum(hit.start <= middle <= hit.end for hit, middle in zip(found, middles, strict=True)) >= 4


def test_the_command_writes_features(library: LibraryStore, annotated: Path, tmp_path: Path):
    library.add(annotated)
    where = ["--library", str(library.path), "--out", str(tmp_path / "data")]
    done = CliRunner().invoke(features, [f"train={annotated / 'train.jsonl'}", *where, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["queries"] == {"train": 15}
    for wrong, words in ((["train.jsonl"], "is not SPLIT=FILE"), (["a=x", "a=y"], "named twice")):
        assert words in str(CliRunner().invoke(features, [*wrong, *where]).exception)


def test_errors_are_reported_before_anything_is_encoded(annotated: Path, tmp_path: Path):
    """Annotations without texts, and a picture encoder without a text side: encoding can take hours."""

    class Mute:
        name, dim, short_side, fingerprint = "mute", 2, 16, "mute-1"

        def encode(self, texts: list[str]) -> np.ndarray:
            raise MomentseekError("mute has no text side here")

        def encode_images(self, images: list[np.ndarray]) -> np.ndarray:
            raise AssertionError("pictures are encoded")

    (tmp_path / "wordless.jsonl").write_text(
        '{"query_id": "1", "video": "0", "start": 0, "end": 3, "relevance": 1, "duration": 22.5}\n'
    )
    register_image_text("mute", Mute)
    try:
        for truth, words in (("wordless.jsonl", "does not hold the text"), ("own/train.jsonl", "no text side here")):
            asked = [f"train={tmp_path / truth}", "--videos", str(annotated), "--encoder", "mute", "--own-text"]
            done = CliRunner().invoke(features, [*asked, "--out", str(tmp_path / "data")])
            assert words in str(done.exception)
    finally:
        del IMAGE_TEXT_ENCODERS["mute"]
