"""Trainable models: their layers, features, training, inference and export. Only this package imports torch."""

from __future__ import annotations

from momentseek.core.errors import optional_module


def require_training() -> None:
    """Raise an error if the packages of ``momentseek[train]`` are not installed."""
    for package in ("torch", "h5py", "safetensors"):
        optional_module(package, "train")
