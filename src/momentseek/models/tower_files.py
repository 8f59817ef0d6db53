"""Read the folders of Hugging Face language models (text towers): sizes, tokenizers and weights.

A folder of DistilBERT, BERT or RoBERTa has ``config.json``, the weights (``model.safetensors`` or
``pytorch_model.bin``) and a tokenizer (``tokenizer.json``, or ``vocab.txt``, or ``vocab.json`` and ``merges.txt``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.recognition.weights.catalog import HUB_MODELS, find_hub_model
from momentseek.recognition.weights.hub import check_model

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
DEFAULT_TOWER = "distilbert"
NO_TOKEN = -1
"""The value in the padding of rows of tokens."""


@dataclass(frozen=True, kw_only=True)
class TowerSizes:
    """The sizes of a tower, from its ``config.json``."""

    kind: str
    pieces: int
    places: int
    hidden: int
    layers: int
    heads: int
    feedforward: int
    epsilon: float
    first_place: int
    """The position of a text's first token; RoBERTa counts from the padding's number plus 1."""


def read_tower_sizes(folder: Path) -> TowerSizes:
    """Read the sizes of the tower in a folder; refuses other kinds of networks."""
    try:
        found = json.loads((folder / "config.json").read_text())
        kind = found["model_type"]
        if kind == "distilbert":
            names, epsilon = "max_position_embeddings dim n_layers n_heads hidden_dim", 1e-12
        elif kind in ("bert", "roberta"):
            names = "max_position_embeddings hidden_size num_hidden_layers num_attention_heads intermediate_size"
            epsilon = float(found.get("layer_norm_eps", 1e-12))
        else:
            raise MomentseekError(f"{folder}: holds {kind!r}; give a folder of DistilBERT, BERT or RoBERTa")
        places, hidden, layers, heads, wide = (int(found[name]) for name in names.split())
        pieces = int(found["vocab_size"])
        gelu = found.get("activation" if kind == "distilbert" else "hidden_act", "gelu")
    except (OSError, ValueError, KeyError, TypeError):
        what = "no readable config.json of DistilBERT, BERT or RoBERTa"
        raise MomentseekError(f"{folder}: has {what}; give the folder of a Hugging Face model") from None
    if gelu != "gelu":
        raise MomentseekError(f"{folder}: has the activation {gelu!r}, and only gelu is supported; give another model")
    first = int(found.get("pad_token_id", 1)) + 1 if kind == "roberta" else 0
    return TowerSizes(
        kind=kind, pieces=pieces, places=places, hidden=hidden, layers=layers, heads=heads, feedforward=wide,
        epsilon=epsilon, first_place=first,
    )  # fmt: skip


def resolve_tower(name: str | None) -> str | None:
    """The name of a tower as a config stores it: a model's name, the absolute path of a folder, or None.

    ``auto`` becomes the default model if it is downloaded, else None.
    """
    if name != "auto":
        return name if not name or name in HUB_MODELS else str(Path(name).resolve())
    try:
        _ = _hub_folder(DEFAULT_TOWER)
    except MomentseekError:
        return None
    return DEFAULT_TOWER


def find_tower(name: str | None) -> Path | None:
    """The folder of a tower: a path, or that of a model downloaded by `momentseek models get`."""
    found = resolve_tower(name)
    return _hub_folder(found) if found in HUB_MODELS else Path(found) if found else None


@cache
def _hub_folder(name: str) -> Path:
    return check_model(find_hub_model(name, "text"))


@cache
def read_tokenizer(folder: Path) -> Any:
    """Read the tokenizer of a folder, which adds the special tokens around a text."""
    tokenizers = optional_module("tokenizers", "search")
    try:
        if (folder / "tokenizer.json").is_file():
            found = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        elif (folder / "vocab.txt").is_file():
            settings = folder / "tokenizer_config.json"
            lower = json.loads(settings.read_text()).get("do_lower_case", True) if settings.is_file() else True
            found = tokenizers.BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=lower)
        else:
            found = tokenizers.ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
            marks = [("</s>", found.token_to_id("</s>")), ("<s>", found.token_to_id("<s>"))]
            found._tokenizer.post_processor = tokenizers.processors.RobertaProcessing(*marks)
    except Exception as e:  # the library raises bare exceptions for missing and damaged files
        raise MomentseekError(
            f"{folder}: has no readable tokenizer ({str(e).splitlines()[0]}); copy tokenizer.json there"
        ) from None
    found.no_padding()
    return found


def tower_tokens(folder: Path, texts: Sequence[str], most: int) -> Tensor:
    """(texts, longest): the tokens of texts with special tokens, at most ``most`` each; -1 in the padding."""
    tokenizer = read_tokenizer(folder)
    tokenizer.enable_truncation(most)
    rows = [torch.tensor(tokenizer.encode(text).ids) for text in texts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=NO_TOKEN)


def read_tower_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of a folder; code in the file is never run."""
    loader = optional_module("safetensors.torch", "train")
    file = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
    if file is None:
        raise MomentseekError(f"{folder}: has neither {' nor '.join(WEIGHT_FILES)}; copy the model's weights there")
    try:
        safe = file.suffix == ".safetensors"
        found = loader.load_file(file) if safe else torch.load(file, map_location="cpu", weights_only=True)
        return {str(name): tensor.float() for name, tensor in found.items() if tensor.is_floating_point()}
    except Exception as e:  # both libraries have classes of their own for damaged files
        why = (str(e) or type(e).__name__).splitlines()[0].strip()
        raise MomentseekError(f"{file}: is damaged or holds no weights ({why}); copy it again") from None
