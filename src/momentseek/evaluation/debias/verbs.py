"""The same verb by verb: a model may know where *open* usually lies (debiased grounding, Fig. 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from momentseek.baselines.places import training_locations
from momentseek.errors import MomentseekError
from momentseek.evaluation.debias.places import Placing, density, placing
from momentseek.evaluation.debias.systems import RECALL_MEASURES, SeedScores, System
from momentseek.language.verbs import verbs
from momentseek.moments import Judgements
from momentseek.moments.arrays import BoolArray, FloatArray

MIN_VERB_QUERIES = 20
"""A verb with fewer queries in train or ood has no density to speak of."""
VERB_MEASURE = "dR@1[IoU>=0.5]"


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb: how many queries have it, where its moments lie in train and ood, and each system's part."""

    verb: str
    train: int
    iid: int
    ood: int
    train_density: FloatArray
    ood_density: FloatArray
    systems: tuple[VerbScore, ...]


@dataclass(frozen=True, eq=False)
class VerbScore:
    """A system on one verb's queries: dR@1 at 0.5, NaN where there is none, and where it predicts on ood."""

    system: str
    iid: float
    ood: float
    placing: Placing | None


def by_verb(
    iid: Judgements,
    ood: Judgements,
    train: Judgements,
    systems: Sequence[System],
    iid_scores: Sequence[SeedScores],
    ood_scores: Sequence[SeedScores],
    most: int,
) -> tuple[Verb, ...]:
    """The verbs that ood has most often, of those that train also has often enough."""
    said = [_query_verbs(truth) for truth in (train, iid, ood)]
    counts = [Counter(verb for words in each for verb in words) for each in said]
    chosen = [v for v, n in counts[2].most_common() if n >= MIN_VERB_QUERIES and counts[0][v] >= MIN_VERB_QUERIES][
        :most
    ]
    at = RECALL_MEASURES.index(VERB_MEASURE)
    found = []
    for verb in chosen:
        having = [np.array([verb in words for words in each]) for each in said]
        grids = tuple(density(training_locations(_only(t, h))) for t, h in ((train, having[0]), (ood, having[2])))
        rows = []
        for system, one, two in zip(systems, iid_scores, ood_scores, strict=True):
            where = placing(
                system.name, "ood", [b for _, b in system.runs], ood, grids[0], grids[1], grids[1], having[2]
            )
            rows.append(
                VerbScore(system.name, _mean(one.values[having[1], at]), _mean(two.values[having[2], at]), where)
            )
        in_train, in_iid, in_ood = (int(h.sum()) for h in having)
        found.append(Verb(verb, in_train, in_iid, in_ood, grids[0], grids[1], tuple(rows)))
    return tuple(found)


def _query_verbs(truth: Judgements) -> list[set[str]]:
    if truth.queries is None:
        raise MomentseekError(f"{truth.source}: has no texts of its queries, so there are no verbs; leave out `verbs`")
    return [set(verbs(text)) for text in truth.queries]


def _only(truth: Judgements, some: BoolArray) -> Judgements:
    """The truth with the moments of some queries; the others stay, without relevance."""
    return replace(truth, relevance=np.where(some[truth.row_query], truth.relevance, 0).astype(truth.relevance.dtype))


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
