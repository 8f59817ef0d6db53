"""Descriptions of the measures and protocols, taken from their definitions."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from momentseek.measuring.measures.captions import CaptionMeasure
from momentseek.measuring.measures.grammar import (
    CAPTION_MEASURES,
    GRADED_MEASURES,
    PROTOCOLS,
    UNGRADED_MEASURES,
    Protocol,
)
from momentseek.measuring.measures.measure import MEASURES, Measure


def describe_measures() -> list[dict[str, Any]]:
    """Name, usage, one line, and the values of every option (its default first); those of captions last."""
    return [
        {"name": kind.NAME, "usage": _usage(kind), "about": kind.ABOUT, "options": _options(kind)}
        for kind in sorted(MEASURES.values(), key=lambda kind: issubclass(kind, CaptionMeasure))
    ]


def describe_protocols() -> list[dict[str, Any]]:
    """Name, one line, the options it sets and the measures it computes by default."""
    return [
        {"name": p.name, "about": p.about, "options": dict(p.options), "measures": _defaults(p)}
        for p in PROTOCOLS.values()
    ]


def _defaults(protocol: Protocol) -> list[str]:
    if not protocol.by_truth:
        return list(protocol.measures)
    by_kind = {"graded truths": GRADED_MEASURES, "others": UNGRADED_MEASURES, "captions": CAPTION_MEASURES}
    return [f"{name} ({kind})" for kind, names in by_kind.items() for name in names]


def _usage(kind: type[Measure]) -> str:
    by_name = {f.name: f for f in fields(kind)}
    cutoff = ("@K" if by_name["k"].default is MISSING else f"[@{by_name['k'].default}]") if "k" in by_name else ""
    compare = ">" if "strict" in by_name and by_name["strict"].default is True else ">="
    condition = f"[IoU{compare}m]" if "iou" in by_name else ""
    return f"{kind.NAME}{cutoff}{condition}"


def _options(kind: type[Measure]) -> dict[str, list[str]]:
    hints = get_type_hints(kind)
    options = {}
    for f in fields(kind):
        if f.name in ("name", "k", "iou", "strict"):
            continue
        if get_origin(hints[f.name]) is Literal:
            values = sorted(get_args(hints[f.name]), key=lambda v: v != f.default)
        elif hints[f.name] is bool:
            values = ["yes", "no"] if f.default else ["no", "yes"]
        else:
            values = ["all" if f.default is None else str(f.default), "N"]
        options[f.name] = values
    return options
