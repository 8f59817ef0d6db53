"""How many threads compute, which decides the last bits of what is learnt."""

from __future__ import annotations

import torch

from momentseek.training.config import TrainConfig


def thread_count(config: TrainConfig | None = None) -> int:
    """The number of threads that a training run has in this process: the config's, else as PyTorch decides."""
    named = config.training.threads if config is not None else None
    return named if named is not None else torch.get_num_threads()


def use_threads(count: int) -> None:
    """Compute with so many threads in this process from now on."""
    torch.set_num_threads(count)
