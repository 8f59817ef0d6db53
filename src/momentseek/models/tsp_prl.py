"""TSP-PRL: a learnt policy moves and scales a window step by step; a third head guesses which window was best.

A root policy chooses the kind of move, a leaf policy the move itself, and the two are trained in turns by actor-critic
(Wu et al., AAAI 2020). The window begins as the middle half of the video. All moves, rewards and observations of a
batch are computed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.models.batch import Batch, Clips, Encodings, Words, take_rows
from momentseek.models.checks import at_least, one_of
from momentseek.models.layers.joint_clips import JointClips
from momentseek.models.layers.sentence import SENTENCE_ENCODERS, Sentence
from momentseek.models.layers.window_moves import BRANCHES, first_window, move_window, window_overlap
from momentseek.models.losses.actor_critic import discounted_returns, leaf_reward, root_reward
from momentseek.models.model import CorpusModel, Dims, ModelConfig, Predicted
from momentseek.models.pairwise import match_by_best_span
from momentseek.models.phases import Phase
from momentseek.models.registry import register


@dataclass(frozen=True, kw_only=True)
class TspPrlConfig(ModelConfig):
    """TSP-PRL's settings; a clip is a unit of 16 frames."""

    hidden: int = 1024
    max_clips: int = 300
    modalities: str = "video"
    alpha: float = 0.0
    videos: int = 5
    dropout: float = 0.0
    unit: int = 128
    """Columns that a clip is mapped to before ten of a window are put side by side (not in the paper, whose two layers
    of 80,000 columns have most of its 168 million weights)."""
    seen: int = 10
    """Clips of a window, and of the whole video, that are looked at."""
    moves: int = 20
    """Moves of an episode."""
    turn: int = 200
    """Training steps after which leaf and root policy take turns; leaves begin."""
    discount: float = 0.4
    entropy: float = 0.1
    """Weight of the policies' entropy, so that they go on trying."""
    closer: str = "right"
    """A disjoint window that comes closer is ``right``, or ``wrong`` as in the public code."""
    sentence: str = "mean"
    """A query is the ``mean`` of its words, or the last state of an ``lstm`` (skip-thought vectors in the paper)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "unit", "seen", "moves", "turn")
        at_least(self, 0, "discount", "entropy")
        one_of(self, "closer", "right", "wrong")
        one_of(self, "sentence", *SENTENCE_ENCODERS)


@dataclass(frozen=True)
class PolicyAnswer:
    """What the network says of one step: (n, 5) and (n, 5, 4) logits, values (n,) and (n, 5), and the guess (n,)."""

    root: Tensor
    leaf: Tensor
    root_value: Tensor
    leaf_value: Tensor
    guess: Tensor


class TspPrl(CorpusModel):
    """A tree of policies over moves of a window."""

    retrieves: ClassVar[bool] = False
    rate_groups: ClassVar[tuple[str, ...]] = ("root", "leaf")
    config: TspPrlConfig

    def __init__(self, config: TspPrlConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        hidden, branches = config.hidden, len(BRANCHES)
        self.sentence = Sentence(config.sentence, dims.query, hidden)
        self.clips = JointClips(config, dims, config.unit)
        self.whole, self.local = (nn.Linear(config.seen * config.unit, hidden) for _ in range(2))
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
        self.allowed: Tensor
        there = torch.tensor([[i < count for i in range(most)] for count in BRANCHES])
        self.register_buffer("allowed", there, persistent=False)

    @property
    def pair_numbers(self) -> int:
        return 4 * self.config.hidden

    def phase_at(self, step: int, epoch: int) -> Phase:
        """Leaves are trained first, then the root, and so on; the other's head rests."""
        if step // self.config.turn % 2:
            return Phase("root", {"leaf": 0.0})
        return Phase("leaf", {"root": 0.0})

    def encode_words(self, words: Words) -> Encodings:
        return {"query": self.sentence(words)}

    def encode_clips(self, clips: Clips) -> Encodings:
        return {"clips": self.clips(clips) * clips.mask[..., None], "mask": clips.mask}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        """The best window's guess, pair by pair; costly, for small sets."""
        return match_by_best_span(self, queries, videos)

    def observe(self, clips: Tensor, window: Tensor) -> Tensor:
        """(n, seen · unit): clips at even places of windows (n, 2), whole clips and both included, side by side."""
        length = window[:, 1:] - window[:, :1] + 1
        place = torch.arange(1, self.config.seen + 1, device=clips.device)
        index = window[:, :1] + (place * length // (self.config.seen + 1)).clamp(max=clips.shape[1] - 1)
        return clips.gather(1, index[..., None].expand(-1, -1, clips.shape[2])).flatten(1)

    def decide(
        self, query: Tensor, clips: Tensor, count: Tensor, window: Tensor, state: Tensor
    ) -> tuple[PolicyAnswer, Tensor]:
        """What to do with a window, and the memory after it."""
        every = torch.stack([torch.zeros_like(count), count - 1], 1)
        share = window / (count - 1).clamp(min=1)[:, None]
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
        """The windows visited with the best move at every step, each with the logarithm of its guess."""
        clips, query = videos["clips"], queries["query"]
        count = videos["mask"].sum(1)
        window, state = first_window(count), torch.zeros_like(query)
        ended = torch.zeros(len(query), dtype=torch.bool, device=query.device)
        visited, scores = [], []
        for _ in range(self.config.moves + 1):
            found, state = self.decide(query, clips, count, window, state)
            visited.append(window)
            scores.append(F.logsigmoid(found.guess).masked_fill(ended, -torch.inf))
            root = found.root.argmax(1)
            leaf = found.leaf[torch.arange(len(root), device=root.device), root].argmax(1)
            moved, bad = move_window(window, root, leaf, count)
            ended = ended | bad
            window = torch.where(ended[:, None], window, moved)
        places = torch.stack(visited, 1) / count[:, None, None]
        return places[..., 0], places[..., 1] + 1 / count[:, None], torch.stack(scores, 1)

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        """Actor-critic over an episode: the policy whose turn it is tries moves, and the other does its best."""
        pairs, config = batch.pairs, self.config
        assert pairs.times is not None, "rewards are overlaps in time"
        videos = take_rows(self.encode_clips(batch.clips), pairs.video)
        query, clips = self.encode_words(batch.words)["query"][pairs.query], videos["clips"]
        count, row = videos["mask"].sum(1), torch.arange(len(query), device=query.device)
        truth = pairs.times * count[:, None]
        rooted = self.phase.name == "root"
        window, state = first_window(count), torch.zeros_like(query)
        running = torch.ones(len(query), device=query.device)
        parts: dict[str, list[Tensor]] = {n: [] for n in ("chance", "entropy", "value", "reward", "counted", "guess")}
        for _ in range(config.moves):
            found, state = self.decide(query, clips, count, window, state)
            greedy = found.leaf.argmax(2)
            root = draw_action(found.root, rng) if rooted else found.root.argmax(1)
            leaf = greedy[row, root] if rooted else draw_action(found.leaf[row, root], rng)
            policy = (found.root if rooted else found.leaf[row, root]).log_softmax(1)
            value = found.root_value if rooted else found.leaf_value[row, root]
            before = window_overlap(window, truth)
            moved, bad = move_window(window, root, leaf, count)
            after = window_overlap(moved, truth)
            if rooted:
                tried = [
                    move_window(window, torch.full_like(root, b), greedy[:, b], count)[0] for b in range(len(BRANCHES))
                ]
                reward = root_reward(before, after, torch.stack([window_overlap(w, truth) for w in tried], 1).amax(1))
            else:
                reward = leaf_reward(before, after, spare=config.closer == "right")
            real = policy.exp() > 0
            parts["entropy"].append(-(policy.exp() * policy.masked_fill(~real, 0)).sum(1))
            parts["chance"].append(policy.gather(1, (root if rooted else leaf)[:, None])[:, 0])
            for name, part in (("value", value), ("reward", reward), ("counted", running)):
                parts[name].append(part)
            error = F.binary_cross_entropy_with_logits(found.guess, before.clamp(0, 1), reduction="none")
            parts["guess"].append(error * (before > 0))
            running = running * ~bad
            window = torch.where(running[:, None] > 0, moved, window)
        whole = {name: torch.stack(values, 1) for name, values in parts.items()}
        returns = discounted_returns(whole["reward"], whole["value"].detach(), whole["counted"], config.discount)
        ahead = returns - whole["value"]
        total = whole["counted"].sum().clamp(min=1)
        acted = -whole["chance"] * ahead.detach() - config.entropy * whole["entropy"]
        return {
            "policy": (acted * whole["counted"]).sum() / total,
            "value": (ahead.square() * whole["counted"]).sum() / total,
            "guess": (whole["guess"] * whole["counted"]).sum() / total,
        }


def draw_action(logits: Tensor, rng: torch.Generator) -> Tensor:
    """(n,): an action of each row, drawn by its probability."""
    lots = torch.rand(logits.shape, generator=rng, device=rng.device).to(logits.device)
    return (logits.detach() - (-lots.clamp(1e-12, 1 - 1e-7).log()).log()).argmax(1)


register("tsp_prl", TspPrlConfig, TspPrl, "TSP-PRL: a tree of policies moves and scales a window, step by step")
