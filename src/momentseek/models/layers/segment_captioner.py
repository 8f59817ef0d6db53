"""WSSL's captioner: a sentence about a segment, seen through soft masks that let gradients reach its ends."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.layers.gru_stack import GruStack, states_at
from momentseek.models.word_ids import BEGIN, END, PADDING, UNKNOWN


def segment_masks(segment: Tensor, mask: Tensor, sharpness: float) -> Tensor:
    """(n, 3, clips): how much each clip counts as inside, left and right of segments (n, 2), shares of the video.

    ``inside = s(k(i - start)) - s(k(i - end))``, ``left = s(-k(i - start))``, ``right = s(k(i - end))`` with ``i``,
    start and end in clips and the sigmoid ``s``; they add up to 1.

    >>> found = segment_masks(torch.tensor([[0.0, 0.5]]), torch.ones(1, 4, dtype=torch.bool), 50.0)
    >>> found[0].round().abs().tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    """
    place = torch.arange(mask.shape[1], device=mask.device, dtype=segment.dtype) + 0.5
    start, end = (segment * mask.sum(1, keepdim=True)).unbind(1)
    after = torch.sigmoid(sharpness * (place - start[:, None]))
    beyond = torch.sigmoid(sharpness * (place - end[:, None]))
    return torch.stack([after - beyond, 1 - after, beyond], dim=1) * mask[:, None]


class SegmentCaptioner(nn.Module):
    """Writes a query's words from the clips inside, left and right of a segment."""

    def __init__(
        self, clips: nn.Module, words: int, entries: int, hidden: int, layers: int, dropout: float, sharpness: float
    ) -> None:
        super().__init__()
        self.clips, self.sharpness = clips, sharpness
        self.video = GruStack(hidden, hidden, layers, dropout)
        self.beside = nn.Linear(hidden, hidden)
        self.words = nn.Embedding(entries, words)
        self.decoder = GruStack(words + 3 * hidden, hidden, layers, dropout)
        self.out = nn.Linear(hidden, entries)

    def look(self, clips: Tensor) -> tuple[Tensor, Tensor]:
        """What is seen of videos (n, T, hidden), and all states (n, T, layers, hidden)."""
        states = self.video(clips)
        return states[:, :, -1] + self.beside(clips), states

    def begin(self, seen: tuple[Tensor, Tensor], segment: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The three means around segments (n, 3 hidden), and the decoder's first states: the video's at their ends."""
        masks = segment_masks(segment, mask, self.sharpness)
        weights = masks / masks.sum(2, keepdim=True).clamp(min=1e-6)
        means = torch.einsum("njt,nth->njh", weights, seen[0]).flatten(1)
        count = mask.sum(1)
        last = torch.minimum((segment[:, 1] * count).long(), count - 1).clamp(min=0)
        return means, states_at(seen[1], last)

    def predict(self, means: Tensor, states: Tensor, words: Tensor) -> Tensor:
        """(n, T, entries): logits of the word after each of these (n, T)."""
        given = torch.cat([self.words(words), means[:, None].expand(-1, words.shape[1], -1)], dim=2)
        found: Tensor = self.out(self.decoder(given, states)[:, :, -1])
        return found

    def likelihood(self, means: Tensor, states: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """(n,): the log-likelihood of sentences (n, T), their end included; and the likeliest words (n, T)."""
        there = words != PADDING
        first = torch.full_like(words[:, :1], BEGIN)
        logits = self.predict(means, states, torch.cat([first, words], dim=1))
        wanted = torch.cat([words, torch.full_like(first, PADDING)], dim=1)
        wanted[torch.arange(len(words), device=words.device), there.sum(1)] = END
        chances = logits.log_softmax(2).gather(2, wanted[..., None])[..., 0]
        likeliest = logits[:, :-1, UNKNOWN + 1 :].argmax(2) + UNKNOWN + 1
        return (chances * (wanted != PADDING)).sum(1), torch.where(there, likeliest, PADDING)

    def write(self, means: Tensor, states: Tensor, most: int) -> Tensor:
        """(n, most): the likeliest word at each place, greedily; padding after the end."""
        word = torch.full((len(means), 1), BEGIN, dtype=torch.long, device=means.device)
        ended = torch.zeros(len(means), dtype=torch.bool, device=means.device)
        found: list[Tensor] = []
        for _ in range(most):
            given = torch.cat([self.words(word), means[:, None]], dim=2)
            after = self.decoder(given, states)
            states = after[:, -1]
            logits = self.out(after[:, -1, -1]).clone()
            logits[:, [PADDING, BEGIN, UNKNOWN]] = -torch.inf
            word = logits.argmax(1, keepdim=True)
            ended = ended | (word[:, 0] == END)
            found.append(torch.where(ended, PADDING, word[:, 0]))
        return torch.stack(found, dim=1)
