"""Public weights as a training run: what `predict` and `export` load is what was in the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from golden_models import read_golden, settings_of, words_of_file
from safetensors.torch import save_file

from momentseek.core.errors import MomentseekError
from momentseek.models.captioner import CAPTIONERS
from momentseek.models.public.weights import PUBLIC_MODELS
from momentseek.models.training.checkpoint import load_captioner, load_checkpoint
from momentseek.models.training.warm_start import import_checkpoint

SHARED = Path(os.environ.get("MOMENTSEEK_SHARED", Path(__file__).parents[4] / "shared"))
FILES = [path for folder in ("models", "newer") for path in sorted((SHARED / "golden" / folder).glob("*.npz"))]


@pytest.mark.skipif(not FILES, reason="the public implementations' results are not here")
@pytest.mark.parametrize("path", FILES or [Path("none")], ids=lambda path: path.stem)
def test_public_weights_become_a_run(path: Path, tmp_path: Path) -> None:
    golden = read_golden(path, torch.float32)
    assert golden.model_name in PUBLIC_MODELS
    file, vocabulary = tmp_path / "public.safetensors", tmp_path / "words.json"
    save_file({name: tensor.contiguous() for name, tensor in golden.weight.items()}, file)
    settings, words = settings_of(golden), words_of_file(golden)
    vocabulary.write_text(json.dumps({word: number for number, word in enumerate(words)}))
    done = import_checkpoint(file, golden.model_name, tmp_path / "run", settings, words=vocabulary if words else None)
    load = load_captioner if golden.model_name in CAPTIONERS else load_checkpoint
    found = load(tmp_path / "run")
    expected = golden.model(golden.model_name, words=words, **settings).state_dict()
    assert found.imported
    assert done.parameters == sum(p.numel() for p in found.model.parameters())
    assert {name: tensor.tolist() for name, tensor in found.model.state_dict().items()} == {
        name: tensor.tolist() for name, tensor in expected.items()
    }


@pytest.mark.skipif(not FILES, reason="the public implementations' results are not here")
def test_weights_of_words_need_their_names(tmp_path: Path) -> None:
    golden = read_golden(SHARED / "golden" / "newer" / "mmt_video_sub.npz", torch.float32)
    file, vocabulary = tmp_path / "public.safetensors", tmp_path / "words.json"
    save_file({name: tensor.contiguous() for name, tensor in golden.weight.items()}, file)
    with pytest.raises(
        MomentseekError, match=r"have 40 words and do not name them; give the file that does \(`words`\)$"
    ):
        import_checkpoint(file, "mmt", tmp_path / "run")
    vocabulary.write_text('["[PAD]"]')
    with pytest.raises(MomentseekError, match="the weights have 40 words, and 1 are named; give the file that belongs"):
        import_checkpoint(file, "mmt", tmp_path / "run", words=vocabulary)
    for text, why in (("{", "is no JSON"), ('{"a": 1}', "is no list of words and no object"), ("[1]", "is no list of")):
        vocabulary.write_text(text)
        with pytest.raises(MomentseekError, match=why):
            import_checkpoint(file, "mmt", tmp_path / "run", words=vocabulary)
    assert not (tmp_path / "run").exists()


def test_nothing_is_written_for_weights_that_do_not_fit(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "a.safetensors")
    with pytest.raises(MomentseekError, match=r"a.safetensors: the weights lack .*, so they are not those of"):
        import_checkpoint(tmp_path / "a.safetensors", "mmn", tmp_path / "run")
    assert not (tmp_path / "run").exists()
