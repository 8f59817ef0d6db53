"""How models that look at query and video together match them: by the best moment of each pair."""

from __future__ import annotations

import torch
from torch import Tensor

from momentseek.models.batch import Encodings, take_rows
from momentseek.models.model import CorpusModel


def match_by_best_span(model: CorpusModel, queries: Encodings, videos: Encodings) -> Tensor:
    """(queries, videos): the score of the best span, or moment, of each pair, computed query by query."""
    mask = videos["mask"]
    found = []
    for i in range(len(next(iter(queries.values())))):
        here = torch.full((len(mask),), i, device=mask.device)
        asked = take_rows(queries, here)
        scores = model.moments(asked, videos)[2] if model.continuous else model.spans(asked, videos).flatten(1)
        found.append(scores.amax(1))
    return torch.stack(found)
