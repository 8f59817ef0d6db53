from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Data
from momentseek.models.inputs import clips_of
from momentseek.models.model import GroundingConfig

Write = Callable[[Path, dict[str, np.ndarray]], None]


def test_a_folder_says_what_it_has(folder: Path) -> None:
    with Data.open(folder) as data:
        assert (data.name, data.splits, data.clip_seconds, data.simulated) == ("three", ("train",), 1.5, False)
        assert (data.dims.query, data.dims.video, data.dims.subtitle) == (3, 6, 3)
        split = data.split("train")
        assert split.corpus == ("a", "b", "c")
        assert split.durations == {"a": 6.0, "b": 7.5, "c": 9.0}
        assert split.truth.query_ids == ("1", "2")
        assert data.split("train") is split
        data.check(["train"])


def test_without_a_corpus_the_truths_videos_are_searched(folder: Path) -> None:
    text = (folder / "data.toml").read_text().replace('corpus = "corpus.json"\n', "")
    (folder / "data.toml").write_text(text)
    with Data.open(folder / "data.toml") as data:
        assert data.split("train").corpus == ("a", "b")
        assert data.split("train").durations == {"a": 6.0, "b": 7.5}  # from the clips


def test_a_video_without_features_is_found_before_training(folder: Path) -> None:
    corpus = json.loads((folder / "corpus.json").read_text())
    (folder / "corpus.json").write_text(json.dumps(corpus | {"d": 9.0}))
    with Data.open(folder) as data, pytest.raises(MomentseekError, match=r"video\.h5: has no features for video d"):
        data.check(["train"])


def test_different_clip_counts_are_found(folder: Path, write_features: Write) -> None:
    write_features(folder / "subtitle.h5", {v: np.ones((4, 3)) for v in "abc"})
    with Data.open(folder) as data, pytest.raises(MomentseekError, match="video b has 5 clips in the video features"):
        data.check(["train"])


def test_pictures_and_sounds_of_different_lengths_are_cut_to_the_shorter(folder: Path, write_features: Write) -> None:
    write_features(folder / "subtitle.h5", {"a": np.ones((4, 3)), "b": np.ones((4, 3)), "c": np.ones((9, 3))})
    text = (folder / "data.toml").read_text().replace("[features]", "[features]\nshortest = true")
    (folder / "data.toml").write_text(text)
    with Data.open(folder) as data:
        data.check(["train"])
        assert [data.rows(name) for name in "abc"] == [4, 4, 6]
        found = clips_of(data, list("abc"), GroundingConfig(modalities="video+subtitle", endpoints=True))
        assert found.mask.sum(1).tolist() == [4, 4, 6]
        assert found.subtitle is not None
        assert found.subtitle[1, :4, -1].tolist() == [0.25, 0.5, 0.75, 1.0]
        assert clips_of(data, ["b"], GroundingConfig(modalities="video")).mask.sum().item() == 5


def test_a_query_without_words_is_found(folder: Path, write_features: Write) -> None:
    write_features(folder / "query.h5", {"1": np.ones((2, 3)), "2": np.ones((0, 3))})
    with Data.open(folder) as data, pytest.raises(MomentseekError, match="query 2 of split train has no words"):
        data.check(["train"])


def test_a_query_without_features_is_found(folder: Path, write_features: Write) -> None:
    write_features(folder / "query.h5", {"1": np.ones((2, 3))})
    with Data.open(folder) as data, pytest.raises(MomentseekError, match="no features for query 2"):
        data.check(["train"])


def test_queries_of_different_encoders_are_found(folder: Path, write_features: Write) -> None:
    write_features(folder / "other.h5", {"1": np.ones((2, 4)), "2": np.ones((2, 4))})
    with (folder / "data.toml").open("a") as f:
        f.write('[splits.val]\ntruth = "train.json"\nquery = "other.h5"\n')
    with Data.open(folder) as data, pytest.raises(MomentseekError, match="val have 4 columns and those of train 3"):
        data.check(["train", "val"])


def test_an_unknown_split_is_said(folder: Path) -> None:
    with Data.open(folder) as data, pytest.raises(MomentseekError, match="no split 'trian'; did you mean 'train'"):
        data.split("trian")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('name = "three"', "name = three", "cannot be read as TOML"),
        ("[features]", "[feature]", r"has no \[features\]"),
        ("[splits.train]", "[split.train]", "has no splits"),
        ('truth = "train.json"\n', "", "does not say its truth file"),
        ("corpus =", "korpus =", "splits.train.korpus is not understood"),
        ('subtitle = "subtitle.h5"', "subtitle = 3", "features.subtitle must be a file name"),
        ('subtitle = "subtitle.h5"', 'sound = "s.h5"', "knows video, subtitle and shortest, not 'sound'"),
        ("[features]", "clip_seconds = 0\n[features]", "clip_seconds must be a number above 0"),
    ],
    ids=["toml", "features", "splits", "truth", "key", "type", "modality", "clip"],
)
def test_mistakes_in_the_file_are_said(folder: Path, old: str, new: str, what: str) -> None:
    text = (folder / "data.toml").read_text()
    assert old in text
    (folder / "data.toml").write_text(text.replace(old, new))
    with pytest.raises(MomentseekError, match=what):
        Data.open(folder)


def test_no_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match=r"data\.toml: there is no such file"):
        Data.open(tmp_path)


def test_the_fingerprint_changes_with_the_data(folder: Path, write_features: Write) -> None:
    before = Data.open(folder).fingerprint
    assert Data.open(folder).fingerprint == before
    write_features(folder / "query.h5", {"1": np.ones((2, 3)), "2": np.ones((4, 3))})
    assert Data.open(folder).fingerprint != before


SPLIT = '[splits.val]\ntruth = "val.json"\nquery = "val.h5"\n'


@pytest.mark.parametrize("key", ["truth", "corpus", "durations", "related"])
def test_the_fingerprint_sees_the_end_of_every_file(folder: Path, key: str) -> None:
    corpus = json.loads((folder / "corpus.json").read_text())
    (folder / "durations.json").write_text(json.dumps(corpus))
    (folder / "related.json").write_text(json.dumps({"1": ["b"]}))
    with (folder / "data.toml").open("a") as f:
        f.write('durations = "durations.json"\nrelated = "related.json"\n')
    file = folder / {"truth": "train.json"}.get(key, f"{key}.json")
    file.write_text(file.read_text() + " " * (1 << 17) + "\n")
    before = Data.open(folder).fingerprint
    assert Data.open(folder).fingerprint == before
    file.write_text(file.read_text()[:-1] + " ")  # as long as it was
    assert Data.open(folder).fingerprint != before


def test_the_fingerprint_of_some_splits_needs_no_others(folder: Path, write_features: Write) -> None:
    with Data.open(folder) as data:
        before = data.fingerprint
    with (folder / "data.toml").open("a") as f:
        f.write(SPLIT)
    with Data.open(folder) as data:
        assert data.fingerprint_of(["train"]) == before
        with pytest.raises(MomentseekError, match=r"val\.h5: there is no such feature file"):
            data.fingerprint_of(["train", "val"])
    write_features(folder / "val.h5", {"1": np.ones((2, 3))})
    with Data.open(folder) as data, pytest.raises(MomentseekError, match=r"val\.json: cannot be read"):
        _ = data.fingerprint
    (folder / "val.json").write_text("[]")
    with Data.open(folder) as data:
        assert data.fingerprint_of(["train"]) == before != data.fingerprint
        assert data.fingerprint_of(["val", "train", "val"]) == data.fingerprint


def test_only_the_modalities_in_use_are_checked(folder: Path, write_features: Write) -> None:
    write_features(folder / "subtitle.h5", {"a": np.ones((9, 3)), "b": np.ones((5, 4))})
    with Data.open(folder) as data:
        data.use("video")
        data.check(["train"])
        assert [data.rows(v) for v in "abc"] == [4, 5, 6]
        data.use("subtitle")
        assert data.rows("a") == 9
        with pytest.raises(MomentseekError, match="video b has 4 columns"):
            data.check(["train"])
        data.use("video+subtitle")
        with pytest.raises(MomentseekError, match="has 4 clips in the video features and 9"):
            data.check(["train"])


def test_the_location_opens_the_data_from_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / "other.toml").write_text((folder / "data.toml").read_text().replace("three", "others"))
    monkeypatch.chdir(folder.parent)
    here, other = (Data.open(p).location for p in (folder.name, f"{folder.name}/other.toml"))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert (Data.open(here).name, Data.open(other).name) == ("three", "others")
    assert here == str(folder.resolve())
