"""Trainable models on shared layers and losses: features, training, inference, export. torch lives only here."""

from __future__ import annotations

from momentseek.core.errors import optional_module


def require_training() -> None:
    """Refuse to go on where the packages of ``momentseek[train]`` are not installed."""
    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
