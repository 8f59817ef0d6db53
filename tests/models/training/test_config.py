from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from momentseek.core.config import read_toml
from momentseek.core.errors import MomentseekError
from momentseek.measuring.measures import PROTOCOLS, parse, parse_all
from momentseek.models.registry import MODELS
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.presets import configure, preset_names, preset_table

PAPERS = [n for n in preset_names() if "name" in preset_table(n).get("model", {})]


@pytest.mark.parametrize("name", PAPERS)
def test_every_papers_preset_is_a_config_and_survives_its_file(name: str, tmp_path: Path) -> None:
    config = configure(preset_table(name), None)
    assert preset_table(name)["about"]
    (tmp_path / "config.toml").write_text(config.text())
    again = TrainConfig.of(read_toml(tmp_path / "config.toml"))
    assert again.table() == config.table()
    assert again.training == config.training
    assert again.network_config == config.network_config


def test_models_of_windows_are_trained_as_their_code_does() -> None:
    for name, layers, hidden, milestones in (
        ("moment_detr", 2, 256, ()),
        ("qd_detr", 2, 256, ()),
        ("univtg", 4, 1024, (80, 160)),
    ):
        config = configure(preset_table("qvhighlights"), name)
        training, model = config.training, config.network_config
        assert (training.lr, training.weight_decay, training.clip, training.batch, training.epochs) == (
            1e-4, 1e-4, 0.1, 32, 200,
        )  # fmt: skip
        assert (training.warmup * training.epochs, training.milestones) == (10 if milestones else 0, milestones)
        assert (model.encoder_layers, model.hidden, model.feedforward, model.heads) == (layers, hidden, 1024, 8)
        assert (model.input_dropout, model.max_clips, model.streams) == (0.5, 75, (2304, 512))


@pytest.mark.parametrize("name", ["xml", "reloclnet", "conquer"])
def test_tvr_ranking_chooses_checkpoints_by_the_evaluator_of_its_tables(name: str) -> None:
    measure = configure(preset_table(f"tvr-ranking-{name}"), None).training.measure
    assert measure == "NDCG@20[IoU>0.5,gain=exp2,zeros=absorb]"
    assert parse(measure) == parse("NDCG@20[IoU>=0.5]", PROTOCOLS["tvr-ranking"].options)


@pytest.mark.parametrize(
    ("name", "cutoffs"), [("charades", "1,5,20,50"), ("activitynet", "1,5,20,50"), ("tacos", "1,5,20")]
)
def test_mvmr_chooses_checkpoints_by_all_measures_of_its_table(name: str, cutoffs: str) -> None:
    for model in ("mmn", "crocs"):
        measure = configure(preset_table(f"mvmr-{name}"), model).training.measure
        assert parse_all([measure]) == parse_all([f"R@{{{cutoffs}}}[IoU>={{0.3,0.5,0.7}}]"])


@pytest.mark.parametrize(
    ("name", "weights"), [("charades", (0.05, 0.05)), ("activitynet", (0.1, 0.1)), ("tacos", (0.1, 0.05))]
)
def test_mmn_and_crocs_are_trained_as_their_code_and_paper_say(name: str, weights: tuple[float, float]) -> None:
    for model, contrast in zip(("mmn", "crocs"), weights, strict=True):
        config = configure(preset_table(f"mvmr-{name}"), model)
        assert config.table()["model"]["contrast"] == contrast
        assert config.training.betas == (0.9, 0.99)


def test_the_papers_are_there() -> None:
    papers = {"tvr-xml", "tvr-reloclnet", "tvr-ranking-xml", "tvr-ranking-reloclnet", "tvr-ranking-conquer"}
    assert papers <= set(PAPERS)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_simulation_preset_fits_every_model(model: str) -> None:
    assert configure(preset_table("simulation"), model).model_config.hidden == 64


@pytest.mark.parametrize(("model", "batch"), [("xml", 128), ("reloclnet", 512), ("conquer", 196)])
@pytest.mark.parametrize(
    ("split", "epochs", "validations"), [("train_top01", 4000, 0.05), ("train_top20", 200, 1), ("train_top40", 100, 2)]
)
def test_tvr_ranking_trains_longer_on_shorter_lists(
    split: str, epochs: float, validations: float, model: str, batch: int
) -> None:
    """Appendix C.1, for all three models."""
    training = configure(preset_table(f"tvr-ranking-{model}"), model, [f"train={split}"]).training
    assert (training.epochs, training.validations, training.batch) == (epochs, validations, batch)
    assert (training.lr, training.patience, training.nms) == (1e-4, 10, None)
    assert training.warmup > 0


def test_a_setting_beats_the_presets_choice_for_a_split() -> None:
    assert (
        configure(preset_table("tvr-ranking-reloclnet"), None, ["train=train_top20", "epochs=3"]).training.epochs == 3
    )


def test_epochs_beat_a_presets_steps() -> None:
    training = configure(preset_table("simulation"), "xml", ["epochs=2"]).training
    assert (training.steps, training.epochs) == (None, 2)


def test_nothing_survives_a_file() -> None:
    config = configure({}, "xml", ["hard_from=", "patience=4"])
    assert config.model_config.hard_from is None  # type: ignore[attr-defined]
    again = TrainConfig.of(tomllib.loads(config.text()))
    assert again.network_config == config.network_config
    assert again.with_changes(["patience="]).training.patience is None


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (["hiden=3"], "no setting 'hiden'; did you mean 'hidden'"),
        (["model.hiden=3"], "did you mean 'hidden'"),
        (["hidden"], "is not a setting; write key=value"),
        (["modle.hidden=3"], "no section 'modle'"),
        (["hidden=many"], "must be int, not 'many'"),
        (["lr=-1"], "lr must be at least 0"),
        (["batch=0"], "batch must be at least 1"),
        (["warmup=1.5"], "warmup is a share"),
        (["hard_queries=16", "training.hard_pool=5"], "hard_pool 5 has fewer negatives than are drawn from it"),
        (["nms=1.5"], "nms is an overlap"),
        (["nms=-0.5"], "nms is an overlap"),
        (["schedule=stairs"], "schedule must be constant or linear or cosine"),
        (["measure=Luck@3"], "Luck"),
        (["epochs=0"], "epochs must be above 0"),
        (["lr=nan"], "lr must be at least 0"),
    ],
    ids=lambda x: x[0] if isinstance(x, list) else "",
)
def test_wrong_settings_are_said(settings: list[str], what: str) -> None:
    with pytest.raises(MomentseekError, match=what):
        configure({}, "xml", settings)


def test_wrong_presets_and_models_are_said() -> None:
    with pytest.raises(MomentseekError, match="is for the model xml, not for reloclnet"):
        configure(preset_table("tvr-xml"), "reloclnet", where="preset tvr-xml")
    with pytest.raises(MomentseekError, match="no preset 'tvr-xlm'; did you mean 'tvr-xml'"):
        preset_table("tvr-xlm")
    with pytest.raises(MomentseekError, match="is for any model; say which"):
        configure(preset_table("simulation"), None)
    with pytest.raises(MomentseekError, match="no model 'xlm'"):
        configure({}, "xlm")
    with pytest.raises(MomentseekError, match="no section 'trainig'"):
        TrainConfig.of({"model": {"name": "xml"}, "trainig": {}})
