"""CroCs' second stage: begun from the first one's weights, on negatives drawn by its scores."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from weights import same_weights

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Batch
from momentseek.models.features.data import Data
from momentseek.models.inputs import clips_of, words_of
from momentseek.models.training import negatives as scoring
from momentseek.models.training.batches import Batches
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress, saved_config
from momentseek.models.training.loop import train
from momentseek.models.training.negatives import NEVER_DRAWN, SCORE_SCALE
from momentseek.models.training.session import train_seeds

SPLIT = "train_top01"


def config(model: str = "crocs", *settings: str) -> TrainConfig:
    return TrainConfig.of(
        {
            "model": {
                "name": model, "hidden": 8, "max_clips": 6, "longest": 6, "fit": "stretch", "modalities": "video",
                "map_layers": 1, "kernel": 3,
            },
            "training": {
                "batch": 6, "steps": 5, "validate_every": 2, "lr": 0.003, "schedule": "cosine",
                "measure": "R@1[IoU>=0.3]", "task": "SVMR", "report": ["R@1[IoU>=0.5]"],
            },
            "data": {"train": SPLIT, "validate": "val"},
        }
    ).with_changes(settings)  # fmt: skip


def second(begin: Path | str, *settings: str) -> TrainConfig:
    return config("crocs", f"begin={begin}", "hard_videos=3", "hard_queries=4", "lr=0.001", *settings)


@pytest.fixture(scope="module")
def first(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("first") / "run"
    with Data.open(simulated) as data:
        train(config(), data, out)
    return out


@pytest.fixture(scope="module")
def straight(first: Path, simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("second") / "run"
    with Data.open(simulated) as data:
        train(second(first), data, out)
    return out


def batches(data: Data, first: Path, monkeypatch: pytest.MonkeyPatch) -> Batches:
    monkeypatch.setattr(scoring, "VIDEOS_PER_BLOCK", 7)
    monkeypatch.setattr(scoring, "MAX_TENSOR_NUMBERS", 1000)
    settings = second(first)
    split = data.split(SPLIT)
    made = Batches(data, split, settings.model_config, settings.training)
    told: list[float] = []
    made.hard = scoring.score_hard_negatives(
        load_checkpoint(first).model,
        data,
        split,
        made.pairs,
        settings.training,
        lambda done, total: told.append(done / total),
    )
    assert told == sorted(told)
    assert told[-1] == 1
    return made


def test_scores_are_those_of_the_best_moments(corpus: Data, first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, model = batches(corpus, first, monkeypatch), load_checkpoint(first).model
    hard, split, pairs = made.hard, corpus.split(SPLIT), made.pairs
    assert hard is not None
    with torch.inference_mode():
        queries = model.encode_words(words_of(split, split.truth.query_ids, model.config))
        videos = model.encode_clips(clips_of(corpus, split.truth.videos, model.config))
        scores = model.match(queries, videos).exp().numpy()
    true = np.zeros(scores.shape, bool)
    true[pairs.query, pairs.video] = True
    assert ((hard.kept == NEVER_DRAWN) == true).all()
    assert hard.kept[~true] / SCORE_SCALE == pytest.approx(scores[~true], abs=1e-4)
    for q in range(len(scores)):
        assert hard.query_aim[q] == pytest.approx(scores[q, true[q]].mean(), abs=1e-5)
    for v in range(scores.shape[1]):
        mine = true[:, v]
        aim = scores[mine, v].mean() if mine.any() else scores[:, v].max()
        assert hard.video_aim[v] == pytest.approx(aim, abs=1e-5)


def test_many_scores_lie_in_a_mapped_file(corpus: Data, first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = batches(corpus, first, monkeypatch).hard
    monkeypatch.setattr(scoring, "MAX_SCORE_BYTES_IN_MEMORY", 10)
    there = batches(corpus, first, monkeypatch).hard
    assert here is not None
    assert there is not None
    assert isinstance(there.kept, np.memmap)
    assert np.array_equal(here.kept, there.kept)


def drawn(made: Batches, seed: int) -> Batch:
    return made.batch(np.arange(0, 18, 3), np.random.default_rng(seed))


def test_a_batch_has_its_pairs_and_what_was_drawn(corpus: Data, first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = batches(corpus, first, monkeypatch)
    b, plain = drawn(made, 0), made.pairs
    chosen = np.arange(0, 18, 3)
    p = b.pairs
    assert p.hard_videos is not None
    assert p.hard_queries is not None
    shape = (len(b.words.features), len(b.clips))
    assert p.positive.shape == p.hard_videos.shape == p.hard_queries.shape == shape
    asked, seen = set(p.query.tolist()), set(p.video.tolist())
    assert p.hard_videos.sum(1).tolist() == [3 if q in asked else 0 for q in range(shape[0])]
    assert p.hard_queries.sum(0).tolist() == [4 if v in seen else 0 for v in range(shape[1])]
    assert not ((p.hard_videos | p.hard_queries) & p.positive).any()
    brought = set(p.hard_videos.any(0).nonzero()[:, 0].tolist()), set(p.hard_queries.any(1).nonzero()[:, 0].tolist())
    assert seen | brought[0] == set(range(shape[1]))
    assert asked | brought[1] == set(range(shape[0]))
    made.hard = None
    alone = made.batch(chosen)
    assert len(alone.clips) < shape[1]
    words = alone.words.features[alone.pairs.query]  # padded to fewer words than in a larger batch
    torch.testing.assert_close(b.words.features[p.query, : words.shape[1]], words)
    torch.testing.assert_close(b.clips.video[p.video], alone.clips.video[alone.pairs.video])  # type: ignore[index]
    assert len(np.unique(plain.query[chosen])) == len(asked)


def test_what_is_drawn_depends_on_the_seed_alone(corpus: Data, first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = batches(corpus, first, monkeypatch)
    one, other, again = drawn(made, 0), drawn(made, 1), drawn(made, 0)
    assert torch.equal(one.pairs.hard_videos, again.pairs.hard_videos)  # type: ignore[arg-type]
    assert torch.equal(one.clips.video, again.clips.video)  # type: ignore[arg-type]
    same = one.clips.video.shape == other.clips.video.shape  # type: ignore[union-attr]
    assert not (same and torch.equal(one.clips.video, other.clips.video))  # type: ignore[arg-type]


def test_related_videos_are_never_drawn(spoilt: Path, first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Data.open(spoilt) as data:
        truth = data.split(SPLIT).truth
        ids, videos = truth.query_ids, truth.videos
    (spoilt / "related.json").write_text(json.dumps({ids[0]: list(videos)}))
    text = (spoilt / "data.toml").read_text()
    (spoilt / "data.toml").write_text(text.replace(f"[splits.{SPLIT}]", f'[splits.{SPLIT}]\nrelated = "related.json"'))
    with Data.open(spoilt) as data:
        hard = batches(data, first, monkeypatch).hard
    assert hard is not None
    assert (hard.kept[0] == NEVER_DRAWN).all()
    found = hard.videos_of(np.array([0, 1]), np.random.default_rng(0))
    assert found is not None
    assert found.queries.tolist() == [1, 1, 1]


def test_it_begins_from_the_weights_and_says_so(straight: Path, first: Path, corpus: Data, tmp_path: Path) -> None:
    report = json.loads((straight / "report.json").read_text())
    assert report["began_from"]["path"] == str(first)
    assert report["began_from"]["model"] == "crocs"
    assert report["began_from"]["step"] == load_checkpoint(first).step
    assert {"loss/rejection"} <= set((straight / "log.csv").read_text().splitlines()[0].split(","))
    still = config("crocs", f"begin={first}", "lr=0", "steps=1")
    train(still, corpus, tmp_path / "still")
    one, two = (dict(load_checkpoint(p).model.named_parameters()) for p in (tmp_path / "still", first))
    assert all(torch.equal(t, two[n]) for n, t in one.items())
    assert json.loads((first / "report.json").read_text())["began_from"] is None


class Crash(Exception):
    pass


def test_a_killed_run_goes_on_to_the_same_weights(straight: Path, first: Path, corpus: Data, tmp_path: Path) -> None:
    def crash(progress: TrainingProgress) -> None:
        if progress.step == 3 and progress.doing == "training":
            raise Crash

    with pytest.raises(Crash):
        train(second(first), corpus, tmp_path / "run", progress=crash)
    assert load_checkpoint(tmp_path / "run" / "last.safetensors").step == 2
    done = train(saved_config(tmp_path / "run"), corpus, tmp_path / "run", resume=True)
    assert done.step == 5
    one, two = (load_checkpoint(p / "last.safetensors") for p in (straight, tmp_path / "run"))
    assert same_weights(one.model, two.model)
    assert done.report["began_from"]["path"] == str(first)


def test_stopped_while_scoring_it_can_go_on(straight: Path, first: Path, corpus: Data, tmp_path: Path) -> None:
    shares = []

    def stop(progress: TrainingProgress) -> None:
        if progress.doing == "scoring":
            shares.append(progress.share)
            if len(shares) == 2:
                signal.raise_signal(signal.SIGINT)

    assert train(second(first), corpus, tmp_path / "run", progress=stop).stopped == "interrupted"  # type: ignore[arg-type]
    assert len(shares) == 2
    assert train(saved_config(tmp_path / "run"), corpus, tmp_path / "run", resume=True).stopped == "done"
    one, two = (load_checkpoint(p / "last.safetensors") for p in (straight, tmp_path / "run"))
    assert same_weights(one.model, two.model)


def test_a_run_does_not_go_on_with_another_beginning(first: Path, corpus: Data, tmp_path: Path) -> None:
    begin, out = Path(shutil.copytree(first, tmp_path / "begin")), tmp_path / "run"
    train(second(begin, "steps=2"), corpus, out)
    train(config("crocs", "seed=1", "steps=1"), corpus, begin, force=True)
    with pytest.raises(MomentseekError, match="has other weights than"):
        train(second(begin, "steps=4"), corpus, out, resume=True)


def test_fine_tuning_goes_on_without_where_it_began(first: Path, corpus: Data, tmp_path: Path) -> None:
    begin, out = Path(shutil.copytree(first, tmp_path / "begin")), tmp_path / "run"
    settings = config("crocs", f"begin={begin}", "steps=2")
    train(settings, corpus, out)
    shutil.rmtree(begin)
    done = train(settings.with_changes(["steps=3"]), corpus, out, resume=True)
    assert done.report["began_from"]["weights"]


def test_each_seed_may_begin_from_its_own_run(simulated: Path, corpus: Data, tmp_path: Path) -> None:
    short = config("crocs", "steps=1")
    assert len(train_seeds(short, corpus, tmp_path / "one", 2).reports) == 2
    reports = train_seeds(second(str(tmp_path / "one" / "seed-{seed}"), "steps=1"), corpus, tmp_path / "two", 2).reports
    begun = [Path(r["began_from"]["path"]).name for r in reports]
    assert begun == ["seed-0", "seed-1"]
    assert reports[0]["began_from"]["weights"] != reports[1]["began_from"]["weights"]
    again = train_seeds(second(str(tmp_path / "one" / "seed-{seed}"), "steps=1"), corpus, tmp_path / "two", 2).reports
    assert [r["seconds"] for r in again] == [r["seconds"] for r in reports]


def test_crocs_may_begin_from_mmn(corpus: Data, tmp_path: Path) -> None:
    train(config("mmn", "steps=1"), corpus, tmp_path / "mmn")
    done = train(second(tmp_path / "mmn", "steps=1"), corpus, tmp_path / "crocs")
    assert done.report["began_from"]["model"] == "mmn"


@pytest.mark.parametrize(
    ("model", "settings", "what"),
    [
        ("mmn", ["hard_videos=2", "begin={first}"], "mmn does not learn from hard negatives; train crocs"),
        ("crocs", ["hard_queries=2"], r"name its checkpoint \(begin=PATH\)"),
        ("tan2d", ["begin={first}"], "is a checkpoint of crocs, and tan2d cannot begin from it"),
        ("crocs", ["begin={first}", "hidden=12"], "do not fit .*hidden=8 there and 12 here"),
        ("crocs", ["begin={first}/no"], "there is no such checkpoint"),
        ("crocs", ["hard_videos=-1"], "hard_videos must be at least 0"),
        ("crocs", ["sharpness=nan"], "sharpness must be at least 0"),
    ],
    ids=["mmn", "no begin", "tan2d", "hidden", "no file", "negative", "nan"],
)
def test_what_cannot_be_begun_is_refused(
    corpus: Data, first: Path, tmp_path: Path, model: str, settings: list[str], what: str
) -> None:
    with pytest.raises(MomentseekError, match=what):
        train(config(model, *(s.format(first=first) for s in settings)), corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_cannot_begin_from_itself(corpus: Data, first: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(first, tmp_path / "run"))
    with pytest.raises(MomentseekError, match="cannot begin from the checkpoint it replaces"):
        train(config("crocs", f"begin={out}"), corpus, out, force=True)
    assert (out / "best.safetensors").is_file()
