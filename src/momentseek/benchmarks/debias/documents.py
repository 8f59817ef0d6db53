"""Render a debiasing report as text, Markdown, JSON and CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from momentseek.benchmarks.debias.gaps import Change, SplitGap
from momentseek.benchmarks.debias.report import VERB_MEASURE, DebiasReport
from momentseek.benchmarks.debias.systems import GAP_MEASURES
from momentseek.core.reports import NO_VALUE, Table, count, csv_text, markdown_text, percentage, to_plain
from momentseek.measuring.resampling import SeedSpread

LEAN_MEANING = "the share of first predictions at locations that are more common in train than in ood"
TABLE_THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""IoU thresholds in report.md; thresholds.csv has all."""


def as_text(report: DebiasReport) -> str:
    """Render the summary for a terminal: dR@1 at 0.5 and 0.7, and how far predictions on ood lean towards train."""
    lines = [sizes(report), "", _summary(report).render("text")]
    if report.apart:
        lines += ["", f"lean: {LEAN_MEANING}", f"      ({_leans(report)})"]
    return "\n".join([*([f"NOTE: {report.note}", ""] if report.note else []), *lines])


def markdown(report: DebiasReport, figures: Sequence[str] = ()) -> str:
    """Render report.md; ``figures`` are paths of PNGs next to it."""
    parts = ["# Debiasing report"]
    if report.note:
        parts.append(f"> **{markdown_text(report.note)}**")
    parts += [sizes(report), *_gap_parts(report), *_change_parts(report), *_threshold_parts(report)]
    parts += [*_place_parts(report), *_verb_parts(report)]
    if figures:
        parts += ["## Figures", *(f"![{path}]({path})" for path in figures)]
    return "\n\n".join(parts) + "\n"


def sizes(report: DebiasReport) -> str:
    """Return the number of queries of each split."""
    called = dict(zip(("iid", "ood"), report.names, strict=True))
    return ", ".join(
        f"{name}{f' ({called[name]})' if called.get(name, name) != name else ''}: {count(n, 'query', 'queries')}"
        for name, n in report.queries.items()
    )


def percent(value: SeedSpread, digits: int = 2) -> str:
    """Format mean ± sd in percent.

    >>> percent(SeedSpread(0.1681, 0.0044, 30)), percent(SeedSpread(0.5, math.nan, 1))
    ('16.81 ± 0.44', '50.00')
    >>> percent(SeedSpread(math.nan, math.nan, 0))
    '–'
    """
    if math.isnan(value.mean):
        return NO_VALUE
    sd = "" if math.isnan(value.sd) else f" ± {100 * value.sd:.{digits}f}"
    return f"{100 * value.mean:.{digits}f}{sd}"


def change_words(change: Change | None) -> str:
    """Format a difference in points, with its interval.

    >>> change_words(Change(0.02, -0.01, 0.05))
    '+2.00 [-1.00, +5.00]'
    """
    if change is None or math.isnan(change.value):
        return NO_VALUE
    return f"{100 * change.value:+.2f} [{100 * change.low:+.2f}, {100 * change.high:+.2f}]"


def _summary(report: DebiasReport) -> Table:
    shown = ("dR@1[IoU>=0.5]", "dR@1[IoU>=0.7]")
    header = ["system", "seeds"]
    for measure in shown:
        header += [f"dR@1 {measure[-4:-1]} iid", "ood", "gap", "lost"]
    header += ["lean on ood"] if report.apart else []
    leans = {p.system: p.lean for p in report.placings if p.split == "ood"}
    rows = []
    for system in report.systems:
        found = {g.measure: g for g in report.gaps if g.system == system}
        row = [_system_name(report, system), str(_seeds(found[GAP_MEASURES[0]]))]
        for measure in shown:
            gap = found[measure]
            row += [percent(gap.iid), percent(gap.ood), percent(gap.gap), percentage(gap.relative, 0)]
        row += [_shares(leans.get(system))] if report.apart else []
        rows.append(row)
    return Table(header, rows)


def _gap_parts(report: DebiasReport) -> list[str]:
    header = ["system", "seeds", "measure", "iid", "ood", "gap", "95 % interval", "lost"]
    rows = []
    for gap in report.gaps:
        interval = gap.interval
        ends = NO_VALUE if math.isnan(interval.low) else f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"
        cells = [percent(gap.iid), percent(gap.ood), percent(gap.gap), ends, percentage(gap.relative, 0)]
        rows.append([_system_name(report, gap.system), str(_seeds(gap)), gap.measure, *cells])
    about = (
        "In percent; mean ± standard deviation over seeds. The gap is iid − ood, with a bootstrap interval over "
        "queries, those of one video drawn together; *lost* is the gap as a share of iid."
    )
    return ["## The gap between iid and ood", about, Table(header, rows, "lrlr").render("markdown")]


def _change_parts(report: DebiasReport) -> list[str]:
    others = [g for g in report.gaps if g.closed is not None and g.system not in report.blind]
    if not others:
        return []
    header = ["system", "measure", "gap closed", "gained on iid", "gained on ood"]
    rows = [
        [_system_name(report, g.system), g.measure, *map(change_words, (g.closed, g.iid_gain, g.ood_gain))]
        for g in others
    ]
    about = (
        f"Points against {markdown_text(report.reference)}, with 95 % bootstrap intervals over the same queries (they "
        "do not include the variance over seeds). A gap also closes when iid gets worse, so it only counts as progress "
        "if ood gains."
    )
    return [f"## Against {markdown_text(report.reference)}", about, Table(header, rows, "llr").render("markdown")]


def _threshold_parts(report: DebiasReport) -> list[str]:
    header = ["system", "split", "measure", *(f"{t:g}" for t in TABLE_THRESHOLDS)]
    rows = []
    for curve in report.curves:
        at = dict(zip(curve.thresholds, curve.values, strict=True))
        if not at[TABLE_THRESHOLDS[0]].count:
            continue
        means = [percentage(at[t].mean, unit="") for t in TABLE_THRESHOLDS]
        rows.append([_system_name(report, curve.system), curve.split, f"{curve.kind}@1", *means])
    about = (
        "In percent, by IoU threshold. The difference between R@1 and dR@1 is due to hits with inaccurate boundaries."
    )
    return ["## R against dR by threshold", about, Table(header, rows, "lllr").render("markdown")]


def _place_parts(report: DebiasReport) -> list[str]:
    header = ["first predictions of", "split", "from train", "from the split's truth", "lean"]
    rows = [
        [_system_name(report, p.system), p.split, _two(p.to_train), _two(p.to_truth), _shares(p.lean)]
        for p in report.placings
    ]
    about = (
        "Distances are total variation between smoothed densities over (start, end), as fractions of the video: 0 if "
        "equal, 1 if disjoint. As many moments drawn from a split's own are "
        + " and ".join(f"{value:.2f} ({split})" for split, value in report.by_chance.items())
        + " from it by chance."
    )
    if report.apart:
        about += (
            " True moments are "
            + " and ".join(f"{value:.2f} ({split})" for split, value in report.apart.items())
            + f" from those of train. *Lean* is {LEAN_MEANING} ({_leans(report)})."
        )
    return ["## Where systems predict", about, Table(header, rows, "llr").render("markdown")]


def _verb_parts(report: DebiasReport) -> list[str]:
    if not report.verbs:
        return []
    header = ["verb", "train / iid / ood queries", "system", "iid", "ood", "from train", "from ood's truth", "lean"]
    rows = []
    for verb in report.verbs:
        for each in verb.systems:
            where = each.placing
            cells = [_two(where.to_train), _two(where.to_truth), _shares(where.lean)] if where else [NO_VALUE] * 3
            scored = [percentage(x, unit="") for x in (each.iid, each.ood)]
            of = f"{verb.train:,} / {verb.iid:,} / {verb.ood:,}"
            rows.append([verb.verb, of, _system_name(report, each.system), *scored, *cells])
    measure = markdown_text(VERB_MEASURE)
    about = f"{measure} in percent, and distances from the locations of the verb's moments in train and in ood."
    return ["## By verb", about, Table(header, rows, "llllr").render("markdown")]


def _leans(report: DebiasReport) -> str:
    train, ood = (percentage(report.leans[name], 0) for name in ("train", "ood"))
    return f"of ood's true moments {ood}, of train's {train}; a system that learnt locations leans like train"


def _system_name(report: DebiasReport, system: str) -> str:
    return system + (" (blind)" if system in report.blind else "")


def _seeds(gap: SplitGap) -> int:
    return max(gap.iid.count, gap.ood.count)


def _shares(value: SeedSpread | None) -> str:
    return NO_VALUE if value is None or math.isnan(value.mean) else f"{percent(value, 0)} %"


def _two(value: SeedSpread | None) -> str:
    if value is None or math.isnan(value.mean):
        return NO_VALUE
    return f"{value.mean:.2f}" + ("" if math.isnan(value.sd) else f" ± {value.sd:.2f}")


Row = dict[str, Any]


def as_json(report: DebiasReport) -> Row:
    """Return everything, unrounded; unknown values are null. Densities are rows of starts, each with its ends."""
    return {
        "note": report.note,
        "splits": {"iid": report.names[0], "ood": report.names[1]},
        "queries": dict(report.queries),
        "systems": [{"system": name, "blind": name in report.blind} for name in report.systems],
        "reference": report.reference,
        "gaps": [to_plain(asdict(gap)) for gap in report.gaps],
        "thresholds": [to_plain(asdict(curve)) for curve in report.curves],
        "distance_from_train": dict(report.apart),
        "leans": dict(report.leans),
        "distance_by_chance": dict(report.by_chance),
        "places": place_rows(report),
        "verbs": verb_rows(report),
        "densities": {
            **{f"true {name}": grid.round(6).tolist() for name, grid in report.truths.items()},
            **{f"{p.system} {p.split}": p.density.round(6).tolist() for p in report.placings},
        },
    }


def csv_files(report: DebiasReport) -> dict[str, bytes]:
    """Return the CSV files of a report: file name → bytes."""
    files = {
        "gap.csv": gap_rows(report),
        "thresholds.csv": threshold_rows(report),
        "places.csv": place_rows(report),
        "verbs.csv": verb_rows(report),
    }
    return {name: csv_text(rows).encode() for name, rows in files.items() if rows}


def gap_rows(report: DebiasReport) -> list[Row]:
    """Return the gaps as rows, one per system and measure."""
    rows = []
    for g in report.gaps:
        row: Row = {"system": g.system, "blind": g.system in report.blind, "measure": g.measure}
        row["seeds"] = max(g.iid.count, g.ood.count)
        for name, value in (("iid", g.iid), ("ood", g.ood), ("gap", g.gap)):
            row |= {name: value.mean, f"{name} sd": value.sd}
        row |= {"gap low": g.interval.low, "gap high": g.interval.high, "relative gap": g.relative}
        for name, change in (("gap closed", g.closed), ("iid gain", g.iid_gain), ("ood gain", g.ood_gain)):
            ends = (change.value, change.low, change.high) if change else (None, None, None)
            row |= dict(zip((name, f"{name} low", f"{name} high"), ends, strict=True))
        rows.append(to_plain(row))
    return rows


def threshold_rows(report: DebiasReport) -> list[Row]:
    """Return R and dR as rows, one per system, split and threshold."""
    rows: dict[tuple[str, str, float], Row] = {}
    for curve in report.curves:
        for t, value in zip(curve.thresholds, curve.values, strict=True):
            row = rows.setdefault(
                (curve.system, curve.split, t), {"system": curve.system, "split": curve.split, "threshold": t}
            )
            row |= to_plain({f"{curve.kind}@1": value.mean, f"{curve.kind}@1 sd": value.sd})
    return list(rows.values())


def place_rows(report: DebiasReport) -> list[Row]:
    """Return the locations of predictions as rows, one per system and split."""
    return [{"system": p.system, "split": p.split, **_distances(p)} for p in report.placings]


def verb_rows(report: DebiasReport) -> list[Row]:
    """Return the results by verb as rows, one per verb and system."""
    return [
        {
            "verb": verb.verb,
            "train queries": verb.train,
            "iid queries": verb.iid,
            "ood queries": verb.ood,
            "system": each.system,
            **to_plain({f"iid {VERB_MEASURE}": each.iid, f"ood {VERB_MEASURE}": each.ood}),
            **_distances(each.placing),
        }
        for verb in report.verbs
        for each in verb.systems
    ]


def _distances(placing: Any) -> Row:
    row: Row = {}
    for name in ("to_train", "to_truth", "lean"):
        value = getattr(placing, name, None)
        row |= {name: value.mean if value else None, f"{name} sd": value.sd if value else None}
    found: Row = to_plain(row)
    return found
