"""Build the whole debiasing report from runs and truths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from momentseek.benchmarks.baselines import training_locations
from momentseek.benchmarks.debias.gaps import (
    Placing,
    SplitGap,
    density,
    distance,
    distance_by_chance,
    gaps,
    lean,
    placing,
)
from momentseek.benchmarks.debias.systems import (
    IOU_THRESHOLDS,
    RECALL_KINDS,
    RECALL_MEASURES,
    SeedScores,
    System,
    score_seeds,
)
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.language import verbs
from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.resampling import SeedSpread, spread
from momentseek.measuring.result import Missing

MIN_VERB_QUERIES = 20
"""Minimum number of queries with a verb, in train and in ood, for a meaningful density."""
VERB_MEASURE = "dR@1[IoU>=0.5]"


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb: its numbers of queries, the locations of its moments in train and ood, and each system's scores."""

    verb: str
    train: int
    iid: int
    ood: int
    train_density: FloatArray
    ood_density: FloatArray
    systems: tuple[VerbScore, ...]


@dataclass(frozen=True, eq=False)
class VerbScore:
    """A system on one verb's queries: dR@1 at 0.5 (NaN if there are none), and where it predicts on ood."""

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
    limit: int,
) -> tuple[Verb, ...]:
    """Return results for the most frequent verbs of ood that are also frequent enough in train."""
    said = [_query_verbs(truth) for truth in (train, iid, ood)]
    counts = [Counter(verb for words in each for verb in words) for each in said]
    chosen = [v for v, n in counts[2].most_common() if n >= MIN_VERB_QUERIES and counts[0][v] >= MIN_VERB_QUERIES][
        :limit
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
        raise MomentseekError(
            f"{truth.source}: has no texts of its queries, so there are no verbs; leave out {parameter('verbs')}"
        )
    return [set(verbs(text)) for text in truth.queries]


def _only(truth: Judgements, some: BoolArray) -> Judgements:
    """Return the truth with the moments of the other queries set to relevance 0."""
    return replace(truth, relevance=np.where(some[truth.row_query], truth.relevance, 0).astype(truth.relevance.dtype))


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


SPLITS = ("iid", "ood")


@dataclass(frozen=True, eq=False)
class Truths:
    """The usual test split (iid) and the one with other locations (ood), and their names in the data."""

    iid: Judgements
    ood: Judgements
    names: tuple[str, str] = SPLITS


@dataclass(frozen=True, slots=True)
class SystemCurve:
    """A system's dR@1 or R@1 by threshold on one split (Fig. 12), mean and sd over seeds."""

    system: str
    split: str
    kind: str
    values: tuple[SeedSpread, ...]
    thresholds: tuple[float, ...] = IOU_THRESHOLDS


@dataclass(frozen=True, eq=False)
class DebiasReport:
    """The results; splits are called ``iid`` and ``ood`` throughout, and ``names`` has their names in the data."""

    names: tuple[str, str]
    queries: Mapping[str, int]
    """train (if given), iid and ood."""
    systems: tuple[str, ...]
    blind: frozenset[str]
    gaps: tuple[SplitGap, ...]
    curves: tuple[SystemCurve, ...]
    placings: tuple[Placing, ...]
    truths: Mapping[str, FloatArray]
    """Densities of the true moments: train (if given), iid and ood."""
    apart: Mapping[str, float]
    """Distances of iid and ood from train."""
    leans: Mapping[str, float]
    """The leans of train, iid and ood themselves, for comparison with the systems' (``gaps.lean``)."""
    by_chance: Mapping[str, float]
    """Expected distance of resampled moments of a split from the split itself."""
    verbs: tuple[Verb, ...] = ()
    note: str = ""
    """What a reader must know about the data, such as that they are simulated."""

    @property
    def reference(self) -> str:
        """The system that the others are compared with."""
        return self.systems[0]


def debias_report(
    truths: Truths,
    systems: Sequence[System],
    train: Judgements | None = None,
    *,
    verbs: int = 0,
    missing: Missing = "error",
    seed: int = 0,
    note: str = "",
) -> DebiasReport:
    """Compare systems on both splits, all others with the first.

    Without ``train``, the report says nothing about the locations of training moments.

    >>> at = dict(durations={"v": 100.0})
    >>> iid, ood = (Judgements.from_groups(["q"], [1], ["v"], [s], [s + 40], **at) for s in (0, 50))
    >>> from momentseek import Run
    >>> same = Run.from_rows([("q", "v", 0, 40, 1.0)])
    >>> found = debias_report(Truths(iid, ood), [System("stubborn", ((same, same),))], train=iid)
    >>> found.gaps[0].gap.mean, round(found.placings[1].lean.mean, 2)
    (1.0, 1.0)
    """
    if not systems:
        raise MomentseekError("there is nothing to compare; name at least one system")
    if len({s.name for s in systems}) < len(systems):
        raise MomentseekError("two systems have the same name; give each its own")
    sides = {"iid": truths.iid, "ood": truths.ood}
    known = {**({"train": train} if train is not None else {}), **sides}
    located = {name: training_locations(truth) for name, truth in known.items()}
    grids = {name: density(places) for name, places in located.items()}
    scored = {
        split: [score_seeds([pair[i] for pair in s.runs], sides[split], missing) for s in systems]
        for i, split in enumerate(SPLITS)
    }
    curves, placings = [], []
    for number, system in enumerate(systems):
        for i, split in enumerate(SPLITS):
            means = scored[split][number].means
            for k, kind in enumerate(RECALL_KINDS):
                part = means[:, k * len(IOU_THRESHOLDS) : (k + 1) * len(IOU_THRESHOLDS)]
                curves.append(
                    SystemCurve(system.name, split, kind, tuple(spread(column) for column in part.T.tolist()))
                )
            found = placing(
                system.name,
                split,
                [r[i] for r in system.runs],
                sides[split],
                grids.get("train"),
                grids[split],
                grids["ood"],
            )
            if found is not None:
                placings.append(found)
    if verbs and train is None:
        raise MomentseekError(f"a view by verb needs the training set; give it, or leave out {parameter('verbs')}")
    return DebiasReport(
        names=truths.names,
        queries={name: len(truth) for name, truth in known.items()},
        systems=tuple(s.name for s in systems),
        blind=frozenset(s.name for s in systems if s.blind),
        gaps=gaps([s.name for s in systems], scored["iid"], scored["ood"], seed),
        curves=tuple(curves),
        placings=tuple(placings),
        truths=grids,
        apart={split: distance(grids["train"], grids[split]) for split in SPLITS} if train is not None else {},
        leans={name: lean(grid, grids["train"], grids["ood"]) for name, grid in grids.items()}
        if train is not None
        else {},
        by_chance={split: distance_by_chance(located[split], seed) for split in SPLITS},
        verbs=by_verb(truths.iid, truths.ood, train, systems, scored["iid"], scored["ood"], verbs)
        if verbs and train is not None
        else (),
        note=note,
    )
