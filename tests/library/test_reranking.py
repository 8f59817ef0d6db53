"""From annotated videos to a model that re-ranks what their library finds: features, training, export, search."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from momentseek.api.library import Library
from momentseek.benchmarks.datasets.library_features import write_library_features
from momentseek.cli.checkpoints import export as export_command
from momentseek.cli.search import search as search_command
from momentseek.core.errors import MomentseekError
from momentseek.library.store import LibraryStore
from momentseek.models.export.writing import export
from momentseek.models.features.data import Data, Dims
from momentseek.models.registry import build
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train
from momentseek.recognition.exported.manifest import EncoderRef
from momentseek.recognition.exported.reranker import Reranker, load_reranker
from momentseek.search.part import WarmState
from momentseek.search.session import NOT_RERANKED_NOTE

GREY = (120, 120, 120)
COLOURS = {"red": (220, 20, 20), "green": (20, 220, 20), "blue": (20, 20, 220)}
SOURCES = {
    "video": EncoderRef("colours", "colours-1", 4),
    "subtitle": EncoderRef("minilm", "letters-1", 27),
    "query": EncoderRef("minilm", "letters-1", 27),
}
SMALL = {"hidden": 16, "max_clips": 8, "longest": 8, "map_layers": 1, "kernel": 3, "text_layers": 1}


@pytest.fixture
def films(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """Films that are grey but for a scene of a colour each, at another place in each."""
    folder = tmp_path / "films"
    folder.mkdir()
    for at, colour in enumerate(COLOURS.values()):
        scenes = [GREY] * 4
        scenes[1 + at] = colour
        film(folder / f"{at}.mp4", *scenes, seconds=4.5)
    (folder / "0.srt").write_text("1\n00:00:05,000 --> 00:00:08,000\nIt is all red now.\n")
    return folder


@pytest.fixture
def searched(library: LibraryStore, films: Path) -> Library:
    assert library.add(films).added == 3
    return Library.open(library.path)


def model(folder: Path, name: str = "tan2d", *, encoders: dict[str, EncoderRef] = SOURCES, **more: Any) -> Path:
    """One with weights of chance."""
    torch.manual_seed(0)
    settings = {**SMALL, "modalities": "video+subtitle"}
    export(build(name, settings, Dims(27, 4, 27)), name, folder, encoders=encoders, window=30.0, **more)
    return folder


def test_hits_are_the_models(searched: Library, tmp_path: Path) -> None:
    folder = model(tmp_path / "tan2d")
    plain = searched.search("it is red", all=True, group="video")
    found = searched.search("it is red", k=50, all=True, rerank=folder, explain=True)
    assert {hit.video_id for hit in found} == {hit.video_id for hit in plain}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert all(hit.model.startswith("tan2d ") and hit.curve for hit in found)
    before = {hit.video_id: (hit.rank, hit.score, hit.level) for hit in plain}
    assert {(h.video_id, h.first.rank, h.first.score, h.level) for h in found if h.first} == {
        (id, *facts) for id, facts in before.items()
    }
    assert all(hit.start <= hit.peak <= hit.end for hit in found)
    assert len(searched.search("it is red", k=50, all=True, rerank=folder, rerank_videos=1)) < len(found)
    assert {h.video_id for h in searched.search("it is red", all=True, rerank=folder, rerank_videos=1)} == {
        plain[0].video_id
    }


def test_conditions_hold_for_the_models_moments_too(searched: Library, tmp_path: Path) -> None:
    folder = model(tmp_path / "tan2d")
    told = searched.search('it "all red"', k=50, all=True, rerank=folder)
    assert told
    assert all(hit.name == "0.mp4" and hit.said for hit in told)
    spared = searched.search("it -said:red", k=50, all=True, rerank=folder, localiser="scenes")
    assert {hit.name for hit in spared} == {"0.mp4", "1.mp4", "2.mp4"}
    assert not any(hit.said for hit in spared)
    only = searched.search("said:red", all=True, rerank=folder)
    assert NOT_RERANKED_NOTE in only.note
    assert not any(hit.first for hit in only)


def test_the_model_is_loaded_once(searched: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model(tmp_path / "tan2d")
    loads: list[Path] = []

    def counted(place: Path) -> Reranker:
        loads.append(place)
        return load_reranker(place)

    monkeypatch.setattr("momentseek.recognition.exported.reranker.load_reranker", counted)
    searched.search("red", rerank=folder)
    searched.search("green", rerank=str(folder))
    assert loads == [folder]
    model(folder, force=True, nms=0.1)
    searched.search("red", rerank=folder)
    assert loads == [folder, folder]


def test_the_next_page_costs_nothing(searched: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model(tmp_path / "tan2d")
    looked: list[int] = []

    def counted(self: Reranker, words: Any, text: str, videos: Any, *more: Any) -> Any:
        looked.append(len(videos))
        return spans_of(self, words, text, videos, *more)

    spans_of = Reranker.spans_of
    monkeypatch.setattr(Reranker, "spans_of", counted)
    one = searched.search("it is red", k=2, all=True, rerank=folder, rerank_videos=2)
    more = searched.search("it is red", k=5, all=True, rerank=folder, rerank_videos=3)
    searched.search("it is green", k=5, all=True, rerank=folder)
    assert looked == [2, 1, 3]
    shown = {(hit.video_id, hit.start, hit.end, hit.score) for hit in one}
    assert shown <= {(hit.video_id, hit.start, hit.end, hit.score) for hit in searched.search(
        "it is red", k=500, all=True, rerank=folder)}  # fmt: skip
    assert more


def test_models_of_other_vectors_are_refused(searched: Library, tmp_path: Path, light: ModuleType) -> None:
    other = {**SOURCES, "video": EncoderRef("colours", "colours-2", 4)}
    with pytest.raises(MomentseekError, match=r"trained on vectors of pictures by 'colours', and the library's are by"):
        searched.search("red", rerank=model(tmp_path / "other", encoders=other))
    spoken = {**SOURCES, "subtitle": EncoderRef("minilm", "letters-2", 27)}
    with pytest.raises(MomentseekError, match="trained on vectors of what is said by 'minilm'"):
        searched.search("red", rerank=model(tmp_path / "spoken", encoders=spoken))
    asked = {**SOURCES, "query": EncoderRef("minilm", "letters-2", 27)}
    with pytest.raises(MomentseekError, match="trained on queries by another 'minilm'"):
        searched.search("red", rerank=model(tmp_path / "asked", encoders=asked))
    with pytest.raises(MomentseekError, match=r"clips of 2 s; the library's have 1\.5 s"):
        searched.search("red", rerank=model(tmp_path / "longer", clip_seconds=2.0))
    with pytest.raises(MomentseekError, match="there is no such folder"):
        searched.search("red", rerank=tmp_path / "none")
    with pytest.raises(MomentseekError, match="0 videos cannot be re-ranked"):
        searched.search("red", rerank_videos=0)


def test_damaged_vectors_are_left_out(searched: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model(tmp_path / "tan2d")
    gone = searched.search("red", rerank=folder, all=True)[0].video_id
    state = WarmState.state

    def damaged(library: WarmState) -> Any:
        kept = state(library)
        for segment in kept.speech.segments:
            object.__setattr__(segment, "half", segment.half * float("nan"))
        return kept

    monkeypatch.setattr(WarmState, "state", damaged)
    found = searched.search("red", rerank=folder, all=True, streams=["vision"])
    assert "damaged" in found.note
    assert {hit.name for hit in found} == {"1.mp4", "2.mp4"}
    assert gone


def test_the_command_tells_both_scores(searched: Library, tmp_path: Path) -> None:
    folder = model(tmp_path / "cet-like")
    where = ["--library", str(searched.path), "--rerank", str(folder), "--all", "it is red"]
    told = CliRunner().invoke(search_command, [*where, "--json"])
    assert told.exit_code == 0, told.output
    first = json.loads(told.stdout)["hits"][0]
    assert first["reranked"].keys() == {"model", "score", "first"}
    assert first["reranked"]["score"] == first["score"] == first["streams"]["rerank"]["score"]
    assert first["reranked"]["first"].keys() == {"rank", "score"}
    shown = CliRunner().invoke(search_command, [*where, "--explain"])
    assert "re-ranked; its video was #" in shown.output
    assert "before, its video had rank" in shown.output
    alone = CliRunner().invoke(search_command, ["--library", str(searched.path), "--rerank-videos", "3", "red"])
    assert "is for --rerank" in alone.output


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("mdd", marks=pytest.mark.figures), "cet"])
def test_a_model_trained_on_ones_own_videos_finds_the_moment(
    name: str, searched: Library, films: Path, tmp_path: Path
) -> None:
    lines = [
        {"desc_id": 10 * at + i, "desc": text.format(colour), "vid_name": str(at), "duration": 18.0,
         "ts": [4.5 * (1 + at), 4.5 * (2 + at)]}
        for at, colour in enumerate(COLOURS)
        for i, text in enumerate(("{} appears", "it turns {}", "the {} part"))
    ]  # fmt: skip
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    write_library_features(searched.store, {"train": tmp_path / "train.jsonl"}, tmp_path / "data")
    own: dict[str, Any] = {**SMALL, "max_clips": 12, "longest": 12, "hidden": 32}
    if name == "cet":
        own = {"hidden": 32, "heads": 4, "layers": 1, "max_clips": 12, "longest": 12, "dropout": 0.0}
    config = TrainConfig.of(
        {
            "model": {"name": name, **own},
            "training": {"steps": 75 if name == "cet" else 300, "lr": 0.006 if name == "cet" else 0.003, "batch": 9,
                         "validate_every": 25, "measure": "R@1[IoU>=0.7]", "task": "SVMR", "threads": 1,
                         "report": ["R@1[IoU>=0.7]"]},
            "data": {"path": str(tmp_path / "data"), "validate": "train"},
        }
    )  # fmt: skip
    with Data.open(tmp_path / "data") as data:
        assert train(config, data, tmp_path / "run").best == 1.0
    told = CliRunner().invoke(export_command, [str(tmp_path / "run"), "--out", str(tmp_path / "model"), "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["serves_libraries"]
    assert json.loads((tmp_path / "model" / "model.json").read_text())["head"]["window"] == 18.0
    for at, colour in enumerate(COLOURS):
        first = searched.search(f"it turns {colour}", streams=["vision"], all=True, rerank=tmp_path / "model",
                                rerank_videos=1)[0]  # fmt: skip
        assert (first.name, first.start, first.end) == (f"{at}.mp4", 4.5 * (1 + at), 4.5 * (2 + at))
