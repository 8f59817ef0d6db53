"""The axioms' report in words, with each counter-example drawn out."""

from __future__ import annotations

from momentseek.evaluation.diagnose.axioms import AXIOMS, AxiomReport, AxiomVerdict, CounterExample
from momentseek.evaluation.diagnose.cases import Case, ListedMoment
from momentseek.moments import iou
from momentseek.tables import text_table


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
