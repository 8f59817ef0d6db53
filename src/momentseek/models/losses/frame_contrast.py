"""Contrast of the clips in a moment with the others of its video (ReLoCLNet's FrameCL).

The Jensen–Shannon estimate of the mutual information between query and clips: inside the moment a clip scored x earns
``log 2 - softplus(-x)``, outside it costs ``softplus(x) - log 2``; the loss is the mean cost less the mean earning.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import softplus


def frame_contrast(curve: Tensor, moment: Tensor, mask: Tensor) -> Tensor:
    """One value per row of ``curve`` (n, clips), with ``moment`` True in the moment and ``mask`` in the video.

    >>> import torch
    >>> frame_contrast(torch.zeros(1, 3), torch.tensor([[True, False, False]]), torch.ones(1, 3) > 0).item()
    0.0
    """
    outside = mask & ~moment
    earned = (math.log(2) - softplus(-curve)).masked_fill(~moment, 0.0).sum(1) / moment.sum(1).clamp(min=1)
    cost = (softplus(curve) - math.log(2)).masked_fill(~outside, 0.0).sum(1) / outside.sum(1).clamp(min=1)
    return cost - earned
