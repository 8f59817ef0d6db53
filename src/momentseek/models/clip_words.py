"""CLIP's text tower from a Hugging Face folder, with a vector for each token, which EMScore compares with frames.

It is a causal transformer with pre-normalisation (Radford et al., ICML 2021, section 2.4). The state of the last token
stands for the sentence, and one projection maps every state to the space of images. The folder has ``config.json``, the
weights and ``tokenizer.json`` of one of OpenAI's models.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.models.layers.attention import earlier_rows
from momentseek.models.layers.bert import TEXTS_AT_ONCE
from momentseek.models.public.weights import PublicWeights, State, take_layers
from momentseek.models.tower_files import NO_TOKEN, read_tower_weights, tower_tokens
from momentseek.recognition.encoders.protocol import Vectors

LAYER_NAMES = {
    "self_attn.out_proj": "self_attn.out_proj", "norm1": "layer_norm1", "norm2": "layer_norm2", "linear1": "mlp.fc1",
    "linear2": "mlp.fc2",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ReadText:
    """A text encoded by CLIP: its tokens with the special ones, a unit vector for each, and one for the sentence."""

    tokens: NDArray[np.int64]
    words: Vectors
    sentence: Vectors


class ClipTextTower:
    """CLIP's text tower; texts are cut to its maximum number of tokens."""

    def __init__(self, folder: Path) -> None:
        try:
            config = json.loads((folder / "config.json").read_text())["text_config"]
            hidden, heads = int(config.get("hidden_size", 512)), int(config.get("num_attention_heads", 8))
            wide, layers = int(config.get("intermediate_size", 2048)), int(config.get("num_hidden_layers", 12))
            self._eps = float(config.get("layer_norm_eps", 1e-5))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise MomentseekError(
                f"{folder}: has no readable config.json of CLIP; give the folder of a Hugging Face model"
            ) from None
        if not (folder / "tokenizer.json").is_file():
            raise MomentseekError(f"{folder}: has no tokenizer.json, which CLIP needs to split texts; copy it there")
        self.folder = folder
        self._layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                hidden, heads, wide, 0.0, activation=quick_gelu, layer_norm_eps=self._eps, batch_first=True,
                norm_first=True,
            )
            for _ in range(layers)
        ).eval()  # fmt: skip
        self._state = self._read(PublicWeights(read_tower_weights(folder)), layers)

    def _read(self, weights: PublicWeights, layers: int) -> State:
        state: State = {}
        for n in range(layers):
            theirs = f"text_model.encoder.layers.{n}"
            state |= take_layers(weights, {f"{n}.{ours}": f"{theirs}.{name}" for ours, name in LAYER_NAMES.items()})
            for part in ("weight", "bias"):
                three = [weights.take(f"{theirs}.self_attn.{name}_proj.{part}") for name in "qkv"]
                state[f"{n}.self_attn.in_proj_{part}"] = torch.cat(three)
        self._layers.load_state_dict(state)
        return take_layers(weights, {
            "pieces": "text_model.embeddings.token_embedding", "places": "text_model.embeddings.position_embedding",
            "norm": "text_model.final_layer_norm", "project": "text_projection",
        })  # fmt: skip

    @property
    def dim(self) -> int:
        """Number of columns of the space of images."""
        return len(self._state["project.weight"])

    @torch.inference_mode()
    def read(self, texts: Sequence[str]) -> list[ReadText]:
        """Encode texts: the tokens of each with their vectors of length 1."""
        found: list[ReadText] = []
        places = self._state["places.weight"]
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            tokens = tower_tokens(self.folder, texts[first : first + TEXTS_AT_ONCE], len(places))
            x = self._state["pieces.weight"][tokens.clamp(min=0)] + places[: tokens.shape[1]]
            later = ~earlier_rows(tokens.shape[1])[0]
            for layer in self._layers:
                x = layer(x, src_mask=later)
            x = nn.functional.layer_norm(
                x, x.shape[-1:], self._state["norm.weight"], self._state["norm.bias"], self._eps
            )
            rows = nn.functional.normalize(x @ self._state["project.weight"].T, dim=2)
            for own, vectors in zip(tokens, rows, strict=True):
                count = int((own != NO_TOKEN).sum())
                words = vectors[:count].numpy()
                found.append(ReadText(own[:count].numpy(), words, words[-1]))
        return found


def quick_gelu(x: Tensor) -> Tensor:
    """``x sigmoid(1.702 x)``, which OpenAI's models use instead of GELU."""
    return x * torch.sigmoid(1.702 * x)
