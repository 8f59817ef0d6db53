"""Films with habits: their files, and what breaks in test_ood."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from momentseek.benchmarks.baselines import BASELINES
from momentseek.benchmarks.simulation.film_corpus import moment_judgements, simulate_grounding, write_queries
from momentseek.benchmarks.simulation.films import FORMS, GroundingSettings, Habits, make_films
from momentseek.benchmarks.simulation.world import the_world
from momentseek.core.errors import MomentseekError
from momentseek.core.language import verbs
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_truth
from momentseek.models.features.data import Data


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("films") / "data"
    simulate_grounding(out, GroundingSettings(videos=400, pool=10, video_dim=16, text_dim=12))
    return out


def test_the_same_settings_give_the_same_files(tmp_path: Path) -> None:
    small = GroundingSettings(videos=40, pool=4, video_dim=8, text_dim=8)
    for name in ("a", "b"):
        simulate_grounding(tmp_path / name, small)
    for file in sorted((tmp_path / "a").iterdir()):
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_a_data_folder_that_training_can_use(films: Path) -> None:
    with Data.open(films) as data:
        data.check(data.splits)
        assert data.splits == ("train", "val", "test_iid", "test_ood", "mvmr", "mvmr_val")
        videos = [set(data.split(s).truth.videos) for s in data.splits[:4]]
        assert sum(map(len, videos)) == len(set.union(*videos))
        train = data.split("train")
        own = train.truth.videos[train.truth.video[0]]
        assert all(own not in others for q, others in train.related.items() if q == train.truth.query_ids[0])


def _places(films: Path, split: str) -> dict[str, list[float]]:
    with Data.open(films) as data:
        truth = data.split(split).truth
        seconds = truth.durations[truth.video]
        place = truth.start / (seconds - (truth.end - truth.start))
        found: dict[str, list[float]] = {}
        for text, where in zip(truth.queries or (), place.tolist(), strict=True):
            found.setdefault(text, []).append(where)
    return found


def test_learnt_locations_help_on_iid_and_mislead_on_ood(films: Path) -> None:
    usual = {text: np.median(where) for text, where in _places(films, "train").items() if len(where) >= 3}
    off = {
        split: np.median([abs(w - usual[t]) for t, ws in _places(films, split).items() if t in usual for w in ws])
        for split in ("test_iid", "test_ood")
    }
    assert off["test_iid"] < 0.2 < 0.35 < off["test_ood"]


def test_without_bias_places_say_nothing() -> None:
    habits = Habits.draw(3, FORMS["charades"], np.random.default_rng(0))
    rng = np.random.default_rng(1)
    starts = np.array([habits.span(0, 0.0, False, rng)[0] for _ in range(400)])
    assert 0.25 < starts.mean() < 0.45
    assert starts.std() > 0.15


def test_pools_hold_all_positives_and_else_nobody_doing_it(films: Path) -> None:
    truth = read_truth(films / "mvmr.json")
    pools = truth.pools
    assert pools is not None
    assert set(np.diff(pools.offsets)) == {10}
    for i, query in enumerate(truth.query_ids[:50]):
        pool = pools.video[pools.offsets[i] : pools.offsets[i + 1]]
        positives = truth.video[truth.rows(query)]
        assert set(positives) <= set(pool)
        assert len(set(positives)) == len(positives)


def test_related_films_are_those_with_the_same_deed(films: Path) -> None:
    found = json.loads((films / "train_related.json").read_text())
    texts = [line.partition("##")[2] for line in (films / "train.txt").read_text().splitlines()]
    assert 0 < len(found) <= len(texts)
    assert all(query.partition(":")[0] not in others for query, others in found.items())


def test_queries_have_verbs_to_parse(films: Path) -> None:
    texts = [line.partition("##")[2] for line in (films / "train.txt").read_text().splitlines()]
    assert np.mean([bool(verbs(text)) for text in texts]) > 0.6


def test_a_bias_out_of_range_is_named() -> None:
    with pytest.raises(MomentseekError, match="`bias`"):
        GroundingSettings(bias=2)


def test_films_like_activitynet_are_longer_and_their_moments_overlap(tmp_path: Path) -> None:
    simulate_grounding(
        tmp_path / "long", GroundingSettings(videos=120, pool=6, video_dim=8, text_dim=8, like="activitynet")
    )
    with Data.open(tmp_path / "long") as data:
        data.check(data.splits)
        truth = data.split("train").truth
        assert data.preset == "films"
    assert 100 < truth.durations.mean() < 140
    assert len(truth) / len(truth.videos) == 4
    assert 0.25 < np.mean((truth.end - truth.start) / truth.durations[truth.video]) < 0.55
    first, second = truth.rows(truth.query_ids[0]), truth.rows(truth.query_ids[1])
    assert truth.video[first][0] == truth.video[second][0]
    shared = [
        min(truth.end[i], truth.end[j]) > max(truth.start[i], truth.start[j])
        for i in range(0, 80, 4)
        for j in range(i + 1, i + 4)
    ]
    assert 0.2 < np.mean(shared) < 0.95


def test_no_moment_ends_after_its_film(films: Path) -> None:
    with Data.open(films) as data:
        for split in data.splits[:4]:
            truth = data.split(split).truth
            assert (truth.end <= truth.durations[truth.video]).all()
            assert (truth.start < truth.end).all()


def test_films_like_nothing_are_named() -> None:
    with pytest.raises(MomentseekError, match="`like`"):
        GroundingSettings(like="youtube")


def test_habits_may_be_common_to_all_actions() -> None:
    own, shared, half = (
        Habits.draw(60, FORMS["charades"], np.random.default_rng(0), share) for share in (1.0, 0.0, 0.5)
    )
    assert len(set(own.place.tolist())) == 60
    assert len(set(shared.place.tolist())) == len(set(shared.length.tolist())) == 1
    kept = np.isin(half.place, own.place)
    assert 15 < kept.sum() < 45
    assert len(set(half.place[~kept].tolist())) == 1
    with pytest.raises(MomentseekError, match="`verb_bias`"):
        GroundingSettings(verb_bias=1.5)


def test_what_was_made_says_how_small_pools_are(tmp_path: Path) -> None:
    made = simulate_grounding(tmp_path / "few", GroundingSettings(videos=40, pool=30, video_dim=8, text_dim=8))
    assert made.queries["train"] > made.queries["val"] > 0
    assert 0 < made.pools["mvmr"] < 30


def test_blind_baselines_fall_where_long_moments_are_left_to_training() -> None:
    world, settings = the_world(), GroundingSettings(videos=400, like="activitynet")
    asked = write_queries(world, make_films(world, settings), settings)
    train, iid, ood = (
        moment_judgements([a for a in asked if a.film.split == split], FORMS["activitynet"])
        for split in ("train", "test_iid", "test_ood")
    )
    shares = (ood.end - ood.start) / ood.durations[ood.video]
    assert shares.max() < 0.51  # times are rounded to a tenth of a second
    for name in ("predict-all", "bias-based", "moment-frequency"):
        kept, fallen = (
            evaluate(BASELINES[name].predict(train, test), test, ["dR@1[IoU>=0.7]"]).means["dR@1[IoU>=0.7]"]
            for test in (iid, ood)
        )
        assert kept > 0.1 > 0.02 > fallen, name
