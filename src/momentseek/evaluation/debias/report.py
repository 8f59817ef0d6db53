"""The whole report, from runs and truths alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from momentseek.baselines.places import training_locations
from momentseek.errors import MomentseekError
from momentseek.evaluation.debias.gap import SplitGap, gaps
from momentseek.evaluation.debias.places import Placing, density, distance, distance_by_chance, lean, placing
from momentseek.evaluation.debias.systems import IOU_THRESHOLDS, RECALL_KINDS, System, score_seeds
from momentseek.evaluation.debias.verbs import Verb, by_verb
from momentseek.evaluation.result import Missing
from momentseek.evaluation.spread import SeedSpread, spread
from momentseek.moments import Judgements
from momentseek.moments.arrays import FloatArray

SPLITS = ("iid", "ood")


@dataclass(frozen=True, eq=False)
class Truths:
    """The usual test split and the one whose moments lie elsewhere, under the names their data have for them."""

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
    """What was found; splits are called ``iid`` and ``ood`` throughout, and ``names`` says what the data call them."""

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
    """How far iid and ood lie from train."""
    leans: Mapping[str, float]
    """How train, iid and ood lean themselves, to hold the systems' against (``densities.lean``)."""
    by_chance: Mapping[str, float]
    """How far as many moments drawn from a split's own would lie from it."""
    verbs: tuple[Verb, ...] = ()
    note: str = ""
    """What a reader must know of the data, such as that they are simulated."""

    @property
    def reference(self) -> str:
        """The system that the others are held against."""
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
    """Hold systems against each other on both splits; the first is the one that the others are compared with.

    Without ``train`` nothing is said of where training moments lie.

    >>> at = dict(durations={"v": 100.0})
    >>> iid, ood = (Judgements.from_groups(["q"], [1], ["v"], [s], [s + 40], **at) for s in (0, 50))
    >>> from momentseek.moments import Run
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
        raise MomentseekError("a view by verb needs the training set; give it, or leave out `verbs`")
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
