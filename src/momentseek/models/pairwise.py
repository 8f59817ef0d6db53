"""How models that look at query and video together match them: by the best span of each pair."""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.batch import Encodings, take_rows
from momentseek.models.model import CorpusModel


def match_by_best_span(model: CorpusModel, queries: Encodings, videos: Encodings) -> Tensor:
    """(queries, videos): the score of the best span of each pair, computed query by query."""
    mask = videos["mask"]
    found = []
    for i in range(len(next(iter(queries.values())))):
        here = torch.full((len(mask),), i, device=mask.device)
        found.append(model.spans(take_rows(queries, here), videos).flatten(1).amax(1))
    return torch.stack(found)
