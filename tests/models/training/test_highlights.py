"""Windows and ratings as training data, saliency in predictions, and submissions of QVHighlights."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from momentseek.benchmarks.baselines import BASELINES
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.core.errors import MomentseekError
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.formats import read_run, read_truth
from momentseek.measuring.formats.files import writer_for
from momentseek.models.features.data import Data
from momentseek.models.training.batches import Batches
from momentseek.models.training.prediction import predict_split
from momentseek.models.training.presets import configure, preset_table
from momentseek.models.training.session import train_or_read


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("highlights") / "data"
    simulate_grounding(out, GroundingSettings(videos=60, video_dim=12, text_dim=10, like="qvhighlights"))
    return out


def settings(films: Path) -> list[str]:
    return [f"data.path={films}", "hidden=8", "heads=2", "feedforward=8", "batch=8", "steps=4", "validate_every=4"]


def test_films_with_several_windows_and_rated_clips(films: Path) -> None:
    truth = read_truth(films / "train.jsonl")
    assert truth.saliency is not None
    counts = np.diff(truth.offsets)
    assert counts.min() == 1
    assert counts.max() > 1
    assert np.array_equal(truth.start % 2, 0 * truth.start)
    for query in range(len(truth)):
        first, last = truth.saliency.offsets[query : query + 2]
        rated = truth.saliency.scores[first:last].any(axis=1)
        inside = np.zeros(len(rated), dtype=bool)
        rows = slice(truth.offsets[query], truth.offsets[query + 1])
        windows = sorted(zip(truth.start[rows].tolist(), truth.end[rows].tolist(), strict=True))
        for start, end in windows:
            inside[int(start / 2) : int(end / 2)] = True
        assert not (rated & ~inside).any()
        assert all(one[1] < two[0] for one, two in pairwise(windows))
    with Data.open(films) as data:
        data.check(data.splits)
        assert data.splits == ("train", "val", "test_iid", "test_ood")
        assert data.video is not None
        assert data.video.dims == (12, 10)
        assert data.preset == "highlights"


def test_a_step_has_all_windows_and_the_ratings_of_its_queries(films: Path) -> None:
    with Data.open(films) as data:
        config = configure(preset_table("highlights"), "moment_detr", [*settings(films), "max_clips=20"])
        split = data.split("train")
        batches = Batches(data, split, config.model_config, config.training, whole=True)
        assert len(batches.drawn_videos) == len(split.truth)
        batch = batches.batch(np.arange(6))
        truth = split.truth
        assert truth.saliency is not None
        assert len(batch.pairs.query) == int(truth.offsets[6])
        assert batch.pairs.ratings is not None
        assert batch.pairs.ratings.shape == (6, 20, 3)
        for query in range(6):
            first = truth.saliency.offsets[query]
            assert np.array_equal(batch.pairs.ratings[query].numpy(), truth.saliency.scores[first : first + 20])
        plain = Batches(data, split, config.model_config, config.training)
        assert len(plain.drawn_videos) == len(plain.pairs)
        assert plain.batch(np.arange(6)).pairs.ratings is None


@pytest.mark.parametrize("model", ["moment_detr", "qd_detr", "univtg"])
def test_training_prediction_and_a_submission(films: Path, tmp_path: Path, model: str) -> None:
    with Data.open(films) as data:
        config = configure(preset_table("highlights"), model, settings(films))
        report, _ = train_or_read(config, data, tmp_path / "run")
        assert set(report["scores"]["test_iid"]) >= {"mAP", "HIT@1[level=verygood]", "R@1[IoU>=0.5]"}
    found = predict_split(tmp_path / "run", films, "test_iid")
    truth = read_truth(films / "test_iid.jsonl")
    assert found.run.saliency is not None
    assert truth.saliency is not None
    assert np.array_equal(found.run.saliency.offsets, truth.saliency.offsets)
    assert np.ptp(found.run.saliency.scores) > 0
    out = tmp_path / "submission.jsonl"
    out.write_bytes(writer_for("qvhighlights-submission", out, "run").to_bytes((found.run,)))
    entry = json.loads(out.read_text().splitlines()[0])
    assert set(entry) == {"qid", "query", "vid", "pred_relevant_windows", "pred_saliency_scores"}
    assert all(0 <= score <= 1 for _, _, score in entry["pred_relevant_windows"])
    again = evaluate(read_run(out), truth, protocol="qvhighlights").means
    assert again["HIT@1[level=verygood]"] == pytest.approx(report["scores"]["test_iid"]["HIT@1[level=verygood]"])
    assert "SaliencyAP[level=good]" in again


def test_a_summary_is_the_most_salient_clips(films: Path, tmp_path: Path) -> None:
    with Data.open(films) as data:
        config = configure(preset_table("highlights"), "univtg", settings(films))
        train_or_read(config, data, tmp_path / "run")
    plain = predict_split(tmp_path / "run", films, "val").run
    short = predict_split(tmp_path / "run", films, "val", summary=0.2).run
    assert plain.saliency is not None
    for query in range(len(short)):
        rated = plain.saliency.scores[slice(*plain.saliency.offsets[query : query + 2]), 0]
        best = set(np.argsort(-rated, kind="stable")[: int(0.2 * len(rated))].tolist())
        rows = slice(short.offsets[query], short.offsets[query + 1])
        found: set[int] = set()
        for start, end in zip(short.start[rows].tolist(), short.end[rows].tolist(), strict=True):
            found |= set(range(round(start / 2), round(end / 2)))
        assert found == best


def test_models_that_rate_no_clips_have_no_figure_of_highlights(films: Path, tmp_path: Path) -> None:
    with Data.open(films) as data:
        config = configure(preset_table("highlights"), "tan2d", [f"data.path={films}", "hidden=8", "steps=2"])
        report, _ = train_or_read(config, data, tmp_path / "run")
        assert "mAP" in report["scores"]["val"]
        assert not any(name.startswith(("HIT", "Saliency")) for name in report["scores"]["val"])
    assert predict_split(tmp_path / "run", films, "val").run.saliency is None
    with pytest.raises(MomentseekError, match="a summary needs a model that rates clips"):
        predict_split(tmp_path / "run", films, "val", summary=0.2)


def test_constant_guesses_rate_clips_by_their_place(films: Path) -> None:
    train, test = read_truth(films / "train.jsonl"), read_truth(films / "test_iid.jsonl")
    run = BASELINES["moment-frequency"].predict(train, test)
    assert run.saliency is not None
    assert evaluate(run, test, "SaliencyAP[level=fair]", protocol="qvhighlights").mean("SaliencyAP[level=fair]") > 0
    assert BASELINES["predict-all"].predict(None, test).saliency is None


def test_streams_are_normalised_each_by_itself(films: Path) -> None:
    config = configure(preset_table("highlights"), "univtg", [*settings(films), "streams=[12, 10]", "endpoints=false"])
    rows = config.model_config.preparation.prepare_clips(np.ones((3, 22), np.float32), "video")
    assert np.allclose(np.linalg.norm(rows[:, :12], axis=1), 1, atol=1e-4)
    assert np.allclose(np.linalg.norm(rows[:, 12:], axis=1), 1, atol=1e-4)
    with pytest.raises(MomentseekError, match=r"streams of 12 \+ 10 columns are not the 20 of the video features"):
        config.model_config.preparation.prepare_clips(np.ones((3, 20), np.float32), "video")
