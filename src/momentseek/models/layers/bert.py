"""DistilBERT, BERT or RoBERTa from a Hugging Face folder, as a trainable part of a model or as an encoder.

MMN and CroCs fine-tune DistilBERT, and G2L fine-tunes BERT. MVMR compares sentences with SimCSE, which is a RoBERTa.
All three are the same network: embeddings of tokens and positions, then layers of attention and feed-forward (Devlin et
al., NAACL 2019, section 3). They differ in the names of their weights and in the first position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.attention import TransformerLayer
from momentseek.models.layers.projection import Dropout, initialise
from momentseek.models.tower_files import NO_TOKEN, TowerSizes, read_tower_sizes, read_tower_weights, tower_tokens
from momentseek.recognition.encoders.protocol import Vectors

PREFIXES = ("distilbert.", "bert.", "roberta.")
"""Prefixes of all names of weights that were trained with a head."""
DISTILBERT_NAMES = {
    "transformer.layer.": "encoder.layer.", ".attention.q_lin.": ".attention.self.query.",
    ".attention.k_lin.": ".attention.self.key.", ".attention.v_lin.": ".attention.self.value.",
    ".attention.out_lin.": ".attention.output.dense.", ".sa_layer_norm.": ".attention.output.LayerNorm.",
    ".ffn.lin1.": ".intermediate.dense.", ".ffn.lin2.": ".output.dense.", ".output_layer_norm.": ".output.LayerNorm.",
}  # fmt: skip
"""DistilBERT's names of parts → BERT's."""
LAYER_NAMES = {
    "attend.attention.query": ("attention.self.query",), "attend.linear": ("attention.output.dense",),
    "attend.attention.key_value": ("attention.self.key", "attention.self.value"), "wide": ("intermediate.dense",),
    "attend.norm": ("attention.output.LayerNorm",), "narrow": ("output.dense",), "norm": ("output.LayerNorm",),
}  # fmt: skip
"""Our names of a layer's parts → BERT's, whose tensors are concatenated."""
TEXTS_AT_ONCE = 32


class BertTower(nn.Module):
    """The network of BERT: embeddings of tokens and positions, normalised, then transformer layers."""

    def __init__(self, sizes: TowerSizes, dropout: float = 0.1) -> None:
        super().__init__()
        self.sizes = sizes
        self.pieces = nn.Embedding(sizes.pieces, sizes.hidden)
        self.places = nn.Embedding(sizes.places - sizes.first_place, sizes.hidden)
        self.norm = nn.LayerNorm(sizes.hidden)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerLayer(sizes.hidden, sizes.heads, sizes.feedforward, dropout) for _ in range(sizes.layers)
        )
        initialise(self)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = sizes.epsilon

    def forward(self, tokens: Tensor, read: int = 1) -> Tensor:
        """(n, T, hidden): the sum of the last ``read`` layers' states of tokens (n, T), which are -1 in the padding."""
        mask = tokens != NO_TOKEN
        x = self.pieces(tokens.clamp(min=0)) + self.places.weight[: tokens.shape[1]]
        x = self.dropout(self.norm(x))
        states = []
        for layer in self.layers:
            x = layer(x, mask)
            states.append(x)
        return torch.stack(states[-read:]).sum(0)


def tower_state(tensors: Mapping[str, Tensor], sizes: TowerSizes) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Rename a tower's weights to our names; also returns those of its pooler (over the first token), if it has one."""
    named = {}
    for name, tensor in tensors.items():
        plain = name.removeprefix(next((p for p in PREFIXES if name.startswith(p)), ""))
        for theirs, bert in DISTILBERT_NAMES.items() if sizes.kind == "distilbert" else ():
            plain = plain.replace(theirs, bert)
        named[plain] = tensor
    embeddings = {"pieces": "word_embeddings", "places": "position_embeddings"}
    try:
        state = {f"{ours}.weight": named[f"embeddings.{theirs}.weight"] for ours, theirs in embeddings.items()}
        for part in ("weight", "bias"):
            state[f"norm.{part}"] = named[f"embeddings.LayerNorm.{part}"]
            for layer in range(sizes.layers):
                for ours, parts in LAYER_NAMES.items():
                    rows = [named[f"encoder.layer.{layer}.{theirs}.{part}"] for theirs in parts]
                    state[f"layers.{layer}.{ours}.{part}"] = torch.cat(rows)
    except KeyError as e:
        raise MomentseekError(f"the weights of the language model lack {e}; give those of its config.json") from None
    types = named.get("embeddings.token_type_embeddings.weight")
    places = state["places.weight"] if types is None else state["places.weight"] + types[0]  # all have type 0
    state["places.weight"] = places[sizes.first_place :]
    pooler = {part: named[f"pooler.dense.{part}"] for part in ("weight", "bias") if f"pooler.dense.{part}" in named}
    return state, pooler


def load_tower(model: BertTower, folder: Path) -> None:
    """Load the weights of a folder into a tower."""
    try:
        model.load_state_dict(tower_state(read_tower_weights(folder), model.sizes)[0])
    except RuntimeError as e:
        why = str(e).splitlines()[-1].strip()
        raise MomentseekError(f"{folder}: its weights are not those of its config.json ({why})") from None


class SentenceTower:
    """A sentence encoder such as SimCSE: the state of the first token, then a layer and tanh if the weights have one.

    SimCSE's authors call this ``cls`` pooling (Gao et al., EMNLP 2021).
    """

    def __init__(self, folder: Path) -> None:
        sizes, tensors = read_tower_sizes(folder), read_tower_weights(folder)
        self._folder, self._most = folder, sizes.places - sizes.first_place
        self._tower = BertTower(sizes, dropout=0.0).eval()
        state, pooler = tower_state(tensors, sizes)
        self._tower.load_state_dict(state)
        self._pooler = nn.Linear(sizes.hidden, sizes.hidden) if pooler else None
        if self._pooler is not None:
            self._pooler.load_state_dict(pooler)
        self.name, self.dim = f"simcse:{folder}", sizes.hidden
        digest = hashlib.sha256()
        for name, tensor in sorted(tensors.items()):
            digest.update(name.encode() + tensor.numpy().tobytes())
        self.fingerprint = digest.hexdigest()

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode texts: one row of length 1 per text."""
        rows = np.zeros((len(texts), self.dim), np.float32)
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            tokens = tower_tokens(self._folder, texts[first : first + TEXTS_AT_ONCE], self._most)
            marks = self._tower(tokens)[:, 0]
            found = marks if self._pooler is None else torch.tanh(self._pooler(marks))
            rows[first : first + len(found)] = nn.functional.normalize(found, dim=1).numpy()
        return rows
