"""A small corpus in memory, and a model in whole numbers: every sum is exact, so every order of adding agrees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from momentseek.core.moments.judgements import Judgements
from momentseek.models.batch import Batch, Clips, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.model import CorpusModel, ModelConfig

COLUMNS = 3


class Table:
    """Features in memory."""

    def __init__(self, rows: dict[str, Any]) -> None:
        self._rows = rows

    def read(self, name: str) -> Any:
        return self._rows[name]

    def rows(self, name: str) -> int:
        return len(self._rows[name])


@dataclass(frozen=True, eq=False)
class World:
    """Data and split in one: videos, queries, truth."""

    video: Table
    query: Table
    truth: Judgements
    corpus: tuple[str, ...]
    durations: dict[str, float]
    subtitle: Table | None = None
    clip_seconds: float = 1.5

    def rows(self, name: str) -> int:
        return self.video.rows(name)

    def split(self, name: str) -> World:
        assert name == "all"
        return self


def make_world(videos: int = 9, queries: int = 5, longest: int = 8, seed: int = 0, whole: bool = True) -> World:
    """Small whole numbers as features, so that there are ties, or any; durations end inside the last clip."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in rng.permutation(videos)]
    clips = {n: rng.integers(-2, 3, (rng.integers(1, longest + 1), COLUMNS)).astype(np.float32) for n in names}
    if not whole:
        clips = {n: rng.standard_normal(c.shape, dtype=np.float32) for n, c in clips.items()}
    words = {f"q{i}": rng.integers(-1, 2, (rng.integers(1, 5), COLUMNS)).astype(np.float32) for i in range(queries)}
    durations = {n: 1.5 * len(c) - 0.5 for n, c in clips.items()}
    rows = [(q, names[rng.integers(videos)], 0.0, 0.75, 1) for q in words for _ in range(2)]
    rows = list({(q, v): (q, v, s, e, r) for q, v, s, e, r in rows}.values())
    truth = Judgements.from_rows(rows)
    truth = replace(truth, queries=tuple(f"a door and {query}" for query in truth.query_ids))
    return World(Table(clips), Table(words), truth, tuple(names), durations)


class Whole(CorpusModel):
    """Queries are sums of words; a video matches by its best clip; a span scores by its ends and all inside.

    What it keeps of a video comes in every form there is: a row per clip, one row more than clips, a row per video.
    """

    def __init__(self, config: ModelConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.register_buffer("mix", torch.tensor([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]]))
        self.seen: list[int] = []
        """Numbers in the tensors that were scored, to see that blocks are small."""

    mix: Tensor

    def encode_words(self, words: Words) -> Encodings:
        return {"word": words.features * words.mask[..., None], "word_mask": words.mask}

    def encode_clips(self, clips: Clips) -> Encodings:
        assert clips.video is not None
        clip = (clips.video @ self.mix) * clips.mask[..., None]
        sums = torch.cat([torch.zeros_like(clip[:, :1]), clip.cumsum(1)], 1)
        return {"mask": clips.mask, "clip": clip, "sums": sums, "total": clip.sum(1), "count": clips.mask.sum(1)}

    def match(self, queries: Encodings, videos: Encodings) -> Tensor:
        q = queries["word"].sum(1)
        scores = torch.einsum("qd,vld->qvl", q, videos["clip"]).masked_fill(~videos["mask"], -torch.inf)
        self.seen.append(scores.numel())
        return scores.amax(-1) + q @ videos["total"].T / 4 - videos["count"]

    def spans(self, queries: Encodings, videos: Encodings) -> Tensor:
        q = queries["word"].sum(1)
        curve = torch.einsum("nd,nld->nl", q, videos["clip"]).masked_fill(~videos["mask"], -torch.inf)
        inside = torch.einsum("nd,nld->nl", q, videos["sums"])
        n, clips = curve.shape
        self.seen.append(videos["clip"].numel())
        grid = torch.full((n, clips, self.config.longest - self.config.shortest + 1), -torch.inf)
        for s in range(clips):
            e = torch.arange(clips)[s + self.config.shortest - 1 : s + self.config.longest]
            score = curve[:, [s]] + 2 * curve[:, e] + (inside[:, e + 1] - inside[:, [s]])
            grid[:, s, : len(e)] = torch.where(videos["mask"][:, e], score, -torch.inf)
        return grid

    def loss(self, batch: Batch, epoch: int, rng: torch.Generator) -> dict[str, Tensor]:
        raise NotImplementedError


def make_model(**settings: Any) -> Whole:
    """A model that neither normalises nor uses subtitles, unless told."""
    defaults = {"modalities": "video", "normalise": False, "max_clips": 10, "longest": 3, "alpha": 2.0, "videos": 4}
    return Whole(ModelConfig(**(defaults | settings)), Dims(COLUMNS, COLUMNS, None))


def by_loops(model: Whole, world: World, k: int) -> list[tuple[Any, ...]]:
    """What VCMR should find, from the formulas: all queries, all videos, all spans."""
    config, found = model.config, []
    mix = model.mix.numpy()
    for query in world.truth.query_ids:
        q = world.query.read(query)[: config.max_words].sum(0)
        scored = []
        for place, name in enumerate(world.corpus):
            clips = world.video.read(name)[: config.max_clips] @ mix
            scored.append((-(max(clips @ q) + clips.sum(0) @ q / 4 - len(clips)), place, name, clips))
        moments = []
        for rank, (negative, _, name, clips) in enumerate(sorted(scored, key=lambda row: row[:2])[: config.videos]):
            for a in range(len(clips)):
                for b in range(a, len(clips)):
                    if config.shortest <= b - a + 1 <= config.longest and 1.5 * b < world.durations[name]:
                        span = clips[a] @ q + 2 * (clips[b] @ q) + clips[a : b + 1].sum(0) @ q
                        end = min(1.5 * (b + 1), world.durations[name])
                        score = float(span) + config.alpha * -float(negative)
                        moments.append((-score, rank, a, b, name, 1.5 * a, end))
        best = [(query, name, start, end, -s) for s, _, _, _, name, start, end in sorted(moments)[:k]]
        found += sorted(best, key=lambda m: (-m[4], m[1], m[2], m[3]))
    return found


def rows_of(run: Any) -> list[tuple[Any, ...]]:
    """A run as (query, video, start, end, score)."""
    return [
        (run.query_ids[q], run.videos[v], s, e, x)
        for q, v, s, e, x in zip(run.row_query, run.video, run.start.tolist(), run.end.tolist(), run.score.tolist(),
                                 strict=True)
    ]  # fmt: skip


@dataclass(frozen=True)
class Small:
    """The helpers of this folder's tests."""

    world = staticmethod(make_world)
    model = staticmethod(make_model)
    by_loops = staticmethod(by_loops)
    rows = staticmethod(rows_of)
    table = Table


@pytest.fixture(scope="session")
def small() -> Small:
    """``small.world(...)``, ``small.model(...)``, ``small.by_loops(...)``, ``small.rows(run)``."""
    return Small()
