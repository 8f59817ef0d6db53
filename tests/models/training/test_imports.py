"""Public weights as a training run: what `predict` and `export` load is what was in the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from golden_models import read_golden, settings_of
from safetensors.torch import save_file

from momentseek.core.errors import MomentseekError
from momentseek.models.public.weights import PUBLIC_MODELS
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.warm_start import import_checkpoint

SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[3] / "shared"))
FILES = sorted((SHARED / "golden" / "models").glob("*.npz"))


@pytest.mark.skipif(not FILES, reason="the public implementations' results are not here")
@pytest.mark.parametrize("path", FILES or [Path("none")], ids=lambda path: path.stem)
def test_public_weights_become_a_run(path: Path, tmp_path: Path) -> None:
    golden = read_golden(path, torch.float32)
    assert golden.kind in PUBLIC_MODELS
    file = tmp_path / "public.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in golden.weight.items()}, file)
    settings = settings_of(golden)
    done = import_checkpoint(file, golden.kind, tmp_path / "run", settings)
    found = load_checkpoint(tmp_path / "run")
    expected = golden.model(golden.kind, **settings).state_dict()
    assert found.imported
    assert done.parameters == sum(p.numel() for p in found.model.parameters())
    assert {name: tensor.tolist() for name, tensor in found.model.state_dict().items()} == {
        name: tensor.tolist() for name, tensor in expected.items()
    }


def test_nothing_is_written_for_weights_that_do_not_fit(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "a.safetensors")
    with pytest.raises(MomentseekError, match=r"a.safetensors: the weights lack .*, so they are not those of"):
        import_checkpoint(tmp_path / "a.safetensors", "mmn", tmp_path / "run")
    assert not (tmp_path / "run").exists()
