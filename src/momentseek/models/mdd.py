"""MDD: 2D-TAN that leans less on where moments usually lie (debiased grounding, section 4; no public code exists).

Three things are added: the query's vector is gated by a tree of its verbs and nouns (eq. 3–7), a layer must recover
each moment's position from its features so that position is told apart from content (eq. 8), and dictionaries of
confounders are mixed in so that the score does not depend on them alone (eq. 9–12).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import tee

import torch
from torch import Tensor, nn

from momentseek.errors import MomentseekError
from momentseek.language.roles import load_parser
from momentseek.models.actions import QueryRows, frequent_verbs
from momentseek.models.batch import BatchPairs, Encodings, Words
from momentseek.models.checks import at_least, one_of
from momentseek.models.layers.deconfounder import Deconfounder, branches_of
from momentseek.models.layers.positions_2d import positions_2d
from momentseek.models.layers.role_tree import RoleTree
from momentseek.models.model import Dims
from momentseek.models.registry import register
from momentseek.models.tan2d import BEFORE_STRIDE, Tan2d, Tan2dConfig

NO_CONFOUNDERS = "none"


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
    """What finds them: ``spacy``, ``rules``, or spaCy where it is installed (``auto``). Training settles which, and
    the trained model asks for the same."""
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
        self.where: Tensor
        self.register_buffer("where", positions_2d(self.cells, config.hidden), persistent=False)
        self.deconfounder = None
        if config.confounders != NO_CONFOUNDERS:
            self.deconfounder = Deconfounder(
                config.confounders, config.hidden, config.heads, config.max_clips, dims.query,
                actions=config.actions, unobserved=config.unobserved,
            )  # fmt: skip

    def prepare(self, queries: Iterable[QueryRows]) -> None:
        """Refuse to gate queries whose words cannot be told; begin the dictionary of actions, if there is one.

        It begins from the most frequent verbs (section 4.4).
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
        """The query's vector, gated by its roles where they are known."""
        sentence, states = self.sentence(words)
        if self.tree is not None and words.roles is not None and words.phrase is not None:
            sentence = self.tree(sentence, states, words.roles, words.phrase)
        return {"query": self.text_in(sentence)}

    def logits(self, query: Tensor, candidates: Tensor) -> Tensor:
        """2D-TAN's, on moments with the confounders mixed in."""
        moments = candidates if self.deconfounder is None else self.deconfounder(query, candidates)
        return super().logits(query, moments)

    def reconstruction(self, candidates: Tensor) -> Tensor:
        """Root of the mean squared distance between tanh(FC(M)) and the positions' waves (eq. 8), over moments."""
        assert self.position is not None
        return (torch.tanh(self.position(candidates)) - self.where).square().mean(2).sqrt().mean()

    def terms(self, pairs: BatchPairs, query: Tensor, candidates: Tensor) -> dict[str, Tensor]:
        """2D-TAN's, and the reconstruction of positions (eq. 13, 14)."""
        terms = super().terms(pairs, query, candidates)
        if self.position is not None:
            terms["position"] = self.config.reconstruction * self.reconstruction(candidates)
        return terms


register(
    "mdd",
    MddConfig,
    Mdd,
    "MDD: 2D-TAN with a gated query, position reconstruction and a deconfounder",
    format=2,
    former={1: BEFORE_STRIDE},
)
