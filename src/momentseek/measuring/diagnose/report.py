"""The parts of a diagnosis in words: each figure followed by what it means."""

from __future__ import annotations

from pathlib import Path

from momentseek.core.moments.moment import iou
from momentseek.core.reports import count, decimals, percentage, text_table
from momentseek.measuring.diagnose.annotators import AnnotatorReport
from momentseek.measuring.diagnose.axiom_cases import Case, ListedMoment
from momentseek.measuring.diagnose.axioms import AXIOMS, AxiomReport, AxiomVerdict, CounterExample
from momentseek.measuring.diagnose.label_noise import NoiseReport
from momentseek.measuring.diagnose.location_bias import POSSIBLE_CELLS, LocationReport
from momentseek.measuring.diagnose.ties import TieReport


def tie_text(report: TieReport) -> str:
    """The all-tied query ratios, and which measures learn least and most."""
    rows = [[t.measure, percentage(t.ratio), percentage(t.at_zero), percentage(t.at_one)] for t in report.measures]
    return "\n\n".join(
        [
            f"TIES: on how many queries do {all_runs(report)} score exactly the same?",
            f"{Path(report.truth).name}: {_queries(report.queries)}; runs {', '.join(report.runs)}.",
            text_table(["measure", "all tied", "all at 0", "all at 1"], rows),
            f"On such queries the measure says nothing about which run is better. {_learning(report)}",
        ]
    )


def all_runs(report: TieReport) -> str:
    """All runs together in words: "both runs", "all 3 runs"."""
    return "both runs" if len(report.runs) == 2 else f"all {len(report.runs)} runs"


def _learning(report: TieReport) -> str:
    most, least = (pick(report.measures, key=lambda t: t.ratio) for pick in (max, min))
    share = percentage(1 - most.ratio)
    if len(report.measures) == 1 or share == percentage(1 - least.ratio):
        who = most.measure if len(report.measures) == 1 else "Every measure"
        return f"{who} learns from\n{share} of the queries."
    return f"{most.measure} learns from\n{share} of the queries, {least.measure} from {percentage(1 - least.ratio)}."


def noise_text(report: NoiseReport) -> str:
    """Per run a table of every measure by γ; then the paper's example."""
    model = "kept within 0 and 1" if report.clip else "not clipped"
    blocks = [
        "LABEL NOISE: how far do the figures move if the true moments are unsure?",
        f"Model: every IoU in the right video is observed with Gaussian noise of standard deviation γ ({model}).\n"
        f"K = 1 is exact, the rest simulated with {report.draws} draws (seed {report.seed}); "
        f"{Path(report.truth).name}.",
    ]
    levels = [f"γ {g:g}" for g in report.gammas]
    for run in report.runs:
        rows = []
        for measure in dict.fromkeys(e.measure for e in run.errors):
            errors = [e for e in run.errors if e.measure == measure]
            moved = [f"{e.shift:+.4f} ± {e.spread:.4f}" for e in errors]
            rows.append([measure, decimals(errors[0].value), *moved, *(decimals(e.mse) for e in errors)])
        header = ["measure", "value", *levels, *(f"error, {level}" for level in levels)]
        blocks.append(f"{run.run}, {_queries(run.queries)}\n" + text_table(header, rows))
    blocks.append(
        "Under each γ: how far the mean moves in expectation (more queries do not cure it) ± the standard deviation\n"
        "that chance adds; error: mean squared error of a single query's value, bias² + variance. With K > 1 AxIoU is\n"
        "biased too: the best of several noisy IoUs is higher than the best of the true ones."
    )
    if report.example:
        rows = [
            [
                e.measure,
                f"{e.gamma:g}",
                f"{e.shift:+.4f}",
                decimals(e.bias_squared),
                decimals(e.variance),
                decimals(e.mse),
            ]
            for e in report.example
        ]
        blocks.append(
            "One query whose true IoU is 0.5 (the paper's example, Fig. 2"
            + ("; its noise is never clipped)\n" if report.clip else ")\n")
            + text_table(["measure", "γ", "bias", "bias²", "variance", "MSE"], rows)
            + "\nA threshold at the true IoU turns small noise into a coin toss: its error is of another order."
        )
    blocks += [f"Left out: {text}." for text in report.skipped]
    return "\n\n".join(blocks)


def annotator_text(report: AnnotatorReport) -> str:
    """Scores over annotators, how much they agree, and whether they order the runs alike."""
    rows = [
        [
            s.run,
            s.measure,
            decimals(s.original),
            decimals(s.mean),
            decimals(s.sd),
            f"{decimals(s.low)}–{decimals(s.high)}",
        ]
        for s in report.scores
    ]
    blocks = [
        "ANNOTATORS: what if somebody else had drawn the true moments?",
        f"{Path(report.truth).name}: {_queries(report.queries)} of it found among the {report.asked:,} re-annotated, "
        f"by {report.annotators} annotator{'s' * (report.annotators != 1)} each.",
        text_table(["run", "measure", "original", "mean", "sd", "range"], rows, align="llr"),
        "original: by the truth given; mean, sd and range: over the annotators, each in turn the truth.",
        f"Two annotators' moments overlap with a mean IoU of {decimals(report.agreement, 2)}; an annotator's with the "
        f"original one, {decimals(report.agreement_with_truth, 2)}.\nA prediction's IoU varies over annotators with a "
        f"standard deviation of {decimals(report.gamma, 2)}: the γ of the noise model, measured.",
    ]
    if report.stability:
        order = [[s.measure, decimals(s.tau, 2), percentage(s.winner_changes)] for s in report.stability]
        blocks.append(
            text_table(["measure", "Kendall τ", "other winner"], order)
            + "\nHow alike two annotators order the runs (1: the same), and how many pairs disagree on the best."
        )
    return "\n\n".join([*blocks, *(f"Note: {n}." for n in report.notes)])


def location_text(report: LocationReport) -> str:
    """R against dR, then densities, then the gap between two truths."""
    blocks = ["LOCATION BIAS: does the run find this moment, or the place where moments usually are?"]
    for side in report.sides:
        curves = [
            [run.run, kind, *(percentage(v, unit="") for v in values)]
            for run in side.runs
            for kind, values in (("R@1", run.curve.recall), ("dR@1", run.curve.discounted))
        ]
        header = ["run", "%", *(f"{t:g}" for t in side.runs[0].curve.thresholds)]
        places = [["true moments", "", "", decimals(side.true.effective_cells, 0), percentage(side.true.fullest)]]
        for run in side.runs:
            spread = decimals(run.predicted.effective_cells, 0), percentage(run.predicted.fullest)
            places.append([run.run, decimals(run.divergence, 3), decimals(run.by_chance, 3), *spread])
        blocks += [
            f"{Path(side.truth).name}: {_queries(side.queries)}, by IoU threshold\n"
            + text_table(header, curves, align="llr"),
            "dR discounts a hit by how far its boundaries are off. A wide gap at low thresholds means hits that are\n"
            "long or lucky rather than right.",
            text_table(["", "JS divergence", "by chance", "cells", "fullest"], places),
            "JS divergence: how far the places (start, end) of first predictions are from those of the true moments,\n"
            "0 to 1; by chance: what perfect predictions' scatter would give; cells: over how many of "
            f"{POSSIBLE_CELLS} places\nthey spread; fullest: the share in the most common one.",
        ]
        unplaced = {r.run: r.left_out for r in side.runs if r.left_out}
        blocks += [
            f"Note: {n:,} first prediction{'s' * (n != 1)} of {run} cannot be placed in a video."
            for run, n in unplaced.items()
        ]
    if report.gaps:
        rows = [
            [gap.system, name, decimals(gap.iid[name]), decimals(gap.ood[name]), f"{difference:+.4f}"]
            for gap in report.gaps
            for name, difference in gap.difference.items()
        ]
        blocks += [
            text_table(["run", "measure", "iid", "ood", "gap"], rows, align="llr"),
            "iid: the first truth, ood: the second. What a run loses where places are unusual it owed to usual ones.",
        ]
    return "\n\n".join(blocks)


def _queries(n: int) -> str:
    return count(n, "query", "queries")


def axiom_text(report: AxiomReport) -> str:
    """A table of verdicts, what they mean, and the smallest counter-examples."""
    rows = [[m.measure, f"1–{m.cutoff}" if m.cutoff > 1 else "1", *map(_verdict, m.verdicts)] for m in report.measures]
    blocks = [
        "AXIOMS: does the measure move when it should, and only then?",
        "\n".join(f"{axiom}  {meaning}." for axiom, meaning in AXIOMS.items()),
        text_table(["measure", "ranks", *AXIOMS], rows, align="lrll"),
        f"Each axiom was tried on {report.from_runs:,} lists of the runs with one moment made better and on "
        f"{report.at_random:,} random lists (seed {report.seed}).\n"
        "One counter-example proves an axiom broken; having found none proves nothing. Changes below the last rank a\n"
        "measure looks at cannot be seen, so MON-k is not asked for there.",
        *(_example(axiom, found) for (axiom, _), found in _group_examples(report).items()),
        *(f"Left out: {text}." for text in report.skipped),
    ]
    return "\n\n".join(blocks)


def _verdict(verdict: AxiomVerdict) -> str:
    if verdict.broken:
        return f"BROKEN in {verdict.broken:,} of {verdict.tried:,}"
    if verdict.note.startswith("holds trivially"):
        return "holds trivially (one rank)"
    return f"no counter-example in {verdict.tried:,}" if verdict.tried else f"not tried: {verdict.note}"


def _group_examples(report: AxiomReport) -> dict[tuple[str, str], list[tuple[str, CounterExample]]]:
    """Counter-examples that several measures share, together."""
    groups: dict[tuple[str, str], list[tuple[str, CounterExample]]] = {}
    for measure in report.measures:
        for verdict in measure.verdicts:
            if verdict.example:
                case = verdict.example.case
                key = (verdict.axiom, repr((case.truth, case.ranked, case.rank, case.changed)))
                groups.setdefault(key, []).append((measure.measure, verdict.example))
    return groups


def _example(axiom: str, found: list[tuple[str, CounterExample]]) -> str:
    example = found[0][1]
    case = example.case
    lines = [f"How {axiom} is broken (the smallest list found):"]
    several = len({s.video for s in (*case.truth, *case.ranked, case.changed)}) > 1
    true = ", ".join(_span(t, several) for t in case.truth)
    lines.append(f"  true moment{'s' * (len(case.truth) > 1)}: {true}")
    for title, spans in (("before", case.ranked), ("after", case.after)):
        lines.append(f"  {title}:")
        for rank, span in enumerate(spans, 1):
            mark = "  ← changed" if title == "after" and rank == case.rank else ""
            lines.append(f"    {rank}. {_span(span, several)}  IoU {_best(span, case):.2f}{mark}")
    lines += ["  " + line for line in text_table(*_values(found)).splitlines()]
    where = f"rank {case.rank} rises from IoU {example.r_before:.2f} to {example.r_after:.2f}"
    if axiom == "INV-k":
        lines.append(f"  The moment at {where}, no better than the best above it ({example.best_above:.2f}), yet pays.")
        if len(case.truth) > 1:
            lines.append("  It answers another of the true moments: INV-k presumes that one good answer is enough.")
    else:
        lines.append(f"  The moment at {where} and is now the best so far, yet the value does not rise.")
    lines.append(f"  First met in: {case.origin}.")
    return "\n".join(lines)


def _values(found: list[tuple[str, CounterExample]]) -> tuple[list[str], list[list[str]]]:
    return ["measure", "before", "after"], [[name, f"{e.before:.4g}", f"{e.after:.4g}"] for name, e in found]


def _best(span: ListedMoment, case: Case) -> float:
    same = [t for t in case.truth if t.video == span.video and t.relevance > 0]
    return max((float(iou(span.start, span.end, t.start, t.end)) for t in same), default=0.0)


def _span(span: ListedMoment, several: bool) -> str:
    return f"{span.start:g}–{span.end:g} s" + (f" of {span.video}" if several else "")
