"""TSP-PRL: a learned policy moves and scales a window step by step, and a third head predicts each window's IoU.

A root policy chooses the kind of move, and a leaf policy the move itself. The two are trained in turn by actor-critic
(Wu et al., AAAI 2020). The window starts as the middle half of the video. All moves, rewards and observations of a
batch are computed together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.features.data import Dims
from momentseek.models.layers.projection import JointClips
from momentseek.models.layers.recurrent import SENTENCE_ENCODERS, Sentence
from momentseek.models.model import CorpusModel, GroundingConfig, Phase, Predicted, at_least, one_of
from momentseek.models.registry import register

BRANCHES = (4, 3, 3, 3, 3)
"""Number of moves of each kind."""
HALF_LENGTHS = (0.6, 0.75, 0.417, 0.333)
"""Half the new length, as a share of the old, of each scaling."""
UNEVEN_PLACES = {7: (0, 1, 2, 2, 3, 3, 4, 4, 5, 6), 8: (0, 1, 2, 3, 4, 4, 5, 5, 6, 7)}
"""The clips of a window that the public code observes, for the two lengths where it is not ``floor(k n / 11)``."""


def first_window(count: Tensor) -> Tensor:
    """(n, 2): the middle half of videos of ``count`` clips.

    >>> first_window(torch.tensor([20, 3])).tolist()
    [[4, 14], [0, 2]]
    """
    quarter = count // 4
    return torch.stack([(quarter - 1).clamp(min=0), count - quarter - 1], 1)


def move_window(window: Tensor, kind: Tensor, move: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 2): windows after a move, cut to the video, and (n,) whether they are empty, which ends an episode.

    >>> at, right, by = torch.tensor([[4, 14]]), torch.tensor([4]), torch.tensor([20])
    >>> [move_window(at, right, torch.tensor([m]), by)[0].tolist() for m in range(3)]
    [[[5, 15]], [[5, 14]], [[4, 15]]]
    """
    start, end = window.unbind(1)
    length, centre = end - start, (start + end) // 2
    half = (length * torch.tensor(HALF_LENGTHS, device=window.device)[move.clamp(max=3)]).long()
    far = torch.where(kind <= 2, count // 10, torch.ones_like(count))
    step = torch.where((kind == 1) | (kind == 3), -far, far)
    scales = kind == 0
    first = torch.where(scales, centre - half, start + step * (move != 2))
    last = torch.where(scales, centre + half, end + step * (move != 1))
    outside = (last < 0) | (first >= count)
    first, last = first.clamp(min=0), torch.minimum(last, count - 1)
    bad = (last <= first) | outside
    return torch.stack([first, last], 1), bad


def window_overlap(window: Tensor, truth: Tensor, last_clip: int = 1) -> Tensor:
    """(n,): IoU of windows of whole clips with moments (n, 2) in clips; negative for disjoint windows.

    Windows include their last clip; with ``last_clip`` 0, they end where it begins.

    >>> window_overlap(torch.tensor([[0, 3], [6, 7]]), torch.tensor([[2.0, 6.0], [2.0, 4.0]])).tolist()
    [0.3333333432674408, -0.3333333432674408]
    """
    first, last = window[:, 0].to(truth), window[:, 1].to(truth) + last_clip
    start, end = truth.unbind(1)
    return (torch.minimum(last, end) - torch.maximum(first, start)) / (
        torch.maximum(last, end) - torch.minimum(first, start)
    ).clamp(min=1e-6)


def root_reward(before: Tensor, after: Tensor, best: Tensor) -> Tensor:
    """The reward of a kind of move: the gain in IoU, plus 1 if no kind is better, else minus the best kind's advantage.

    >>> root_reward(torch.tensor([0.2, 0.2]), torch.tensor([0.5, 0.1]), torch.tensor([0.5, 0.5])).tolist()
    [1.2999999523162842, -0.5]
    """
    return torch.where(after >= best, 1.0, after - best) + (after - before)


def leaf_reward(before: Tensor, after: Tensor, *, spare: bool) -> Tensor:
    """The reward of a move: 1 (plus the IoU if above 0.5) if the IoU rises, -0.1 if not, -1 if it is negative.

    A disjoint window (negative IoU) that comes closer gets 1 with ``spare``, and -1 without.

    >>> was, now = torch.tensor([0.2, 0.4, 0.4, 0.1, -0.5]), torch.tensor([0.3, 0.6, 0.3, -0.1, -0.2])
    >>> [round(x, 1) for x in leaf_reward(was, now, spare=True).tolist()]
    [1.0, 1.6, -0.1, -1.0, 1.0]
    """
    better = (after > before) & ((before >= 0) | spare)
    reward = torch.full_like(after, -1.0).masked_fill((after >= 0) & (after <= before), -0.1)
    return torch.where(better, 1 + after * (after > 0.5), reward)


def discounted_returns(reward: Tensor, value: Tensor, counted: Tensor, discount: float) -> Tensor:
    """(n, steps): ``R_k = r_k + discount R_{k+1}``; after the last counted step, R is that step's value.

    >>> every = torch.ones(1, 3)
    >>> discounted_returns(every, 2 * every, every, 0.5).tolist()
    [[2.0, 2.0, 2.0]]
    """
    found = []
    later = value[:, -1]
    steps = reward.shape[1]
    for k in reversed(range(steps)):
        last = counted[:, k + 1] == 0 if k + 1 < steps else torch.ones_like(later, dtype=torch.bool)
        later = reward[:, k] + discount * torch.where(last, value[:, k], later)
        found.append(later)
    return torch.stack(found[::-1], 1)


@dataclass(frozen=True, kw_only=True)
class TspPrlConfig(GroundingConfig):
    """TSP-PRL's settings; a clip is a unit of 16 frames."""

    official: ClassVar[Mapping[str, Any]] = {
        "unit": 0,
        "closer": "wrong",
        "places": "official",
        "last_clip": False,
        "detached": False,
    }
    hidden: int = 1024
    max_clips: int = 300
    unit: int = 128
    """Number of columns to which clips are mapped before ten of a window are joined; 0 for no map, as in the paper,
    whose two layers of 80,000 columns have most of its 168 million weights."""
    seen: int = 10
    """Number of clips of a window, and of the whole video, that are observed."""
    moves: int = 20
    """Number of moves of an episode."""
    turn: int = 200
    """Number of training steps after which leaf and root policy alternate, starting with the leaf."""
    discount: float = 0.4
    entropy: float = 0.1
    """Weight of the policies' entropy, which encourages exploration."""
    closer: str = "right"
    """Whether a disjoint window that comes closer is ``right``, or ``wrong`` as in the public code."""
    places: str = "even"
    """Which clips of a window are observed: ``even`` places, or ``official``, which differs for windows of 7 and 8."""
    last_clip: bool = True
    """Include the last clip in a window's time; in the public code, the window ends where it begins."""
    detached: bool = True
    """Train values by the rewards alone; with False, also by the policy's loss and the final value of an episode, as in
    the public code."""
    sentence: str = "mean"
    """A query is the ``mean`` of its words, or the last state of an ``lstm`` (skip-thought vectors in the paper)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "seen", "moves", "turn")
        at_least(self, 0, "unit", "discount", "entropy")
        one_of(self, "closer", "right", "wrong")
        one_of(self, "places", "even", "official")
        one_of(self, "sentence", *SENTENCE_ENCODERS)


@dataclass(frozen=True)
class PolicyAnswer:
    """The output of one step: logits (n, 5) and (n, 5, 4), values (n,) and (n, 5), and the logit of the IoU (n,)."""

    root: Tensor
    leaf: Tensor
    root_value: Tensor
    leaf_value: Tensor
    guess: Tensor


class TspPrl(CorpusModel):
    """TSP-PRL: a tree of policies over moves of a window."""

    retrieves: ClassVar[bool] = False
    rate_groups: ClassVar[tuple[str, ...]] = ("root", "leaf")
    config: TspPrlConfig

    def __init__(self, config: TspPrlConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden, branches = config.hidden, len(BRANCHES)
        self.sentence = Sentence(config.sentence, dims.query, hidden)
        self.clips = JointClips(config, dims, config.unit)
        unit = self.clips.columns
        self.whole, self.local = (nn.Linear(config.seen * unit, hidden) for _ in range(2))
        self.place = nn.Linear(2, hidden)
        self.join = nn.Linear(3 * hidden, hidden)
        self.memory = nn.GRUCell(hidden, hidden)
        self.root = nn.ModuleDict({"policy": nn.Linear(hidden, branches), "value": nn.Linear(hidden, 1)})
        most = max(BRANCHES)
        self.leaf = nn.ModuleDict({"policy": nn.Linear(hidden, branches * most), "value": nn.Linear(hidden, branches)})
        self.guess = nn.Sequential(
            nn.Linear(hidden, hidden // 4), nn.ReLU(), nn.Linear(hidden // 4, hidden // 8), nn.ReLU(),
            nn.Linear(hidden // 8, 1),
        )  # fmt: skip
        there = torch.tensor([[i < count for i in range(most)] for count in BRANCHES])
        self.allowed = nn.Buffer(there, persistent=False)
        place = torch.arange(1, config.seen + 1)
        places = torch.stack([place * n // (config.seen + 1) for n in range(config.max_clips + 1)])
        if config.places == "official" and config.seen == 10:
            for n, uneven in UNEVEN_PLACES.items():
                places[n : n + 1] = torch.tensor(uneven)
        self.places = nn.Buffer(places, persistent=False)

    @property
    def pair_numbers(self) -> int:
        return 4 * self.config.hidden

    def phase_at(self, step: int, epoch: int) -> Phase:
        """Leaf and root policy are trained in turn, starting with the leaf; the head of the other is frozen."""
        if step // self.config.turn % 2:
            return Phase("root", {"leaf": 0.0})
        return Phase("leaf", {"root": 0.0})

    def encode_words(self, words: Words) -> Encodings:
        return {"query": self.sentence(words)}

    def encode_clips(self, clips: Clips) -> Encodings:
        return {"clips": self.clips(clips) * clips.mask[..., None], "mask": clips.mask}

    def observe(self, clips: Tensor, window: Tensor) -> Tensor:
        """(n, seen · unit): evenly spaced clips of windows (n, 2; first and last clip, both included), side by side."""
        length = window[:, 1] - window[:, 0] + 1
        index = window[:, :1] + self.places[length.clamp(max=self.config.max_clips)]
        return clips.gather(1, index[..., None].expand(-1, -1, clips.shape[2])).flatten(1)

    def decide(
        self, query: Tensor, clips: Tensor, count: Tensor, window: Tensor, state: Tensor
    ) -> tuple[PolicyAnswer, Tensor]:
        """The network's output for a window, and the recurrent state after it."""
        every = torch.stack([torch.zeros_like(count), count - 1], 1)
        share = window.to(query.dtype) / (count - 1).clamp(min=1)[:, None]
        seen = self.whole(self.observe(clips, every)), self.local(self.observe(clips, window)), self.place(share)
        gate = query.sigmoid()
        joined = torch.cat([F.relu(F.normalize(x, dim=1)) * gate for x in seen], 1)
        looked = F.relu(self.join(joined))
        state = self.memory(looked, state)
        leaf = self.leaf["policy"](state).view(len(state), len(BRANCHES), -1).masked_fill(~self.allowed, -torch.inf)
        found = PolicyAnswer(
            self.root["policy"](state), leaf, self.root["value"](state)[:, 0], self.leaf["value"](state),
            self.guess(looked)[:, 0],
        )  # fmt: skip
        return found, state

    def moments(self, queries: Encodings, videos: Encodings) -> Predicted:
        """The windows visited by the best move at every step, scored by the logarithm of their predicted IoU."""
        clips, query = videos["clips"], queries["query"]
        count = videos["mask"].sum(1)
        window, state = first_window(count), torch.zeros_like(query)
        ended = torch.zeros(len(query), dtype=torch.bool, device=query.device)
        visited, scores = [], []
        for _ in range(self.config.moves):
            found, state = self.decide(query, clips, count, window, state)
            visited.append(window)
            scores.append(F.logsigmoid(found.guess).masked_fill(ended, -torch.inf))
            root = found.root.argmax(1)
            leaf = found.leaf[torch.arange(len(root), device=root.device), root].argmax(1)
            moved, bad = move_window(window, root, leaf, count)
            ended = ended | bad
            window = torch.where(ended[:, None], window, moved)
        places = torch.stack(visited, 1) / count[:, None, None]
        return places[..., 0], places[..., 1] + int(self.config.last_clip) / count[:, None], torch.stack(scores, 1)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Actor-critic over an episode: the trained policy samples moves, and the other takes its best move."""
        pairs, config = batch.pairs, self.config
        assert pairs.times is not None, "rewards are overlaps in time"
        videos = take_rows(self.encode_clips(batch.clips), pairs.video)
        query, clips = self.encode_words(batch.words)["query"][pairs.query], videos["clips"]
        count, row = videos["mask"].sum(1), torch.arange(len(query), device=query.device)
        inside = int(config.last_clip)
        truth = pairs.times * (count - 1 + inside).clamp(min=1)[:, None]
        rooted = self.phase.name == "root"
        window, state = first_window(count), torch.zeros_like(query)
        running = torch.ones(len(query), device=query.device)
        parts: dict[str, list[Tensor]] = {
            n: [] for n in ("chance", "entropy", "value", "reward", "counted", "guess", "near")
        }
        for _ in range(config.moves):
            found, state = self.decide(query, clips, count, window, state)
            greedy = found.leaf.argmax(2)
            root = draw_action(found.root, rng) if rooted else found.root.argmax(1)
            leaf = greedy[row, root] if rooted else draw_action(found.leaf[row, root], rng)
            policy = (found.root if rooted else found.leaf[row, root]).log_softmax(1)
            value = found.root_value if rooted else found.leaf_value[row, root]
            before = window_overlap(window, truth, inside)
            moved, bad = move_window(window, root, leaf, count)
            after = window_overlap(moved, truth, inside)
            if rooted:
                tried = [
                    move_window(window, torch.full_like(root, b), greedy[:, b], count)[0] for b in range(len(BRANCHES))
                ]
                best = torch.stack([window_overlap(w, truth, inside) for w in tried], 1).amax(1)
                reward = root_reward(before, after, best)
            else:
                reward = leaf_reward(before, after, spare=config.closer == "right")
            real = policy.exp() > 0
            parts["entropy"].append(-(policy.exp() * policy.masked_fill(~real, 0)).sum(1))
            parts["chance"].append(policy.gather(1, (root if rooted else leaf)[:, None])[:, 0])
            for name, part in (("value", value), ("reward", reward), ("counted", running)):
                parts[name].append(part)
            error = F.binary_cross_entropy_with_logits(found.guess, before.clamp(0, 1), reduction="none")
            parts["guess"].append(error * (before > 0))
            parts["near"].append((before > 0).to(error))
            running = running * ~bad
            window = torch.where(running[:, None] > 0, moved, window)
        whole = {name: torch.stack(values, 1) for name, values in parts.items()}
        value = whole["value"].detach() if config.detached else whole["value"]
        ahead = discounted_returns(whole["reward"], value, whole["counted"], config.discount) - whole["value"]
        total = whole["counted"].sum().clamp(min=1)
        gained = ahead.detach() if config.detached else ahead
        acted = -whole["chance"] * gained - config.entropy * whole["entropy"]
        return {
            "policy": (acted * whole["counted"]).sum() / total,
            "value": (ahead.square() * whole["counted"]).sum() / total,
            "guess": (whole["guess"] * whole["counted"]).sum() / (whole["near"] * whole["counted"]).sum().clamp(min=1),
        }


def draw_action(logits: Tensor, rng: torch.Generator) -> Tensor:
    """(n,): an action of each row, drawn by its probability."""
    lots = torch.rand(logits.shape, generator=rng, device=rng.device).to(logits.device)
    return (logits.detach() - (-lots.clamp(1e-12, 1 - 1e-7).log()).log()).argmax(1)


register("tsp_prl", TspPrlConfig, TspPrl, "TSP-PRL: a tree of policies moves and scales a window, step by step")
