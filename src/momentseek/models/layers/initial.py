"""How weights begin: N(0, 0.02) for linear maps and embeddings, as in BERT and the models built on it."""

from __future__ import annotations

from torch import nn


def initialise(model: nn.Module, sd: float = 0.02) -> None:
    """Draw the weights of every linear map and embedding from N(0, sd), biases zero; the rest keeps torch's start.

    >>> layer = nn.Linear(64, 64)
    >>> initialise(layer)
    >>> layer.bias.abs().max().item(), round(layer.weight.std().item(), 2)
    (0.0, 0.02)
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=sd)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
