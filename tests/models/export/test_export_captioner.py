"""A captioner without torch writes the captions that torch writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.models.captioner import CaptionerDims
from momentseek.models.export.checkpoints import export_captioner
from momentseek.models.registry import build_config
from momentseek.models.zoo.mmt import MMT, MMTConfig
from momentseek.recognition.captions.decoding import DecodingSettings
from momentseek.recognition.captions.inputs import MomentParts, build_vocabulary, stack_moments
from momentseek.recognition.exported.captioner import ExportedCaptioner

KNOWN = build_vocabulary([tuple("abcdefgh")], more_than=0)
SMALL = {"hidden": 8, "heads": 2, "layers": 2, "feedforward": 8, "word_dim": 4, "max_clips": 6, "max_caption": 7}


def build_mmt(**settings: object) -> MMT:
    torch.manual_seed(0)
    config = build_config(MMTConfig, {**SMALL, **settings}, "model mmt")
    model = MMT(config, CaptionerDims(5 if config.preparation.sees else 0, KNOWN.words)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)  # as first drawn, all words are as likely
    return model


def random_parts(model: MMT) -> list[MomentParts]:
    rng, prepared = np.random.default_rng(1), model.config.preparation
    return [
        MomentParts(
            rng.standard_normal((count if prepared.sees else 0, model.dims.video), np.float32),
            tuple(rng.choice(list("abcxyz"), count).tolist()) if prepared.reads else (),
        )
        for count in (1, 4, 2, 6, 3)
    ]


@pytest.mark.parametrize(
    "settings",
    [{}, {"whole_decoder": False}, {"modalities": "video"}, {"modalities": "subtitle"}, {"modalities": "none"}],
)
def test_captions_are_torchs(settings: dict[str, object], tmp_path: Path) -> None:
    model = build_mmt(**settings)
    done = export_captioner(model, "mmt", tmp_path / "out", trained={"step": 3})
    assert done.difference < 1e-4
    ours, parts = ExportedCaptioner(tmp_path / "out", threads=1), random_parts(model)
    inputs = stack_moments(parts, KNOWN, model.dims.video, model.config.modalities)
    for decoding in (DecodingSettings(longest=7), DecodingSettings(3, 0.8, 7)):
        assert ours.describe(parts, decoding) == model.describe(inputs, decoding)
    assert ours.describe(parts) == model.describe(inputs)
    assert ours.describe([]) == []


def test_a_changed_export_is_refused(tmp_path: Path) -> None:
    export_captioner(build_mmt(), "mmt", tmp_path / "out")
    manifest = tmp_path / "out" / "model.json"
    values = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**values, "clip_seconds": 3.0}))
    with pytest.raises(MomentseekError, match="was changed after the export"):
        ExportedCaptioner(tmp_path / "out")
    with pytest.raises(MomentseekError, match="already exists"):
        export_captioner(build_mmt(), "mmt", tmp_path / "out")
