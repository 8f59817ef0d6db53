"""From a library's own sentences to a trained ranker in the same library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from momentseek.benchmarks.datasets import own_lists
from momentseek.benchmarks.datasets.own_lists import write_own_lists
from momentseek.cli.data.features import features
from momentseek.core.errors import MomentseekError
from momentseek.library.store import LibraryStore
from momentseek.measuring.formats import read_truth

RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)
SENTENCES = ("the red garden gate opens slowly", "green leaves cover every window", "blue water fills the harbour")


@pytest.fixture
def library(light: ModuleType, tmp_path: Path, film: Callable[..., Path]) -> LibraryStore:
    folder = tmp_path / "films"
    (folder / "deep").mkdir(parents=True)
    for at in range(6):
        path = film(folder / ("deep" if at == 5 else "") / f"film{0 if at == 5 else at}.mp4", RED, GREEN, BLUE)
        cues = [f"{n + 1}\n00:00:0{n},100 --> 00:00:0{n},900\n{text}, part {at}.\n" for n, text in enumerate(SENTENCES)]
        path.with_suffix(".srt").write_text("\n".join([*cues, "4\n00:00:02,900 --> 00:00:02,950\nYes.\n"]))
    opened = LibraryStore.open(tmp_path / "library", create=True, encoder="colours")
    assert opened.add(folder).added == 6
    return opened


def test_too_little_is_refused_with_what_is_there(library: LibraryStore, tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match=r"has 18 sentences .* in 6 videos, too little to learn from .*describe"):
        write_own_lists(library, tmp_path)


def test_lists_hold_own_and_similar_moments_of_other_videos_alone(
    library: LibraryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_lists, "MIN_SENTENCES", 10)
    done = write_own_lists(library, tmp_path, 5)
    assert (done.said, done.described, done.videos) == (18, 0, 6)
    assert "18 sentences are few" in done.note
    train, val = (read_truth(done.files[split]) for split in ("train", "val"))
    assert set(train.videos) & set(val.videos) == set()
    assert len(train.videos) + len(val.videos) == 6
    assert len(val.query_ids) == len(val) == 3
    lists = json.loads(done.files["train"].read_text())
    assert len(lists) == 15
    for one in lists:
        assert one["relevant_moment"][0]["similarity"] == 1.0
        assert one["query"] in {moment["caption"] for moment in one["relevant_moment"]}
        assert len(one["relevant_moment"]) == 5


@pytest.mark.slow
def test_the_path_ends_in_a_library_that_the_ranker_searches(
    library: LibraryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from momentseek.api.library import Library
    from momentseek.models.export.checkpoints import export_checkpoint
    from momentseek.models.features.data import Data
    from momentseek.models.training.config import TrainConfig
    from momentseek.models.training.loop import train

    monkeypatch.setattr(own_lists, "MIN_SENTENCES", 10)
    library.close()
    asked = ["--own-lists", "--library", str(library.path), "--out", str(tmp_path / "data"), "--json"]
    told = CliRunner().invoke(features, asked)
    assert told.exit_code == 0, told.output
    report = json.loads(told.stdout)
    assert report["queries"] == {"train": 15, "val": 3}
    assert report["lists"]["said"] == 18
    training = {"steps": 3, "validate_every": 3, "batch": 4, "draw": "lists", "list_queries": 8, "threads": 1}
    config = TrainConfig.of(
        {
            "model": {"name": "slate", "hidden": 16, "heads": 2},
            "training": training,
            "data": {"path": str(tmp_path / "data"), "train": "train", "validate": "val"},
        }
    )
    with Data.open(tmp_path / "data") as data:
        assert data.preset == "library"
        train(config, data, tmp_path / "run")
    _, missing = export_checkpoint(tmp_path / "run", tmp_path / "model")
    assert missing == ""
    with Library.open(library.path) as opened:
        opened.reencode(f"model:{tmp_path / 'model'}")
        assert opened.search("green leaves", all=True)
        assert opened.verify().clean


def test_splits_and_own_lists_exclude_each_other(tmp_path: Path) -> None:
    told = CliRunner().invoke(features, ["train=x.json", "--own-lists", "--library", "x", "--out", str(tmp_path / "d")])
    assert told.exit_code
    assert isinstance(told.exception, MomentseekError) or "leave SPLIT=FILE out" in told.output
