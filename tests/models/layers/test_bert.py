"""Language models from Hugging Face folders: states as `transformers` has them, and MMN trained with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from momentseek import simulate
from momentseek.core.errors import MomentseekError
from momentseek.models.features.data import Data, Dims
from momentseek.models.inputs import words_of
from momentseek.models.layers.bert import BertTower, SentenceTower, load_tower
from momentseek.models.public.loading import load_public
from momentseek.models.registry import build
from momentseek.models.tower_files import find_tower, read_tower_sizes, resolve_tower, tower_tokens
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train
from momentseek.models.training.setup import resolve_config

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "person", "opens", "the", "door", "##s", "runs"]
SIZES: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "bert": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24},
    "roberta": {
        "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24,
        "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1,
    },
}  # fmt: skip


def make_folder(kind: str, folder: Path, seed: int = 0) -> Any:
    """A folder with a small network of a kind and random weights, and `transformers`' model of it."""
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(kind, vocab_size=len(PIECES), max_position_embeddings=16, **SIZES[kind])
    model = transformers.AutoModel.from_config(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    if kind == "roberta":
        words = {piece: number for number, piece in enumerate(["<s>", "<pad>", "</s>", "a", "b", "Ġ", "ab"])}
        (folder / "vocab.json").write_text(json.dumps(words))
        (folder / "merges.txt").write_text("#version: 0.2\na b\n")
    else:
        (folder / "vocab.txt").write_text("\n".join(PIECES))
    return model


@pytest.mark.parametrize("kind", SIZES)
def test_states_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    theirs = make_folder(kind, tmp_path)
    sizes = read_tower_sizes(tmp_path)
    ours = BertTower(sizes).eval()
    load_tower(ours, tmp_path)
    tokens = torch.tensor([[3, 6, 7, 8, 9, 2], [3, 5, 2, -1, -1, -1]])
    mask = tokens >= 0
    padding = 1 if kind == "roberta" else 0
    with torch.no_grad():
        found = theirs(
            input_ids=tokens.masked_fill(~mask, padding), attention_mask=mask.long(), output_hidden_states=True
        )
        assert torch.allclose(ours(tokens)[mask], found.last_hidden_state[mask], atol=2e-5)
        two = found.hidden_states[-1] + found.hidden_states[-2]
        assert torch.allclose(ours(tokens, 2)[mask], two[mask], atol=4e-5)


def test_sentences_are_read_by_their_first_piece(tmp_path: Path) -> None:
    theirs = make_folder("bert", tmp_path)
    ours = SentenceTower(tmp_path)
    tokens = tower_tokens(tmp_path, ["A person opens the doors!", "runs"], 16)
    assert tokens.tolist() == [[2, 5, 6, 7, 8, 9, 10, 1, 3], [2, 11, 3, *[-1] * 6]]
    with torch.no_grad():
        pooled = theirs(input_ids=tokens[:1]).pooler_output[0]
    found = ours.encode(["A person opens the doors!", "runs"])
    assert np.allclose(found[0], torch.nn.functional.normalize(pooled, dim=0), atol=1e-5)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert np.allclose(found[1], ours.encode(["runs"])[0], atol=1e-6), "others in a batch change nothing"
    assert (ours.dim, len(ours.fingerprint)) == (16, 64)


def test_roberta_cuts_bytes_between_its_marks(tmp_path: Path) -> None:
    make_folder("roberta", tmp_path)
    assert tower_tokens(tmp_path, ["abb", "b"], 16).tolist() == [[0, 6, 4, 2], [0, 4, 2, -1]]
    assert tower_tokens(tmp_path, ["abbbb"], 3).tolist() == [[0, 6, 2]]


def test_folders_that_hold_something_else(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match=r"has no readable config\.json of DistilBERT, BERT or RoBERTa; give the"):
        read_tower_sizes(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(MomentseekError, match="holds 'gpt2'; give a folder of DistilBERT, BERT or RoBERTa"):
        read_tower_sizes(tmp_path)
    make_folder("bert", tmp_path)
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(MomentseekError, match="has no readable tokenizer"):
        tower_tokens(tmp_path, ["a"], 5)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(MomentseekError, match=r"has neither model\.safetensors nor pytorch_model\.bin; copy the"):
        SentenceTower(tmp_path)
    assert find_tower(None) is None
    assert (resolve_tower("auto"), find_tower("auto")) == (None, None)
    with pytest.raises(MomentseekError, match="distilbert is not downloaded; get it with: momentseek models get"):
        find_tower("distilbert")


def test_mmn_is_trained_with_its_language_model(tmp_path: Path) -> None:
    make_folder("distilbert", tmp_path / "bert")
    simulate(tmp_path / "films", like="charades", videos=12, pool=3, video_dim=8, text_dim=8)
    model = {
        "name": "mmn", "hidden": 8, "space": 8, "map_layers": 1, "kernel": 3, "max_clips": 8, "longest": 8,
        "tower": str(tmp_path / "bert"), "tower_after": 1, "max_words": 9,
    }  # fmt: skip
    training = {"batch": 8, "epochs": 2, "lr": 0.01, "task": "SVMR", "measure": "R@1[IoU>=0.5]", "report": [],
                "milestones": [1.5], "validations": 0.5}  # fmt: skip
    config = TrainConfig.of({"model": model, "training": training, "data": {"path": str(tmp_path / "films")}})
    assert resolve_config(config).settings["tower"] == str(tmp_path / "bert")
    with Data.open(tmp_path / "films") as data:
        network = build("mmn", config.settings, Dims(8, 8, None))
        network.prepare([])
        fresh = network.tower.pieces.weight.detach().clone()  # type: ignore[union-attr]
        split = data.split("train")
        words = words_of(split, split.truth.query_ids[:3], network.config)
        assert words.ids is not None
        assert network.encode_words(words)["match"].shape == (3, 8)
        assert [network.phase_at(0, epoch).rate("tower") for epoch in (0, 1)] == [0.0, 0.1]
        outcome = train(config, data, tmp_path / "run")
    assert outcome.stopped == "done"
    trained = load_checkpoint(tmp_path / "run" / "last.safetensors").model.state_dict()
    assert not torch.equal(trained["tower.layers.1.wide.weight"], network.state_dict()["tower.layers.1.wide.weight"])
    moved = (trained["tower.pieces.weight"] - fresh).abs()
    assert 0 < float(moved.max()) < 0.1
    with pytest.raises(MomentseekError, match="the batch has no texts, and the model's language model reads them"):
        network.encode_words(type(words)(words.features, words.mask))


def test_public_weights_keep_their_language_model(tmp_path: Path) -> None:
    theirs = make_folder("distilbert", tmp_path)
    g = torch.Generator().manual_seed(0)
    shapes = {
        "featpool.conv": (6, 5, 1), "text_encoder.fc_out1": (4, 16), "text_encoder.fc_out2": (4, 16),
        "proposal_conv.convs.0": (6, 6, 3, 3), "proposal_conv.conv1x1_iou": (4, 6, 1, 1),
        "proposal_conv.conv1x1_contrastive": (4, 6, 1, 1), "text_encoder.layernorm": (16,), "proposal_conv.bn.0": (6,),
    }  # fmt: skip
    weights = {f"{name}.weight": torch.randn(shape, generator=g) for name, shape in shapes.items()}
    weights |= {f"{name}.bias": torch.zeros(shape[0]) for name, shape in shapes.items()}
    weights |= {"proposal_conv.bn.0.running_mean": torch.zeros(6), "proposal_conv.bn.0.running_var": torch.ones(6),
                "proposal_conv.bn.0.num_batches_tracked": torch.tensor(7)}  # fmt: skip
    weights |= {f"text_encoder.bert.{name}": tensor for name, tensor in theirs.state_dict().items()}
    found = load_public("mmn", weights, {"max_clips": 8, "tower": str(tmp_path)})
    assert not found.skipped
    tokens = torch.tensor([[2, 6, 7, 3]])
    with torch.no_grad():
        wanted = theirs(input_ids=tokens).last_hidden_state
        assert torch.allclose(found.model.tower(tokens), wanted, atol=2e-5)  # type: ignore[operator]
    assert load_public("mmn", weights, {"max_clips": 8}).skipped
