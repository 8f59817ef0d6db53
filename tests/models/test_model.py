from __future__ import annotations

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.model import ModelConfig
from momentseek.models.registry import MODELS, build_config
from momentseek.models.training.presets import configure, preset_names, preset_table


@pytest.mark.parametrize("name", ["hidden", "max_words", "max_clips", "shortest", "longest", "videos"])
@pytest.mark.parametrize("value", [0, -3])
def test_counts_are_at_least_one(name: str, value: int) -> None:
    with pytest.raises(MomentseekError, match=f"^model: {name} must be at least 1, not {value}$"):
        build_config(ModelConfig, {name: value}, "model")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"shortest": 5, "longest": 4}, r"shortest \(5\) must not be above longest \(4\)"),
        ({"dropout": 1.0}, "dropout must be from 0 to below 1, not 1"),
        ({"dropout": -0.1}, "dropout must be from 0 to below 1, not -0.1"),
        ({"dropout": float("nan")}, "dropout must be from 0 to below 1, not nan"),
        ({"fit": "crop"}, "fit must be truncate or resample or stretch or rounded, not 'crop'"),
        ({"modalities": "video+sound"}, r"modalities must be .*, not 'video\+sound'"),
        ({"modalities": ""}, "modalities must be .*, not ''"),
        ({"modalities": "video+video"}, r"modalities must be .*, not 'video\+video'"),
    ],
    ids=["spans", "all", "negative", "nan", "fit", "modality", "none", "twice"],
)
def test_a_setting_out_of_range_is_named(settings: dict[str, object], what: str) -> None:
    with pytest.raises(MomentseekError, match=f"^model: .*{what}"):
        build_config(ModelConfig, settings, "model")


@pytest.mark.parametrize("model", sorted(spec.name for spec in MODELS.values() if hasattr(spec.config, "heads")))
def test_heads_share_out_what_is_hidden(model: str) -> None:
    kind = MODELS[model].config
    with pytest.raises(MomentseekError, match="hidden 10 cannot be divided among 4 heads"):
        build_config(kind, {"hidden": 10, "heads": 4}, "model")
    with pytest.raises(MomentseekError, match="heads must be at least 1, not 0"):
        build_config(kind, {"heads": 0}, "model")


def test_every_model_and_every_preset_is_within_the_ranges() -> None:
    for model in MODELS:
        assert configure(preset_table("simulation"), model, []).model_config.hidden >= 1
        assert MODELS[model].config().shortest <= MODELS[model].config().longest
    for preset in preset_names():
        if "name" in preset_table(preset).get("model", {}):
            config = configure(preset_table(preset), None, [])
            assert config.describes or config.model_config.videos >= 1
