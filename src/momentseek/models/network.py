"""What the training loop trains: a network that gives its loss on a batch, and finds moments or describes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from momentseek.models.phases import EVERYTHING, Phase


class Network(nn.Module, ABC):
    """A network with settings; ``CorpusModel`` and ``Captioner`` say what it does beside being trained."""

    rate_groups: ClassVar[tuple[str, ...]] = ()
    """Parts of the model, by the prefixes of their parameters' names, that ``phase_at`` gives rates of their own."""

    def __init__(self, config: Any, dims: Any) -> None:
        super().__init__()
        self.config = config
        self.dims = dims
        self.phase = EVERYTHING
        """The phase of the step that is being trained; training sets it before it asks for the loss."""

    def phase_at(self, step: int, epoch: int) -> Phase:
        """What is trained in a step, counted from 0, of an epoch: everything at the same rate, if not said."""
        return EVERYTHING

    @abstractmethod
    def loss(self, batch: Any, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """The terms of the loss by name, weighted; training minimises their sum. ``rng`` decides what is sampled."""
