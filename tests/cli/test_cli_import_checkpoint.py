"""``momentseek import-checkpoint``: converts public weights to a run for other commands."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from momentseek import simulate


def mmn_weights(words: int, columns: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    layers = {
        "featpool.conv": (6, columns, 1), "text_encoder.fc_out1": (4, words), "text_encoder.fc_out2": (4, words),
        "proposal_conv.convs.0": (6, 6, 3, 3), "proposal_conv.conv1x1_iou": (4, 6, 1, 1),
        "proposal_conv.conv1x1_contrastive": (4, 6, 1, 1), "text_encoder.layernorm": (words,),
        "proposal_conv.bn.0": (6,),
    }  # fmt: skip
    state = {f"{name}.weight": torch.randn(shape, generator=g) for name, shape in layers.items()}
    state |= {f"{name}.bias": torch.zeros(shape[0]) for name, shape in layers.items()}
    state |= {"proposal_conv.bn.0.running_mean": torch.zeros(6), "proposal_conv.bn.0.running_var": torch.ones(6)}
    return state | {
        "proposal_conv.bn.0.num_batches_tracked": torch.tensor(7),
        "text_encoder.bert.embeddings.weight": torch.zeros(3, 2),
    }


def test_import_predict_export(momentseek: Any, tmp_path: Path) -> None:
    run = partial(momentseek, cwd=tmp_path)
    simulate(tmp_path / "films", like="charades", videos=40, pool=5, video_dim=8, text_dim=8)
    save_file(mmn_weights(8, 8), tmp_path / "mmn.safetensors")
    arguments = ("import-checkpoint", "mmn.safetensors", "--model", "mmn", "--out", "run")
    done = run(*arguments, "--set", "max_clips=8", "--set", "as=official")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("wrote run: mmn with ")
    assert "do not follow from the weights are the authors': longest=8, stride=1, power=0.5" in done.stderr
    assert "1 tensors have no place in the model, such as text_encoder.bert.embeddings.weight" in done.stderr

    again = run(*arguments)
    assert again.returncode == 2
    assert "already holds a training run" in again.stderr
    told = json.loads(run(*arguments, "--force", "--json").stdout)
    assert told["settings"]["max_clips"] == told["assumed"]["max_clips"] == 16

    found = run("predict", "run", "--data", "films", "--split", "test_iid", "--out", "run.jsonl")
    assert found.returncode == 0, found.stderr
    assert run("evaluate", "run.jsonl", "--truth", "films/test_iid.txt", "-m", "R@1[IoU>=0.5]").returncode == 0
    written = run("export", "run", "--data", "films", "--out", "exported")
    assert written.returncode == 0, written.stderr
    simulate(tmp_path / "wider", like="charades", videos=40, pool=5, video_dim=9, text_dim=8)
    refused = run("export", "run", "--data", "wider", "--out", "other")
    assert (refused.returncode, (tmp_path / "other").exists()) == (2, False)
    assert "video features have 9 columns" in refused.stderr


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("tan2d", "weights.safetensors: these are weights of mmn, not of tan2d; import them as that"),
        ("bet", "no public weights of bet are known; models with public weights are "),
    ],
)
def test_refusals_are_one_sentence(momentseek: Any, tmp_path: Path, model: str, message: str) -> None:
    file = tmp_path / "weights.safetensors"
    save_file(mmn_weights(5, 4), file)
    done = momentseek("import-checkpoint", file, "--model", model, "--out", tmp_path / "r")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "r").exists()
