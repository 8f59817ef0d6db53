"""Training a captioner by the loop that trains all models: the folder, the seed, stopping and continuing, measuring."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from weights import same_weights

from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import read_captions
from momentseek.models.features.data import Data
from momentseek.models.training.captions import describe_split
from momentseek.models.training.checkpoint import load_captioner, load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress
from momentseek.models.training.loop import train
from momentseek.models.training.presets import configure, preset_table

SMALL = ["hidden=16", "heads=2", "feedforward=16", "word_dim=8", "layers=1", "dropout=0.1", "batch=32", "lr=0.01"]


def base(*settings: str) -> TrainConfig:
    wanted = [*SMALL, "steps=6", "validate_every=4", "report=['ROUGE-L', 'CIDEr-D']", *settings]
    return configure(preset_table("simulation"), "mmt", wanted)


@pytest.fixture(scope="module")
def straight(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training run from beginning to end, that others are compared with."""
    out = tmp_path_factory.mktemp("captioner") / "run"
    with Data.open(simulated) as data:
        train(base(), data, out)
    return out


def test_a_training_run_leaves_its_folder(straight: Path, corpus: Data) -> None:
    names = {p.name.split(".")[0] if p.name.startswith("events") else p.name for p in straight.iterdir()}
    assert names == {"config.toml", "log.csv", "events", "best.safetensors", "last.safetensors", "report.json"}
    report = json.loads((straight / "report.json").read_text())
    assert (report["model"], report["steps"], report["protocol"]) == ("mmt", 6, "tvc")
    assert {split: set(scores) for split, scores in report["scores"].items()} == {
        "tvc_val": {"ROUGE-L", "CIDEr-D"},
        "tvc_test": {"ROUGE-L", "CIDEr-D"},
    }
    best = load_captioner(straight)
    assert best.value == pytest.approx(report["best"]) == pytest.approx(report["scores"]["tvc_val"]["CIDEr-D"])
    assert report["data"]["fingerprint"] == corpus.fingerprint_of(["tvc_train", "tvc_val", "tvc_test"])


def test_the_same_seed_gives_the_same_weights_and_captions(straight: Path, simulated: Path, tmp_path: Path) -> None:
    with Data.open(simulated) as data:
        train(base(), data, tmp_path / "again")
        train(base("seed=1"), data, tmp_path / "other")
    one, two, other = (load_captioner(p) for p in (straight, tmp_path / "again", tmp_path / "other"))
    assert same_weights(one.model, two.model)
    assert not same_weights(one.model, other.model)
    for beam in (1, 3):
        told = [describe_split(p, simulated, "tvc_test", beam=beam).captions for p in (straight, tmp_path / "again")]
        assert told[0].captions == told[1].captions


def test_interrupted_training_ends_with_the_same_weights(straight: Path, corpus: Data, tmp_path: Path) -> None:
    def stop(progress: TrainingProgress) -> None:
        if progress.step == 3 and progress.doing == "training":
            signal.raise_signal(signal.SIGINT)

    out = tmp_path / "run"
    assert train(base(), corpus, out, progress=stop).stopped == "interrupted"
    assert train(base(), corpus, out, resume=True).stopped == "done"
    one, two = load_captioner(straight / "last.safetensors"), load_captioner(out / "last.safetensors")
    assert same_weights(one.model, two.model)
    assert all(torch.equal(t, two.optimiser[n]) for n, t in one.optimiser.items())
    with pytest.raises(MomentseekError, match=r"was begun with model.layers=1 and not 2"):
        train(base("layers=2"), corpus, out, resume=True)


def test_a_split_is_described_in_the_format_of_tvc(straight: Path, simulated: Path) -> None:
    told = describe_split(straight, simulated, "tvc_test")
    truth = read_captions(simulated / "tvc_test_release.jsonl")
    assert told.captions.query_ids == truth.query_ids
    assert told.captions.start.tolist() == truth.start.tolist()
    assert set(told.captions.caption_counts.tolist()) == {1}
    assert (told.model, told.simulated, told.decoding.beam) == ("mmt", True, 1)


@pytest.mark.parametrize("modalities", ["video", "subtitle", "none"])
def test_each_modality_can_be_left_out(modalities: str, corpus: Data, tmp_path: Path) -> None:
    config = base(f"modalities={modalities}", "steps=1", "validate_every=1", "test=", "report=[]")
    train(config, corpus, tmp_path / "run")
    model = load_captioner(tmp_path / "run").model
    assert model.dims.video == (12 if modalities == "video" else 0)


def test_columns_choose_one_kind_of_features(corpus: Data, tmp_path: Path) -> None:
    train(base("columns='4:12'", "steps=1", "report=[]", "test="), corpus, tmp_path / "run")
    assert load_captioner(tmp_path / "run").model.dims.video == 8
    with pytest.raises(MomentseekError, match=r"have 12 columns, and columns=4:13 needs more"):
        train(base("columns='4:13'"), corpus, tmp_path / "more")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (["train=tvr_train"], "split tvr_train has queries and no captions; did you mean 'tvc_train'"),
        (["train=tvc_trian"], "there is no split 'tvc_trian'; did you mean 'tvc_train'"),
        (["begin=somewhere"], "mmt describes moments and has no use for begin"),
        (["measure=R@1[IoU>=0.5]"], "R@1.* is for ranked moments, not for captions"),
    ],
)
def test_impossible_settings_are_refused_before_the_first_step(
    settings: list[str], what: str, corpus: Data, tmp_path: Path
) -> None:
    with pytest.raises(MomentseekError, match=what):
        train(base(*settings, "steps=1"), corpus, tmp_path / "run")


def test_subtitles_that_are_not_there_are_named(spoilt: Path, tmp_path: Path) -> None:
    toml = spoilt / "data.toml"
    toml.write_text(toml.read_text().replace('subtitles = "tvqa_preprocessed_subtitles.jsonl"\n', ""))
    with Data.open(spoilt) as data:
        with pytest.raises(MomentseekError, match=r"names no subtitles .*, and the captioner reads them"):
            train(base(), data, tmp_path / "run")
        assert train(base("modalities=video", "steps=1", "report=[]"), data, tmp_path / "video").stopped == "done"


def test_distinguishes_checkpoints_of_captioners(straight: Path, tmp_path: Path, corpus: Data) -> None:
    with pytest.raises(MomentseekError, match="mmt, which describes moments and finds none"):
        load_checkpoint(straight)
    settings = ["hidden=8", "heads=2", "steps=1", "max_clips=20", "report=[]", "test="]
    train(configure(preset_table("simulation"), "xml", settings), corpus, tmp_path / "xml")
    with pytest.raises(MomentseekError, match="xml, which describes nothing"):
        load_captioner(tmp_path / "xml")


def test_the_preset_of_the_paper_is_the_papers() -> None:
    config = configure(preset_table("tvc-mmt"), None)
    made = config.captioner_config
    assert (config.model, made.hidden, made.max_clips, made.max_words, made.max_caption) == ("mmt", 768, 18, 28, 18)
    assert (config.training.optimiser, config.training.batch, config.training.measure) == ("bert_adam", 128, "CIDEr-D")
    official = configure(preset_table("tvc-mmt"), None, ["as=official"]).captioner_config
    assert official.end_clip == "official"
