"""MDD: 2D-TAN that relies less on where moments usually lie (debiased grounding, section 4; no public code exists).

It adds three parts: a tree of the query's verbs and nouns gates its vector (eq. 3–7), a layer reconstructs each
moment's position from its features to separate position from content (eq. 8), and attention mixes in dictionaries of
confounders so that the score does not depend on them alone (eq. 9–12).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, tee
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from momentseek.core.errors import MomentseekError
from momentseek.core.language import NOUN, VERB, Roles, load_parser, verb_bases
from momentseek.models.batch import BatchPairs, Encodings, Words
from momentseek.models.features.data import Dims
from momentseek.models.layers.moment_map import grid_2d, positions_2d
from momentseek.models.model import at_least, one_of
from momentseek.models.registry import register
from momentseek.models.zoo.tan2d import Tan2d, Tan2dConfig

Floats = NDArray[np.float32]
QueryRows = tuple[str, Floats]
"""A query's text and the features of its words."""
QUERIES_PER_PARSE = 1024
CONFOUNDERS = {"L": "locations", "A": "actions", "U": "unobserved"}
NO_CONFOUNDERS = "none"


def frequent_verbs(queries: Iterable[QueryRows], count: int, parse: str = "auto") -> tuple[list[str], Floats]:
    """Base forms of the ``count`` most frequent verbs and their mean features (verbs, dim), the most frequent first.

    Ties are in alphabetical order. Texts whose words do not match their feature rows are skipped.

    >>> rows = np.eye(3, dtype=np.float32)
    >>> names, means = frequent_verbs([("she opens doors", rows), ("he opened boxes", rows), ("they run off", rows)], 2)
    >>> names, means.tolist()
    (['open', 'run'], [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    """
    sums: dict[str, NDArray[Any]] = {}
    seen: dict[str, int] = {}
    width = 0
    for roles, rows in _parse_queries(queries, parse):
        width = rows.shape[1]
        role, _ = roles.fit_to_features(len(rows))
        bases = verb_bases(list(roles.words))
        for place, part in enumerate(role):
            if part == VERB:
                verb = bases[place] or roles.words[place]
                sums[verb] = sums.get(verb, 0.0) + rows[place].astype(np.float64)
                seen[verb] = seen.get(verb, 0) + 1
    names = sorted(seen, key=lambda verb: (-seen[verb], verb))[:count]
    means = np.array([sums[verb] / seen[verb] for verb in names], np.float32).reshape(len(names), width)
    return names, means


def _parse_queries(queries: Iterable[QueryRows], parse: str) -> Iterator[tuple[Roles, Floats]]:
    several, parsing = iter(queries), load_parser(parse)
    while part := list(islice(several, QUERIES_PER_PARSE)):
        yield from zip(parsing([text for text, _ in part]), (rows for _, rows in part), strict=True)


class RoleTree(nn.Module):
    """The attention of the three-layer tree; both levels share its three matrices, as in the paper."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.top = nn.Linear(hidden, hidden, bias=False)
        self.down = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(2 * hidden, 1, bias=False)

    def attention(self, above: Tensor, below: Tensor) -> Tensor:
        """(queries, words): γ = W tanh(W_top above ‖ W_down below) (eq. 3, 5)."""
        joint = torch.cat([self.top(above)[:, None].expand_as(below), self.down(below)], dim=2)
        return self.score(torch.tanh(joint))[..., 0]

    def forward(self, sentence: Tensor, states: Tensor, roles: Tensor, phrase: Tensor) -> Tensor:
        """(queries, hidden), from the sentence (queries, hidden) and its words' states (queries, words, hidden)."""
        verb, noun = roles == VERB, roles == NOUN
        of_verbs = self.attention(sentence, states)
        verbs = torch.einsum("qn,qnd->qd", _softmax(of_verbs, verb), states)  # eq. 4
        scores = torch.where(verb, of_verbs, self.attention(verbs, states))
        number = torch.arange(phrase.shape[1], device=phrase.device)[:, None]  # at most one phrase per word
        own = (verb | noun)[:, None] & (phrase[:, None] == number)
        beta = _softmax(scores[:, None], own)
        gate = torch.einsum("qkn,qnd->qd", beta, states)  # eq. 6; missing phrases add nothing
        return sentence + sentence * gate / verb.sum(1, keepdim=True).clamp(min=1)  # eq. 7


def _softmax(scores: Tensor, where: Tensor) -> Tensor:
    """Softmax over the words where ``where`` is true; zero for a query with none."""
    return torch.softmax(scores.masked_fill(~where, -1e9), dim=-1) * where


def branches_of(combination: str) -> list[str]:
    """Split a combination of confounders into its parts, one for each branch of the network.

    >>> branches_of("L*U*U")
    ['L', 'U', 'U']
    """
    kinds = [k.strip().upper() for k in combination.split("*")]
    if unknown := [k for k in kinds if k not in CONFOUNDERS]:
        raise MomentseekError(f"there is no confounder {unknown[0]!r}; combine L, A and U with *, such as L*U*U")
    return kinds


class Branch(nn.Module):
    """One dictionary and the multi-head attention over it (eq. 12)."""

    def __init__(self, entries: Tensor, hidden: int, heads: int, learned: bool) -> None:
        super().__init__()
        self.heads = heads
        self.entries: Tensor
        if learned:
            self.entries = nn.Parameter(entries)
        else:
            self.register_buffer("entries", entries)
        self.keys = nn.Linear(entries.shape[1], hidden, bias=False)
        self.values = nn.Linear(entries.shape[1], hidden, bias=False)

    def forward(self, query: Tensor) -> Tensor:
        """(n, cells, hidden) → the expectation over the dictionary, of the same shape."""
        n, cells, hidden = query.shape
        shape = (1, -1, self.heads, hidden // self.heads)
        q, k, v = (
            x.reshape(shape).transpose(1, 2) for x in (query, self.keys(self.entries), self.values(self.entries))
        )
        # one long row, because all pairs share keys and values; the weights (pairs x entries) are never stored
        mixed = F.scaled_dot_product_attention(q, k, v)
        return mixed.transpose(1, 2).reshape(n, cells, hidden)


class Deconfounder(nn.Module):
    """The branches of a combination, which share one query."""

    def __init__(
        self, combination: str, hidden: int, heads: int, clips: int, word_dim: int, *, actions: int = 80,
        unobserved: int = 80,
    ) -> None:  # fmt: skip
        super().__init__()
        self.of_query, self.of_moment = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.joint = nn.Linear(hidden, hidden)
        self.kinds = branches_of(combination)
        made = {
            "L": lambda: Branch(grid_2d(clips, hidden), hidden, heads, learned=False),
            "A": lambda: Branch(torch.randn(actions, word_dim) / math.sqrt(word_dim), hidden, heads, learned=True),
            "U": lambda: Branch(torch.randn(unobserved, hidden), hidden, heads, learned=True),
        }
        self.branches = nn.ModuleList(made[kind]() for kind in self.kinds)

    def set_actions(self, vectors: Tensor) -> None:
        """Initialise the dictionaries of actions with word features (n, word_dim), most frequent verb first."""
        for kind, branch in zip(self.kinds, self.branches, strict=True):
            if kind == "A":
                entries = cast(Branch, branch).entries
                with torch.no_grad():
                    entries[: len(vectors)] = vectors[: len(entries)]

    def forward(self, query: Tensor, moments: Tensor) -> Tensor:
        """(n, cells, hidden): ``M + M_1 ⊙ M_2 ⊙ …`` for queries (n, hidden) and moments (n, cells, hidden) (eq. 11)."""
        asked = self.joint(self.of_query(query)[:, None] + self.of_moment(moments))
        product = torch.ones_like(moments)
        for branch in self.branches:
            product = product * branch(asked)
        return moments + product


@dataclass(frozen=True, kw_only=True)
class MddConfig(Tan2dConfig):
    """MDD's settings (section 5.1)."""

    map_layers: int = 4
    heads: int = 4
    confounders: str = "L*U*U"
    """Branches of the deconfounder (Table 4), or ``none`` (base + EM in Table 3)."""
    actions: int = 80
    unobserved: int = 80
    tree: bool = True
    """Gate the query by its semantic roles."""
    parse: str = "auto"
    """Parser of the roles: ``spacy``, ``rules``, or ``auto`` for spaCy if it is installed. Training stores the choice,
    and the trained model needs the same parser."""
    reconstruction: float = 1.0
    """Weight of the position's reconstruction (lambda); 0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "actions", "unobserved")
        at_least(self, 0, "reconstruction")
        one_of(self, "parse", "auto", "spacy", "rules")
        if self.confounders != NO_CONFOUNDERS:
            branches_of(self.confounders)


def has_known_roles(queries: Iterable[QueryRows], parse: str) -> bool:
    """Whether there is a query with a verb or noun whose row is known; reads no further than that one.

    >>> rows = torch.zeros(3, 2).numpy()
    >>> has_known_roles([("she opens doors", rows)], "rules"), has_known_roles([("open it", rows)], "rules")
    (True, False)
    """
    parsing = load_parser(parse)
    return any(any(parsing([text])[0].fit_to_features(len(rows))[0]) for text, rows in queries)


class Mdd(Tan2d):
    """MDD: 2D-TAN with a gated query, position reconstruction and a deconfounder."""

    config: MddConfig

    def __init__(self, config: MddConfig, dims: Dims) -> None:
        super().__init__(config, dims)
        self.tree = RoleTree(config.hidden) if config.tree else None
        self.position = nn.Linear(config.hidden, config.hidden) if config.reconstruction else None
        self.where = nn.Buffer(positions_2d(self.cells, config.hidden), persistent=False)
        self.deconfounder = None
        if config.confounders != NO_CONFOUNDERS:
            self.deconfounder = Deconfounder(
                config.confounders, config.hidden, config.heads, config.max_clips, dims.query,
                actions=config.actions, unobserved=config.unobserved,
            )  # fmt: skip

    def prepare(self, queries: Iterable[QueryRows]) -> None:
        """Refuse queries whose words are not known, and initialise the dictionary of actions, if there is one.

        It starts with the most frequent verbs (section 4.4).
        """
        looked, queries = tee(queries)
        if self.tree is not None and not has_known_roles(looked, self.config.parse):
            raise MomentseekError(
                "model: no training query's verbs and nouns are known, as its features have no row per word (rows for "
                "[CLS] and [SEP]?) or it has no text; encode the words alone, or set tree=false"
            )
        if self.deconfounder is not None and "A" in self.deconfounder.kinds:
            _, means = frequent_verbs(queries, self.config.actions, self.config.parse)
            self.deconfounder.set_actions(torch.from_numpy(means))

    def encode_words(self, words: Words) -> Encodings:
        """The query's vector, gated by its roles if they are known."""
        sentence, states = self.sentence(words)
        if self.tree is not None and words.roles is not None and words.phrase is not None:
            sentence = self.tree(sentence, states, words.roles, words.phrase)
        return {"query": self.text_in(sentence)}

    def logits(self, query: Tensor, candidates: Tensor) -> Tensor:
        """2D-TAN's logits, for moments with the confounders mixed in."""
        moments = candidates if self.deconfounder is None else self.deconfounder(query, candidates)
        return super().logits(query, moments)

    def reconstruction(self, candidates: Tensor) -> Tensor:
        """Root of the mean squared distance between tanh(FC(M)) and the positions' waves (eq. 8), over moments."""
        assert self.position is not None
        return (torch.tanh(self.position(candidates)) - self.where).square().mean(2).sqrt().mean()

    def terms(self, pairs: BatchPairs, query: Tensor, candidates: Tensor) -> dict[str, Tensor]:
        """The terms of the loss: 2D-TAN's, and the reconstruction of positions (eq. 13, 14)."""
        terms = super().terms(pairs, query, candidates)
        if self.position is not None:
            terms["position"] = self.config.reconstruction * self.reconstruction(candidates)
        return terms


register("mdd", MddConfig, Mdd, "MDD: 2D-TAN with a gated query, position reconstruction and a deconfounder", format=2)
