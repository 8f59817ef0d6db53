"""Run all requested diagnoses of some runs and their truths, and explain those that are not possible."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from html import escape
from typing import Any, TypeVar

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.registry import did_you_mean
from momentseek.core.reports import to_plain
from momentseek.measuring.diagnose import annotators as people
from momentseek.measuring.diagnose import axioms, label_noise, ties
from momentseek.measuring.diagnose.annotators import AnnotatorReport, annotator_text, by_annotator
from momentseek.measuring.diagnose.axioms import AxiomReport, axiom_text, check_axioms
from momentseek.measuring.diagnose.label_noise import DEFAULT_GAMMAS, NoiseReport, noise_text
from momentseek.measuring.diagnose.location_bias import LocationReport, Side, location_bias, location_text, sides
from momentseek.measuring.diagnose.performance import PerformanceReport, measure_performance, performance_text
from momentseek.measuring.diagnose.ties import TieReport, count_ties, tie_text
from momentseek.measuring.evaluate import check_queries, evaluate
from momentseek.measuring.measures import PROTOCOLS, Alignment, Measure, parse_all
from momentseek.measuring.result import Evaluation, Missing

PARTS = ("axioms", "ties", "noise", "location", "performance")
PERFORMANCE_MEASURES = ("AxIoU@10",)
NOT_ASKED_FOR = "not asked for"
NO_REANNOTATIONS = "no re-annotations given"
T = TypeVar("T")
Patience = Callable[[str], AbstractContextManager[object]]
"""Called with a description of each part, to show progress while the part runs."""


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The result of a diagnosis, part by part; a part that was not run is None, and ``reasons`` says why.

    Ties, noise and annotators have one report per truth. ``as_text()`` renders everything as text.
    """

    protocol: str
    axioms: AxiomReport | None
    ties: tuple[TieReport, ...] | None
    noise: tuple[NoiseReport, ...] | None
    annotators: tuple[AnnotatorReport, ...] | None
    location: LocationReport | None
    performance: tuple[PerformanceReport, ...] | None
    reasons: Mapping[str, str]

    def __repr__(self) -> str:
        there = [name for name in (*PARTS, "annotators") if getattr(self, name) is not None]
        return f"<Diagnosis under protocol {self.protocol}: {', '.join(there) or 'nothing'}; print its as_text()>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.as_text())}</pre>"

    def as_text(self) -> str:
        """Render all parts that were run, and the reasons why others were not."""
        blocks = [f"Protocol {self.protocol} ({PROTOCOLS[self.protocol].about}); values from 0 to 1."]
        blocks += [axiom_text(self.axioms)] if self.axioms else []
        blocks += [tie_text(t) for t in self.ties or ()]
        blocks += [noise_text(n) for n in self.noise or ()]
        blocks += [annotator_text(a) for a in self.annotators or ()]
        blocks += [location_text(self.location)] if self.location else []
        blocks += [performance_text(self.performance)] if self.performance else []
        blocks += [
            f"Not run: {name}, because {reason}."
            for name, reason in self.reasons.items()
            if not reason.startswith((NOT_ASKED_FOR, NO_REANNOTATIONS))
        ]
        text = "\n\n\n".join(blocks)
        # data keeps the names as requested, but the text says how IoUs are really compared
        return text.replace("[IoU>=", "[IoU>") if PROTOCOLS[self.protocol].options.get("strict") else text

    def as_json(self) -> dict[str, Any]:
        """Return one object with a key for each part and for annotators (null if not run), and reasons."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def diagnose(
    runs: Sequence[tuple[str, Run]],
    truths: Sequence[Judgements],
    measures: Sequence[str] = (),
    *,
    protocol: str = "paper",
    missing: Missing = "error",
    annotators: Sequence[Judgements] = (),
    gammas: Sequence[float] = (),
    only: Collection[str] = (),
    clip_noise: bool = False,
    seed: int = 0,
    patience: Patience = lambda _: nullcontext(),
) -> Diagnosis:
    """Check measures and data for bias, ties and label noise; ``only`` names the parts to run (default: all).

    A part that lacks something (a second run, durations) is left out with a reason. If ``only`` names it, that is an
    error.

    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    >>> found = diagnose([("ours", Run.from_rows([("q", "v", 0, 5, 1)]))], [truth], ["R@1[IoU>=0.5]"])
    >>> found.axioms.measures[0].verdicts[1].broken > 0, found.ties, found.reasons["ties"]
    (True, None, 'ties need at least two runs to compare')
    """
    known = (*PARTS, "annotators")
    for name in only:
        if name not in known:
            raise MomentseekError(f"there is no part {name!r} of a diagnosis; {did_you_mean(name, known)}")
    options = PROTOCOLS[protocol].options
    given = sides(runs, truths)
    for side in given:
        check_queries([Alignment(run, side.truth) for _, run in side.runs], side.truth, missing)
    reasons: dict[str, str] = {}

    def part(name: str, doing: str, compute: Callable[[], T]) -> T | None:
        if only and name not in only:
            reasons[name] = f"{NOT_ASKED_FOR} ({parameter('only')})"
            return None
        try:
            with patience(doing):
                return compute()
        except MomentseekError as e:
            if name in only:
                raise
            reasons[name] = str(e)
            return None

    def parse_measures(default: Sequence[str]) -> list[Measure]:
        return parse_all(measures or default, options)

    def axioms_of() -> AxiomReport:
        pairs = [(run, side.truth) for side in given for _, run in side.runs]
        durations = all(not np.isnan(t.durations[t.video]).any() for t in truths)
        wanted = parse_measures([*axioms.AXIOM_MEASURES, *(axioms.WITH_DURATIONS if durations else ())])
        return check_axioms(pairs, wanted, seed=seed)

    def evaluate_runs(side: Side, names: Sequence[str]) -> list[Evaluation]:
        return [evaluate(r, side.truth, names, protocol=protocol, missing=missing, label=n) for n, r in side.runs]

    def ties_of(side: Side) -> TieReport:
        return count_ties(evaluate_runs(side, measures or ties.TIE_MEASURES))

    def noise_of(side: Side) -> NoiseReport:
        wanted = parse_measures(label_noise.NOISE_MEASURES)
        levels = tuple(gammas) or DEFAULT_GAMMAS
        return label_noise.label_noise(
            side.runs, side.truth, wanted, levels, missing=missing, clip=clip_noise, seed=seed
        )

    def performance_of() -> tuple[PerformanceReport, ...]:
        found: list[PerformanceReport] = []
        for side in given:
            figures = evaluate_runs(side, measures or PERFORMANCE_MEASURES)
            for (_, run), evaluation in zip(side.runs, figures, strict=True):
                found += measure_performance(run, evaluation, side.truth, seed=seed)
        return tuple(found)

    result = Diagnosis(
        protocol=protocol,
        axioms=part("axioms", "searching for counter-examples to the axioms", axioms_of),
        ties=part("ties", "counting ties", lambda: tuple(map(ties_of, given))),
        noise=part("noise", "adding noise to the labels", lambda: tuple(map(noise_of, given))),
        annotators=None,
        location=part(
            "location",
            "comparing locations",
            lambda: location_bias(given, measures, protocol=protocol, missing=missing, seed=seed),
        ),
        performance=part("performance", "predicting performance by query", performance_of),
        reasons=reasons,
    )
    if not annotators:
        reasons["annotators"] = f"{NO_REANNOTATIONS} ({parameter('annotators')})"
        return result
    with patience("scoring by each annotator"):
        wanted = [m for m in parse_measures(people.ANNOTATOR_MEASURES) if m.NAME not in axioms.OTHER_KINDS]
        return replace(result, annotators=_by_annotators(given, annotators, wanted, missing))


def _by_annotators(
    sides: Sequence[Side], annotators: Sequence[Judgements], measures: Sequence[Measure], missing: Missing
) -> tuple[AnnotatorReport, ...]:
    """Return the reports of the truths that the annotations match; raise the first error if they match none."""
    found, failures = [], []
    for side in sides:
        try:
            found.append(by_annotator(side.runs, side.truth, annotators, measures, missing=missing))
        except MomentseekError as e:
            failures.append(e)
    if not found:
        raise failures[0]
    return tuple(found)
