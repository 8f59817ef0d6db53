"""The files: readable by the package's own readers, as the community's are, and the same every time."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from momentseek.benchmarks.simulation.corpus import SimulationReport, simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.vectors import draw_concept_vectors
from momentseek.benchmarks.simulation.world import the_world
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_captions, read_corpus, read_truth
from momentseek.models.features.data import Data

Small = tuple[Path, SimulationReport]
TINY = SimulationSettings(videos=10, queries=20, seed=7)
TRAIN_KEYS = ["pair_id", "video_name", "timestamp", "duration", "caption", "similarity"]


def hashes(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def test_same_settings_same_bytes_and_another_seed_other_bytes(tmp_path: Path) -> None:
    for name, settings in (("a", TINY), ("b", TINY), ("c", replace(TINY, seed=8))):
        simulate(tmp_path / name, settings)
    a, b, c = (hashes(tmp_path / name) for name in "abc")
    assert a == b
    assert a.keys() == c.keys()
    assert [name for name in a if a[name] == c[name]] == []


@pytest.mark.parametrize("split", ["train_top01", "train_top20", "train_top40", "val", "test"])
def test_ranking_splits_have_the_fields_of_tvr_ranking(small: Small, split: str) -> None:
    folder, _ = small
    entries = json.loads((folder / f"{split}.json").read_bytes())
    judged = not split.startswith("train")
    for entry in entries:
        assert list(entry) == ["query_id", "query", "relevant_moment"]
        for moment in entry["relevant_moment"]:
            assert list(moment) == [*TRAIN_KEYS, *(["relevance"] if judged else [])]
    pairs = [moment["pair_id"] for entry in entries for moment in entry["relevant_moment"]]
    assert pairs == list(range(len(pairs)))
    if not judged:
        assert {len(entry["relevant_moment"]) for entry in entries} == {int(split[-2:])}


@pytest.mark.parametrize("split", ["train_top01", "train_top20", "train_top40", "val", "test"])
def test_ranking_splits_can_be_read(small: Small, split: str) -> None:
    folder, _ = small
    corpus = read_corpus(folder / "video_corpus.json")
    truth = read_truth(folder / f"{split}.json", corpus=corpus)
    assert truth.findings == ()
    assert set(truth.videos) <= corpus.videos
    similarity = np.array(truth.columns["similarity"], dtype=float)
    assert similarity.min() >= 0
    assert similarity.max() == 1
    falling = np.diff(similarity) <= 0
    assert falling[np.diff(truth.row_query) == 0].all()
    assert ((truth.relevance == 1).all()) == split.startswith("train")


def test_no_text_is_in_two_splits_nor_twice_in_one(small: Small) -> None:
    folder, _ = small
    texts = [
        t for split in ("train_top01", "val", "test") for t in (read_truth(folder / f"{split}.json").queries or ())
    ]
    assert len(texts) == len(set(texts)) == 100


def test_the_best_training_moment_has_the_querys_own_caption_or_a_paraphrase(small: Small) -> None:
    truth = read_truth(small[0] / "train_top01.json")
    same = [a == b for a, b in zip(truth.queries or (), truth.columns["caption"], strict=True)]
    assert all(same)


def test_tvr_files_can_be_read_and_split_the_videos(small: Small) -> None:
    folder, _ = small
    durations = json.loads((folder / "tvr_video2dur_idx.json").read_bytes())
    corpus = read_corpus(folder / "tvr_video2dur_idx.json")
    assert {split: len(videos) for split, videos in durations.items()} == {"train": 40, "val": 5, "test": 5}
    seen: set[str] = set()
    for split, videos in durations.items():
        truth = read_truth(folder / f"tvr_{split}_release.jsonl", corpus=corpus)
        assert set(truth.videos) == set(videos)
        assert not seen & set(truth.videos)
        assert set(truth.fields["type"]) <= {"v", "t", "vt"}
        seen |= set(truth.videos)
    assert not (folder / "tvr_val_release.jsonl").read_bytes().endswith(b"\n")


def test_tvc_files_have_several_captions_of_tvrs_moments(small: Small) -> None:
    folder, _ = small
    for split, captions in (("train", 2), ("val", 4), ("test", 4)):
        table = read_captions(folder / f"tvc_{split}_release.jsonl")
        truth = read_truth(folder / f"tvr_{split}_release.jsonl")
        assert table.query_ids == truth.query_ids
        assert (table.start.tolist(), table.end.tolist()) == (truth.start.tolist(), truth.end.tolist())
        assert set(table.caption_counts.tolist()) == {captions}
        first = [table.of(moment)[0] for moment in table]
        assert (first == list(truth.queries or ())) == (split == "train")
        assert sum(len(set(table.of(moment))) for moment in table) > len(table) * captions / 2


def test_subtitles_speak_where_the_features_do_and_of_the_topic(small: Small) -> None:
    folder, _ = small
    said = {
        entry["vid_name"]: entry["sub"]
        for entry in map(json.loads, (folder / "tvqa_preprocessed_subtitles.jsonl").read_text().splitlines())
    }
    with h5py.File(folder / "subtitle.h5") as features:
        for video, lines in said.items():
            loud = features[video][()].any(axis=1)
            heard = np.zeros(len(loud), dtype=bool)
            for line in lines:
                heard[round(line["start"] / 1.5) : int(np.ceil(line["end"] / 1.5))] = True
            assert heard.tolist() == loud.tolist()
    happened = [json.loads(line) for line in (folder / "concepts.jsonl").read_text().splitlines()]
    spoken = [event for event in happened if "topic" in event]
    assert len(spoken) > 20
    world = the_world()
    for event in spoken:
        words = world.concepts[world.number["topic", event["topic"]]].words
        start, end = event["action_times"]
        during = [s["text"] for s in said[event["vid_name"]] if s["start"] < end and s["end"] > start]
        assert any(word in text for text in during for word in words)


def test_captions_name_people_and_queries_do_not(small: Small) -> None:
    folder, _ = small
    names = {json.loads(line)["actor"] for line in (folder / "concepts.jsonl").read_text().splitlines()}
    precise = [json.loads(line)["desc"] for line in (folder / "tvr_train_release.jsonl").read_text().splitlines()]
    assert all(set(words.replace(".", "").replace("'s", "").split()) & names for words in precise)
    for split in ("train_top40", "val", "test"):
        for text in read_truth(folder / f"{split}.json").queries or ():
            assert not set(text.replace(".", "").split()) & names


def test_every_video_has_clips_and_every_query_words(small: Small) -> None:
    folder, _ = small
    durations = read_corpus(folder / "video_corpus.json").durations
    with h5py.File(folder / "video.h5") as video, h5py.File(folder / "subtitle.h5") as subtitle:
        assert set(video) == set(subtitle) == set(durations)
        for name, seconds in durations.items():
            clips = int(np.ceil(seconds / 1.5))
            assert video[name].shape == (clips, 256)
            assert subtitle[name].shape == (clips, 192)
            assert video[name].dtype == subtitle[name].dtype == np.float32
        silent = np.concatenate([~subtitle[name][()].any(axis=1) for name in durations])
        assert 0.02 < silent.mean() < 0.5
    with h5py.File(folder / "query.h5") as words:
        for split in ("train_top01", "val", "test"):
            truth = read_truth(folder / f"{split}.json")
            for query, text in zip(truth.query_ids, truth.queries or (), strict=True):
                assert words[query].shape == (len(text.split()), 192)
    with h5py.File(folder / "tvr_query.h5") as words:
        truth = read_truth(folder / "tvr_test_release.jsonl")
        assert all(
            words[query].shape == (len(t.split()), 192) for query, t in zip(truth, truth.queries or (), strict=True)
        )


def test_data_toml_names_files_that_are_there(small: Small) -> None:
    folder, _ = small
    data = tomllib.loads((folder / "data.toml").read_text())
    assert data["simulated"] is True
    assert data["clip_seconds"] == 1.5
    named = [*data["features"]["video"], data["features"]["subtitle"], data["subtitles"]]
    named += [file for split in data["splits"].values() for file in split.values()]
    assert list(data["splits"]) == [
        *("train_top01", "train_top20", "train_top40", "val", "test"),
        *("tvr_train", "tvr_val", "tvr_test"),
        *("tvc_train", "tvc_val", "tvc_test"),
    ]
    assert [name for name in named if not (folder / name).is_file()] == []


def test_world_json_tells_what_made_it(small: Small) -> None:
    folder, report = small
    world = json.loads((folder / "world.json").read_text())
    assert world["settings"] == {
        "videos": 50,
        "queries": 100,
        "seed": 3,
        "hard": 0.5,
        "video_dim": 256,
        "text_dim": 192,
        "streams": False,
    }
    assert world["fingerprint"] == report.fingerprint
    assert "simulation" in world["what"]


def test_a_folder_with_something_in_it_is_refused_unless_forced(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(MomentseekError, match="is not empty; choose another folder"):
        simulate(folder, TINY)
    assert [p.name for p in tmp_path.iterdir()] == ["corpus"]
    simulate(folder, TINY, force=True)
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "data.toml").is_file()
    assert [p.name for p in tmp_path.iterdir()] == ["corpus"]


def test_nothing_is_left_behind_when_it_is_interrupted(tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(tmp_path / "corpus", TINY, progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"videos": 3}, "the number of videos \\(`videos`\\) is 3; give at least 10"),
        ({"queries": 0}, "the number of queries \\(`queries`\\) is 0"),
        ({"hard": 1.5}, "a difficulty of 1.5 is out of range"),
        ({"text_dim": 2}, "the text dimension \\(`text_dim`\\) is 2"),
        ({"seed": -1}, "the seed \\(`seed`\\) is -1"),
    ],
    ids=["videos", "queries", "hard", "dim", "seed"],
)
def test_impossible_settings_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(MomentseekError, match=message):
        SimulationSettings(**settings)  # type: ignore[arg-type]


def test_more_queries_than_captions_are_paraphrased_and_too_many_refused(tmp_path: Path) -> None:
    simulate(tmp_path / "many", SimulationSettings(videos=10, queries=80))
    texts = read_truth(tmp_path / "many" / "train_top01.json").queries or ()
    assert len(set(texts)) == len(texts) == 64
    with pytest.raises(MomentseekError, match="different queries, not 5,000; ask for fewer"):
        simulate(tmp_path / "none", SimulationSettings(videos=10, queries=5000))
    assert not (tmp_path / "none").exists()


def test_the_folder_is_sound_data_for_training(small: Small) -> None:
    with Data.open(small[0]) as data:
        assert data.simulated
        data.check(data.splits)
        assert (data.dims.query, data.dims.video, data.dims.subtitle) == (192, 256, 192)
        assert len(data.split("test").corpus) == 50
        assert set(data.split("tvr_val").corpus) == set(data.split("tvr_val").truth.videos)


def test_streams_separate_things_and_motion() -> None:
    world = the_world()
    settings = SimulationSettings(videos=10, queries=20, video_dim=64, text_dim=16, streams=True)
    looks = draw_concept_vectors(world, ["door"], settings).looks
    first = np.square(looks[:, :32]).sum(axis=1)
    np.testing.assert_allclose(np.square(looks).sum(axis=1), 1)
    assert first[world.of_kind("object")].mean() > 0.8
    assert first[world.of_kind("action")].mean() < 0.2
