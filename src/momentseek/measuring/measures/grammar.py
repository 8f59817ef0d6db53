"""The names of measures: ``NDCG@20[IoU>=0.5]``, ``R@{1,5}[IoU>={0.5,0.7},task=SVMR]``.

NAME, then optionally ``@K``, then optionally ``[…]`` with an IoU condition and ``option=value`` pairs. Braces
expand to all combinations. What the name leaves open is decided by the protocol, then by the paper.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

from momentseek.core.errors import MomentseekError
from momentseek.core.registry import Registry, did_you_mean
from momentseek.measuring.measures.captions.measure import CaptionMeasure
from momentseek.measuring.measures.measure import MEASURES, Measure

_BRACES = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(?P<name>[A-Za-z]+(?:-[A-Za-z]+)*)(?:@(?P<k>[^\[\]]+))?(?:\[(?P<options>[^\[\]]*)\])?")
_IOU = re.compile(r"IoU\s*(?P<compare>>=|>)\s*(?P<threshold>.+)", re.IGNORECASE)
_RESERVED = {"name", "k", "iou", "strict"}
EXAMPLE_NAME = "NDCG@20[IoU>=0.5]"
MAX_CUTOFF = 1_000_000


def expand(text: str) -> list[str]:
    """Expand braces to a list of names; the leftmost brace varies slowest.

    >>> expand("R@{1,5}[IoU>={0.5,0.7}]")
    ['R@1[IoU>=0.5]', 'R@1[IoU>=0.7]', 'R@5[IoU>=0.5]', 'R@5[IoU>=0.7]']
    """
    pieces = _BRACES.split(re.sub(r"\s+", "", text).replace("≥", ">="))
    choices = [piece.split(",") if i % 2 else [piece] for i, piece in enumerate(pieces)]
    names = ["".join(chosen) for chosen in product(*choices)]
    if any("{" in n or "}" in n for n in names):
        raise MomentseekError(f"measure {text!r}: braces do not match; write lists as in NDCG@{{10,20}}[IoU>=0.5]")
    return names


def parse(name: str, options: Mapping[str, Any] | None = None) -> Measure:
    """Return the measure called ``name``; ``options`` are a protocol's choices for what the name leaves open.

    ``>`` in a name is always strict; ``>=`` is strict under a protocol that says so: TVR-Ranking's measure is
    called ``NDCG@K, IoU>=μ`` in the paper, and the authors' code compares with ``>``.

    >>> parse("NDCG@20[IoU>=0.5,gain=exp2]")
    NDCG(name='NDCG@20[IoU>=0.5,gain=exp2]', k=20, iou=0.5, strict=False, gain='exp2', zeros='absorb', empty='zero')
    >>> parse("NDGC@5[IoU>=0.5]")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: measure 'NDGC@5[IoU>=0.5]': there is no 'NDGC'; did you mean ...
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise MomentseekError(f"measure {name!r} cannot be read; write it as in {EXAMPLE_NAME}")
    kind = _class_of(found["name"], name)
    given: dict[str, Any] = {}
    if found["k"] is not None:
        given["k"] = _cutoff(found["k"], name)
    for part in filter(None, (found["options"] or "").split(",")):
        option = _option(part, kind, name)
        if not given.keys().isdisjoint(option):
            raise MomentseekError(f"measure {name!r}: {part!r} repeats an option given before it; keep one of them")
        given.update(option)
    known = _options_of(kind)
    for key in given:
        if key not in known:
            what = {"k": "a cut-off @K", "iou": "an IoU", "strict": "an IoU"}.get(key, f"an option {key!r}")
            raise MomentseekError(
                f"measure {name!r}: {kind.NAME} takes no {what.removeprefix('a ').removeprefix('an ')}"
            )
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.name not in given]
    if needed:
        lacking = {"k": "a cut-off, as in @20", "iou": "an IoU, as in [IoU>=0.5]"}
        raise MomentseekError(f"measure {name!r} needs {' and '.join(lacking.get(n, n) for n in needed)}")
    chosen = {k: v for k, v in (options or {}).items() if k in known}
    strict = {"strict": given["strict"] or chosen.get("strict", False)} if "strict" in given else {}
    return kind(**{**chosen, **given, **strict, "name": name})


def parse_all(texts: Iterable[str], options: Mapping[str, Any] | None = None) -> list[Measure]:
    """Return all measures that ``texts`` expand to, each once, in order."""
    names = dict.fromkeys(name for text in texts for name in expand(text))
    return [parse(name, options) for name in names]


def _class_of(word: str, name: str) -> type[Measure]:
    if word in MEASURES:
        return MEASURES[word]
    same = {m.lower(): m for m in MEASURES}
    near = same.get(word.lower()) or next(iter(difflib.get_close_matches(word, MEASURES, n=1, cutoff=0.4)), None)
    hint = f"did you mean {near + name[len(word) :]!r}?" if near else f"there are {', '.join(MEASURES)}"
    raise MomentseekError(f"measure {name!r}: there is no {word!r}; {hint}")


def _cutoff(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_CUTOFF:
        raise MomentseekError(
            f"measure {name!r}: the cut-off {text!r} must be a whole number from 1 to {MAX_CUTOFF:,}, "
            f"as in {EXAMPLE_NAME}"
        )
    return int(text)


def _option(part: str, kind: type[Measure], name: str) -> dict[str, Any]:
    condition = _IOU.fullmatch(part)
    if condition:
        threshold = _number(condition["threshold"], f"measure {name!r}")
        if not 0 <= threshold <= 1:
            raise MomentseekError(f"measure {name!r}: the IoU {threshold:g} must be between 0 and 1")
        return {"iou": threshold, "strict": condition["compare"] == ">"}
    key, equals, value = part.partition("=")
    options = {k: t for k, t in _options_of(kind).items() if k not in _RESERVED}
    if key.lower() == "iou":
        raise MomentseekError(f"measure {name!r}: {part!r} is not a condition; write IoU>=0.5 or IoU>0.5")
    if not equals or key not in options:
        hint = did_you_mean(key, [*options, "IoU"], f"{kind.NAME} takes {', '.join(options) or 'no options'}")
        raise MomentseekError(f"measure {name!r}: {part!r} is not an option; {hint}")
    return {key: _value(value, options[key], f"measure {name!r}: {key}")}


def _value(text: str, type_: Any, where: str) -> Any:
    if get_origin(type_) is Literal:
        if text in get_args(type_):
            return text
        raise MomentseekError(f"{where} must be one of {', '.join(get_args(type_))}, not {text!r}")
    if type_ is bool:
        if text in ("yes", "no"):
            return text == "yes"
        raise MomentseekError(f"{where} must be yes or no, not {text!r}")
    if float in (type_, *get_args(type_)):
        return _number(text, where)
    if text.isascii() and text.isdigit():
        return int(text)
    raise MomentseekError(f"{where} must be a whole number, not {text!r}")


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise MomentseekError(f"{where}: {text!r} is not a number; write it as in {EXAMPLE_NAME}") from None


@cache
def _options_of(kind: type[Measure]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


GRADED_MEASURES = ("NDCG@{10,20,40}[IoU>={0.3,0.5,0.7}]",)
UNGRADED_MEASURES = ("R@{1,5,10}[IoU>={0.3,0.5,0.7}]", "AxIoU@{1,5,10}", "mIoU")
CAPTION_MEASURES = ("BLEU@{1,2,3,4}", "METEOR", "ROUGE-L", "CIDEr-D")


@dataclass(frozen=True)
class Protocol:
    """A named set of options for all measures that have them, and the measures that are computed by default."""

    name: str
    about: str
    options: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    by_truth: bool = False
    """Whether the default measures depend on the truth: graded judgements, others, or captions."""
    percent: bool = False
    """Whether its values are usually printed times 100."""
    captions: bool = False
    """Whether it measures captions instead of ranked moments; ``paper`` does both."""


PROTOCOLS: Registry[Protocol] = Registry("protocol", group="protocols")
"""Name → protocol, from ``protocols.toml``."""
for _name, _table in tomllib.loads((files(__package__) / "protocols.toml").read_text("utf-8")).items():
    PROTOCOLS.add(_name, Protocol(_name, **{**_table, "measures": tuple(_table.get("measures", ()))}))


def describe_measures() -> list[dict[str, Any]]:
    """Return name, usage, description and option values (default first) of every measure; caption measures last."""
    return [
        {"name": kind.NAME, "usage": _usage(kind), "about": kind.ABOUT, "options": _options(kind)}
        for kind in sorted(MEASURES.values(), key=lambda kind: issubclass(kind, CaptionMeasure))
    ]


def describe_protocols() -> list[dict[str, Any]]:
    """Return name, description, options and default measures of every protocol."""
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
