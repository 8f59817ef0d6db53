"""A report for machines: report.json and the tables as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from momentseek.evaluation.debias.report import DebiasReport
from momentseek.evaluation.debias.verbs import VERB_MEASURE
from momentseek.spreadsheets import safe_row

Row = dict[str, Any]


def as_json(report: DebiasReport) -> Row:
    """Everything, unrounded; what is not known is null. Densities are rows of starts, each with its ends."""
    return {
        "note": report.note,
        "splits": {"iid": report.names[0], "ood": report.names[1]},
        "queries": dict(report.queries),
        "systems": [{"system": name, "blind": name in report.blind} for name in report.systems],
        "reference": report.reference,
        "gaps": [_plain({**asdict(gap)}) for gap in report.gaps],
        "thresholds": [_plain(asdict(curve)) for curve in report.curves],
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
    """The CSV files of a report: file name → bytes."""
    files = {
        "gap.csv": gap_rows(report),
        "thresholds.csv": threshold_rows(report),
        "places.csv": place_rows(report),
        "verbs.csv": verb_rows(report),
    }
    return {name: _csv(rows) for name, rows in files.items() if rows}


def gap_rows(report: DebiasReport) -> list[Row]:
    """The gaps as rows, one per system and measure."""
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
        rows.append(_plain(row))
    return rows


def threshold_rows(report: DebiasReport) -> list[Row]:
    """R and dR as rows, one per system, split and threshold."""
    rows: dict[tuple[str, str, float], Row] = {}
    for curve in report.curves:
        for t, value in zip(curve.thresholds, curve.values, strict=True):
            row = rows.setdefault(
                (curve.system, curve.split, t), {"system": curve.system, "split": curve.split, "threshold": t}
            )
            row |= _plain({f"{curve.kind}@1": value.mean, f"{curve.kind}@1 sd": value.sd})
    return list(rows.values())


def place_rows(report: DebiasReport) -> list[Row]:
    """Where systems predict as rows, one per system and split."""
    return [{"system": p.system, "split": p.split, **_distances(p)} for p in report.placings]


def verb_rows(report: DebiasReport) -> list[Row]:
    """The view by verb as rows, one per verb and system."""
    return [
        {
            "verb": verb.verb,
            "train queries": verb.train,
            "iid queries": verb.iid,
            "ood queries": verb.ood,
            "system": each.system,
            **_plain({f"iid {VERB_MEASURE}": each.iid, f"ood {VERB_MEASURE}": each.ood}),
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
    found: Row = _plain(row)
    return found


def _plain(value: Any) -> Any:
    """As JSON takes it: no NaN, no tuples."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(safe_row, rows))
    return text.getvalue().encode()
