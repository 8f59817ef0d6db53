"""Variants of the simulated corpus, and judgements without a pool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from momentseek.benchmarks.simulation.corpus import SimulationReport, simulate
from momentseek.benchmarks.simulation.relevance import build_judge
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.story import tell_story
from momentseek.benchmarks.simulation.truths import full_truth, load_known, pooled_truth
from momentseek.benchmarks.simulation.variants import VARIANTS
from momentseek.benchmarks.simulation.vectors import (
    clip_count,
    draw_concept_vectors,
    draw_rotation,
    event_deviations,
    video_features,
)
from momentseek.benchmarks.simulation.world import the_world
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_truth
from momentseek.models.features.data import Data

Small = tuple[Path, SimulationReport]
SETTINGS = SimulationSettings(videos=30, queries=40, seed=1, video_dim=24, text_dim=16)
DEFAULT_FINGERPRINT = "e35e37d206e047746045102340c39528305baaacd6035321272af2573cfdc016"
"""Of the files that 50 videos, 100 queries and seed 3 gave before there were variants."""


def make(folder: Path, variant: str) -> Path:
    simulate(folder / variant, replace(SETTINGS, variant=variant))
    return folder / variant


def features(folder: Path, name: str) -> np.ndarray:
    with h5py.File(folder / f"{name}.h5", "r") as file:
        return np.concatenate([np.asarray(file[video]) for video in file])


def test_the_default_corpus_is_what_it_was_byte_for_byte(small: Small) -> None:
    assert small[1].fingerprint == DEFAULT_FINGERPRINT
    assert "variant" not in small[1].as_json()["settings"]


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "default"])
def test_every_variant_is_a_corpus_of_its_own(name: str, tmp_path: Path, small: Small) -> None:
    data = Data.open(make(tmp_path, name))
    truth = data.split("test").truth
    assert len(truth) == 6
    assert set(truth.videos) <= set(data.split("test").corpus)
    assert load_known(tmp_path / name).settings.variant == name
    same = [
        (tmp_path / name / file).read_bytes() == (small[0] / file).read_bytes() for file in ("video.h5", "subtitle.h5")
    ]
    assert not all(same)


def test_an_unknown_variant_is_refused_with_a_near_one() -> None:
    with pytest.raises(MomentseekError, match="camera"):
        SimulationSettings(variant="camra")


def test_new_library_searches_videos_without_training_lists(tmp_path: Path) -> None:
    data = Data.open(make(tmp_path, "new-library"))
    listed, searched = set(data.split("train_top40").truth.videos), set(data.split("test").corpus)
    assert len(searched) == 6
    assert not listed & searched
    assert set(data.split("test").truth.videos) <= searched
    assert len(data.split("test_all").corpus) == 30


def test_distractors_are_searched_and_never_listed(tmp_path: Path) -> None:
    data = Data.open(make(tmp_path, "distractors"))
    corpus = data.split("test").corpus
    assert len(corpus) == 150
    named = set(data.split("train_top40").truth.videos) | set(data.split("test").truth.videos)
    assert named <= set(corpus[:30])


def test_events_deviate_by_the_same_vector_in_all_their_clips() -> None:
    settings = replace(SETTINGS, hard=0.0, variant="event-variance")
    plain = replace(settings, variant="default")
    world, story = the_world(), tell_story(the_world(), plain)
    assert tell_story(world, settings).moments.begin.tolist() == story.moments.begin.tolist()
    for number, film in enumerate(story.videos[:5]):
        found = event_deviations(story, number, 24, np.random.default_rng(0))
        assert found.shape == (clip_count(film.seconds), 24)
        rows = slice(int(story.offsets[number]), int(story.offsets[number + 1]))
        starts, ends = story.moments.begin[rows], story.moments.finish[rows]
        alone = [
            i
            for i in range(len(starts))
            if not any((starts[j] < ends[i]) & (starts[i] < ends[j]) for j in range(len(starts)) if j != i)
        ]
        for i in alone:
            first, last = int(np.ceil(starts[i] / 1.5)), int(ends[i] / 1.5)
            inside = found[first:last]
            if len(inside):
                np.testing.assert_allclose(np.linalg.norm(inside, axis=1), 1.0)
                np.testing.assert_allclose(inside, np.broadcast_to(inside[0], inside.shape))


def test_series_look_different_and_lengths_stay() -> None:
    settings = replace(SETTINGS, video_dim=64, variant="event-variance")
    one, two = draw_rotation(settings, 0), draw_rotation(settings, 1)
    np.testing.assert_allclose(one @ one.T, np.eye(64), atol=1e-12)
    assert 0.75 < np.trace(one) / 64 < 0.95
    assert not np.allclose(one, two)


def test_the_camera_is_bounded_and_loses_clips(tmp_path: Path) -> None:
    seen = features(make(tmp_path, "camera"), "video")
    assert np.abs(seen).max() <= 1
    assert np.abs(seen).mean() > 0.3


def test_silence_has_no_subtitles_and_lagging_speech_comes_later(tmp_path: Path) -> None:
    assert not features(make(tmp_path, "silent"), "subtitle").any()


def test_unannotated_events_are_seen_and_never_judged() -> None:
    settings = replace(SETTINGS, variant="unannotated")
    story, plain = tell_story(the_world(), settings), tell_story(the_world(), SETTINGS)
    assert story.unannotated is not None
    assert len(story.unannotated.moments) == len(story.moments) == len(plain.moments)
    assert story.moments.action.tolist() == plain.moments.action.tolist()
    assert build_judge(the_world(), story).event.max() < len(story.moments)


def test_repeated_events_happen_again_in_their_video() -> None:
    story, plain = (tell_story(the_world(), replace(SETTINGS, variant=v)).moments for v in ("repeats", "default"))

    def repeats(m) -> int:  # type: ignore[no-untyped-def]
        told = list(
            zip(m.video.tolist(), m.actor.tolist(), m.action.tolist(), m.object.tolist(), m.topic.tolist(), strict=True)
        )
        return len(told) - len(set(told))

    assert repeats(story) > 15 > 5 > repeats(plain)


def test_the_reversed_order_is_worth_two_at_most() -> None:
    story = tell_story(the_world(), replace(SETTINGS, videos=200, variant="default"))
    m = story.moments
    free, ordered = build_judge(the_world(), story), build_judge(the_world(), story, ordered=True)
    double = np.flatnonzero(m.action2 >= 0)
    m.action[double[1]], m.action2[double[1]] = m.action2[double[0]], m.action[double[0]]
    pair = double[:1], double[1:2]
    assert ordered(*pair)[0] <= 2
    assert free(*pair)[0] >= ordered(*pair)[0]


def test_full_truth_has_every_relevant_moment_and_agrees_with_the_annotators(small: Small) -> None:
    known = load_known(small[0])
    full, judged = full_truth(known, "test"), read_truth(small[0] / "test.json")
    assert full.query_ids == judged.query_ids
    assert full.queries == judged.queries
    levels = {
        (q, full.videos[v], s, e): r
        for q, v, s, e, r in zip(
            full.row_query.tolist(), full.video, full.start, full.end, full.relevance.tolist(), strict=True
        )
    }
    rows = zip(
        judged.row_query.tolist(), judged.video, judged.start, judged.end, judged.relevance.tolist(), strict=True
    )
    off = [abs(levels.get((q, judged.videos[v], s, e), 0) - r) for q, v, s, e, r in rows]
    assert max(off) <= 2
    assert np.mean(off) < 0.5


def test_pooled_truth_holds_what_the_runs_found_with_true_levels(small: Small) -> None:
    known = load_known(small[0])
    full = full_truth(known, "test")
    best = Run.from_groups(
        full.query_ids, full.counts.tolist(), [full.videos[v] for v in full.video], full.start, full.end,
        full.relevance.astype(float),
    )  # fmt: skip
    pooled = pooled_truth(known, "test", [best], depth=3)
    assert pooled.counts.min() >= 3
    assert len(pooled.start) < len(full.start)
    assert evaluate(best, pooled, "NDCG@3[IoU>=0.5]").means["NDCG@3[IoU>=0.5]"] == 1.0


def test_a_folder_that_is_no_simulation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match=r"world\.json"):
        load_known(tmp_path)


def test_features_do_not_depend_on_the_order_of_videos() -> None:
    settings = replace(SETTINGS, variant="camera")
    world, story = the_world(), tell_story(the_world(), settings)
    space = draw_concept_vectors(world, ["a"], settings)
    first, again = (dict(video_features(world, story, space, settings)) for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
