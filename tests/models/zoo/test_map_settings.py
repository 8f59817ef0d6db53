"""Settings of the map family that could not be trained, or would train something else, are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Dims
from momentseek.models.registry import MODELS, build, build_config
from momentseek.models.training.presets import configure, preset_names, preset_table

SHARED: list[tuple[str, Any, str]] = [
    ("fit", "truncate", "fit must be stretch or rounded, not 'truncate'"),
    ("fit", "resample", "fit must be stretch or rounded, not 'resample'"),
    ("longest", 15, "with longest=15.*set longest=16"),
    ("shortest", 2, "shortest must be 1, not 2"),
    ("padding", "last", "padding must be each or first, not 'last'"),
    ("moments", "mean", "moments must be pool"),
    ("kernel", 4, "kernel must be odd, .*not 4"),
    ("kernel", 0, "kernel must be at least 1, not 0"),
    ("map_layers", 0, "map_layers must be at least 1, not 0"),
    ("text_layers", 0, "text_layers must be at least 1, not 0"),
    ("low", 1.0, r"low \(1\) must be below high \(1\)"),
    ("high", float("nan"), "must be below high"),
]
MATCHING: list[tuple[str, Any, str]] = [
    ("moments", "convolution", "moments must be pool, not 'convolution'"),
    ("text", "bert", "text must be mean or lstm, not 'bert'"),
    ("space", 0, "space must be at least 1, not 0"),
    ("positives", 0, "positives must be at least 1, not 0"),
    ("positives", 137, "positives must be at most 136, the candidates among 16 clips, not 137"),
    ("power", -0.5, "power must be at least 0, not -0.5"),
    ("contrast", -1.0, "contrast must be at least 0, not -1"),
    ("contrast", float("inf"), "contrast must be at least 0, not inf"),
    ("margin", -0.1, "margin must be at least 0, not -0.1"),
    ("only_overlap_after", -1.0, "only_overlap_after must be at least 0, not -1"),
    ("temperature", 0.0, "temperature must be above 0, not 0"),
    ("temperature", float("nan"), "temperature must be above 0, not nan"),
]
OWN: dict[str, list[tuple[str, Any, str]]] = {
    "tan2d": SHARED,
    "mdd": [
        *SHARED,
        ("actions", 0, "actions must be at least 1, not 0"),
        ("unobserved", 0, "unobserved must be at least 1, not 0"),
        ("parse", "nltk", "parse must be auto or spacy or rules, not 'nltk'"),
        ("reconstruction", -1.0, "reconstruction must be at least 0, not -1"),
    ],
    "mmn": [*SHARED, *MATCHING],
    "crocs": [*SHARED, *MATCHING, ("reject", -0.5, "reject must be at least 0, not -0.5")],
    "bet": [
        ("layers", 0, "layers must be at least 1, not 0"),
        ("power", 0.0, "power must be above 0, not 0"),
        ("sharpness", 0.0, "sharpness must be above 0, not 0"),
    ],
}
CASES = [(model, *case) for model, cases in OWN.items() for case in cases]


@pytest.mark.parametrize(("model", "name", "value", "said"), CASES, ids=[f"{m}-{n}={v}" for m, n, v, _ in CASES])
def test_a_setting_that_makes_no_sense_is_refused(model: str, name: str, value: Any, said: str) -> None:
    with pytest.raises(MomentseekError, match=f"model: .*{said}"):
        build_config(MODELS[model].config, {name: value}, f"model {model}")


@pytest.mark.parametrize("model", OWN)
def test_settings_at_their_limits_are_taken(model: str) -> None:
    limits = {"kernel": 1, "map_layers": 1, "positives": 1, "power": 0.0, "layers": 1} if model != "bet" else {}
    known = {n: v for n, v in limits.items() if hasattr(build_config(MODELS[model].config, {}, model), n)}
    assert build_config(MODELS[model].config, known, model)


def models_of(preset: str) -> list[str]:
    """Those a preset is for: the one it names, those it has settings for, or any."""
    found = preset_table(preset)
    if name := found["model"].get("name"):
        return [name]
    return sorted(MODELS) if preset == "simulation" else sorted(found["models"])


# captioners are built from a vocabulary, in tests of their own
PRESETS = [(preset, model) for preset in preset_names() for model in models_of(preset) if model in MODELS]


@pytest.mark.parametrize(("preset", "model"), PRESETS, ids=[f"{p}-{m}" for p, m in PRESETS])
def test_every_preset_builds_its_models(preset: str, model: str) -> None:
    """Narrower than they are trained, so that it takes no time; all else as the preset has it."""
    assert configure(preset_table(preset), model).model_config.hidden >= 32
    narrow = configure(preset_table(preset), model, ["hidden=48"])
    assert build(model, narrow.settings, Dims(query=6, video=9, subtitle=7)).config == narrow.model_config
