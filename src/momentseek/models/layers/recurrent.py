"""Recurrent layers over sequences of different lengths: LSTMs, stacked GRUs, and WSSL's captioner."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from momentseek.models.batch import Words
from momentseek.models.inputs import BEGIN, END, PADDING, UNKNOWN
from momentseek.models.layers.projection import Dropout, JointClips

SENTENCE_ENCODERS = ("mean", "lstm")


class Recurrent(nn.Module):
    """An LSTM that returns the states of all steps, and the state after the last real step.

    In the forward direction, padding comes last. In the backward direction, each row is first reversed up to its own
    length, so padding comes last there too. Both directions together give ``width`` columns.
    """

    def __init__(self, dim: int, width: int, *, both_ways: bool = True) -> None:
        super().__init__()
        self.forwards = nn.LSTM(dim, width // 2 if both_ways else width, batch_first=True)
        self.backwards = nn.LSTM(dim, width - width // 2, batch_first=True) if both_ways else None

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(n, T, dim), (n, T) -> states (n, T, width), zero in the padding, and last states (n, width)."""
        counts = mask.sum(1)
        after = (counts - 1).clamp(min=0)[:, None, None]
        states = self.forwards(x)[0]
        last = states.gather(1, after.expand(-1, 1, states.shape[2])).squeeze(1)
        if self.backwards is not None:
            turned = _turn(self.backwards(_turn(x, counts))[0], counts)
            states = torch.cat([states, turned], dim=-1)
            last = torch.cat([last, turned[:, 0]], dim=-1)
        return states * mask[..., None], last


def _turn(x: Tensor, counts: Tensor) -> Tensor:
    """Reverse the first ``counts[i]`` steps of row i; the rest stay in place.

    >>> _turn(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([2])).flatten().tolist()
    [2.0, 1.0, 3.0]
    """
    at = torch.arange(x.shape[1], device=x.device)
    index = torch.where(at < counts[:, None], counts[:, None] - 1 - at, at)
    return x.gather(1, index[..., None].expand_as(x))


def mean_of_words(words: Words) -> Tensor:
    """(queries, dim): the mean of the words' features."""
    weight = words.mask.to(words.features)
    total = torch.einsum("qnd,qn->qd", words.features, weight)
    return total / weight.sum(1, keepdim=True).clamp(min=1)


class Sentence(nn.Module):
    """Encodes a query as one vector: a linear map of its mean word, or of the last state of an LSTM."""

    def __init__(self, kind: str, dim: int, hidden: int) -> None:
        super().__init__()
        self.lstm = Recurrent(dim, hidden, both_ways=False) if kind == "lstm" else None
        self.linear = nn.Linear(hidden if kind == "lstm" else dim, hidden)

    def forward(self, words: Words) -> Tensor:
        """(queries, hidden)."""
        pooled = mean_of_words(words) if self.lstm is None else self.lstm(words.features, words.mask)[1]
        return self.linear(pooled)


class GruStack(nn.Module):
    """Layers of GRUs over sequences of different lengths, with the padding at the end."""

    def __init__(self, dim: int, hidden: int, layers: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.GRU(dim if i == 0 else hidden, hidden, batch_first=True) for i in range(layers))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, begin: Tensor | None = None) -> Tensor:
        """(n, T, dim) -> states (n, T, layers, hidden); ``begin`` (n, layers, hidden) are the initial states.

        >>> GruStack(3, 4, 2)(torch.zeros(1, 5, 3)).shape
        torch.Size([1, 5, 2, 4])
        """
        found: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            first = None if begin is None else begin[:, number].contiguous()[None]
            x = layer(x if number == 0 else self.dropout(x), first)[0]
            found.append(x)
        return torch.stack(found, dim=2)


def states_at(states: Tensor, place: Tensor) -> Tensor:
    """(n, layers, hidden): the states (n, T, layers, hidden) of row i after step ``place[i]``."""
    return states[torch.arange(len(states), device=states.device), place]


def segment_masks(segment: Tensor, mask: Tensor, sharpness: float, at: float = 0.5) -> Tensor:
    """(n, 3, clips): soft masks of the clips inside, left and right of segments (n, 2), given as shares of the video.

    ``inside = s(k(i - start)) - s(k(i - end))``, ``left = s(-k(i - start))``, ``right = s(k(i - end))`` with the
    sigmoid ``s``, and with ``i``, start and end in clips. They add up to 1. A clip's position is its middle, or ``at``.

    >>> found = segment_masks(torch.tensor([[0.0, 0.5]]), torch.ones(1, 4, dtype=torch.bool), 50.0)
    >>> found[0].round().abs().tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    """
    place = torch.arange(mask.shape[1], device=mask.device, dtype=segment.dtype) + at
    start, end = (segment * mask.sum(1, keepdim=True)).unbind(1)
    after = torch.sigmoid(sharpness * (place - start[:, None]))
    beyond = torch.sigmoid(sharpness * (place - end[:, None]))
    return torch.stack([after - beyond, 1 - after, beyond], dim=1) * mask[:, None]


class SegmentCaptioner(nn.Module):
    """Writes a query's words from the clips inside, left and right of a segment.

    With ``official``, it follows WSSL's public code: a clip's position is its start, 1e-4 is added to the divisors of
    the means, and the end token may also be the most likely word (see ``likelihood``).
    """

    def __init__(
        self, clips: JointClips, words: int, entries: int, hidden: int, layers: int, dropout: float, sharpness: float,
        *, official: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.clips, self.sharpness, self.official = clips, sharpness, official
        self.video = GruStack(clips.columns, hidden, layers, dropout)
        self.beside = nn.Linear(clips.columns, hidden)
        self.words = nn.Embedding(entries, words)
        self.decoder = GruStack(words + 3 * hidden, hidden, layers, dropout)
        self.out = nn.Linear(hidden, entries)

    def look(self, clips: Tensor) -> tuple[Tensor, Tensor]:
        """Encode videos: rows (n, T, hidden), and the states of all layers (n, T, layers, hidden)."""
        states = self.video(clips)
        return states[:, :, -1] + self.beside(clips), states

    def begin(self, seen: tuple[Tensor, Tensor], segment: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The means inside, left and right of segments (n, 3 hidden), and the decoder's initial states.

        The initial states are those of the video at the segments' ends.
        """
        masks = segment_masks(segment, mask, self.sharpness, 0.0 if self.official else 0.5)
        total = masks.sum(2, keepdim=True)
        weights = masks / (total + 1e-4 if self.official else total.clamp(min=1e-6))
        means = torch.einsum("njt,nth->njh", weights, seen[0]).flatten(1)
        count = mask.sum(1)
        last = torch.minimum((segment[:, 1] * count).long(), count - 1).clamp(min=0)
        return means, states_at(seen[1], last)

    def predict(self, means: Tensor, states: Tensor, words: Tensor) -> Tensor:
        """(n, T, entries): the logits of the next word after each of the words (n, T)."""
        given = torch.cat([self.words(words), means[:, None].expand(-1, words.shape[1], -1)], dim=2)
        return self.out(self.decoder(given, states)[:, :, -1])

    def likelihood(self, means: Tensor, states: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-likelihood (n,) of the sentences ``words`` (n, T), and the most likely word at each position.

        ``means`` and ``states`` come from ``begin``. The log-likelihood includes the end token. The most likely words
        are (n, T), without special tokens; if the module is ``official``, they are (n, T + 1), because the position of
        the end token is included, and any token except padding may be the most likely one.
        """
        there = words != PADDING
        first = torch.full_like(words[:, :1], BEGIN)
        logits = self.predict(means, states, torch.cat([first, words], dim=1))
        wanted = torch.cat([words, torch.full_like(first, PADDING)], dim=1)
        wanted[torch.arange(len(words), device=words.device), there.sum(1)] = END
        chances = logits.log_softmax(2).gather(2, wanted[..., None])[..., 0]
        total = (chances * (wanted != PADDING)).sum(1)
        if self.official:
            return total, torch.where(wanted != PADDING, logits[..., BEGIN:].argmax(2) + BEGIN, PADDING)
        likeliest = logits[:, :-1, UNKNOWN + 1 :].argmax(2) + UNKNOWN + 1
        return total, torch.where(there, likeliest, PADDING)

    def write(self, means: Tensor, states: Tensor, most: int) -> Tensor:
        """(n, most): write sentences greedily, with padding after the end."""
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
