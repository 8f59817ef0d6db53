"""What ``momentseek debias`` is given to compare, as text: models with settings, runs' folders, prediction files.

mdd                         a model to train
mdd[confounders=L*A]        with settings of its own, as --set takes them
runs/mdd                    the folder of a training run (a path has a slash)
NAME=iid.jsonl,ood.jsonl    predictions; one of the two may be left empty
NAME=anything of the above  under another name; one name given several times is one system with several seeds
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from momentseek.errors import MomentseekError


@dataclass(frozen=True, slots=True)
class ModelEntrant:
    """A model that is trained for the comparison."""

    label: str
    name: str
    settings: tuple[str, ...] = ()
    """Settings of the model beyond those for all models, each as ``key=value``."""


@dataclass(frozen=True, slots=True)
class TrainedEntrant:
    """A training run that is there already, or a folder of several (``seed-0``, ``seed-1``, …)."""

    label: str
    path: str


@dataclass(frozen=True, slots=True)
class FilesEntrant:
    """Predictions for the two splits; an empty name where there are none."""

    label: str
    iid: str
    ood: str


Entrant = ModelEntrant | TrainedEntrant | FilesEntrant


def parse_entrant(text: str) -> Entrant:
    """What one argument means.

    >>> parse_entrant("mdd[confounders=L*A, report=['R@1[IoU>=0.5]', 'mIoU']]").settings
    ('confounders=L*A', "report=['R@1[IoU>=0.5]', 'mIoU']")
    >>> parse_entrant("base + EM=mdd[confounders=none]")
    ModelEntrant(label='base + EM', name='mdd', settings=('confounders=none',))
    >>> parse_entrant("a=crocs[begin=runs/first]")
    ModelEntrant(label='a', name='crocs', settings=('begin=runs/first',))
    >>> parse_entrant("ours=a/iid.jsonl,a/ood.jsonl")
    FilesEntrant(label='ours', iid='a/iid.jsonl', ood='a/ood.jsonl')
    >>> parse_entrant("runs/lr=0.1/seed-0").path
    'runs/lr=0.1/seed-0'
    """
    label, value = _split_label(text)
    commas = list(_outside(value, ",", text))
    if commas:
        if not label:
            raise MomentseekError(f"{text!r} does not say what to call these predictions; write NAME=IID,OOD")
        return FilesEntrant(label, *_pair(value, commas, text))
    if next(_outside(value, "/", text), None) is not None or value.endswith(".safetensors"):
        return TrainedEntrant(label or value.rstrip("/"), value)
    name, settings = _model(value, text)
    return ModelEntrant(label or (f"{name}[{', '.join(settings)}]" if settings else name), name, settings)


def parse_entrants(texts: Iterable[str]) -> dict[str, list[Entrant]]:
    """Label → what was given under it, in the order given; a model can only be given once under a label.

    >>> [len(found) for found in parse_entrants(["a=x,y", "b=x,y", "a=v,w"]).values()]
    [2, 1]
    """
    found: dict[str, list[Entrant]] = {}
    for text in texts:
        each = parse_entrant(text)
        others = found.setdefault(each.label, [])
        if others and (isinstance(each, ModelEntrant) or any(isinstance(other, ModelEntrant) for other in others)):
            raise MomentseekError(
                f"{each.label!r} is given twice; leave one out, or name them (NAME={text}); `seeds` repeats a model"
            )
        others.append(each)
    return found


def _split_label(text: str) -> tuple[str, str]:
    at = next(_outside(text, "=", text), None)
    if at is None or any(place < at for place in _outside(text, "/", text)):  # a path may have = in it
        return "", text.strip()
    label, value = text[:at].strip(), text[at + 1 :].strip()
    if not label or not value:
        raise MomentseekError(f"{text!r} names nothing to compare; write NAME=MODEL, NAME=FOLDER/ or NAME=IID,OOD")
    return label, value


def _model(value: str, text: str) -> tuple[str, tuple[str, ...]]:
    name, bracket, rest = value.partition("[")
    if not re.fullmatch(r"[\w-]+", name.strip()) or (bracket and not rest.endswith("]")):
        raise MomentseekError(
            f"{text!r} is no model, folder or pair of files; write MODEL, MODEL[key=value, …], a path with a slash, or "
            "NAME=IID,OOD"
        )
    inside = rest[:-1]
    edges = [-1, *_outside(inside, ",", text), len(inside)]
    settings = [inside[a + 1 : b].strip() for a, b in itertools.pairwise(edges)] if inside.strip() else []
    for setting in settings:
        if not re.match(r"[\w.]+\s*=", setting):
            raise MomentseekError(f"{text!r}: {setting!r} is not a setting; write key=value, such as lr=0.0005")
    return name.strip(), tuple(settings)


def _pair(value: str, commas: list[int], text: str) -> tuple[str, str]:
    """The two files; of several commas, the one that leaves files that are there."""
    pairs = [(value[:at].strip(), value[at + 1 :].strip()) for at in commas]
    if len(pairs) > 1:
        pairs = [pair for pair in pairs if all(not path or Path(path).is_file() for path in pair)]
    if len(pairs) != 1 or not any(pairs[0]):
        raise MomentseekError(f"{text!r} names no pair of files; write NAME=IID,OOD (one of them may be left empty)")
    return pairs[0]


def _outside(text: str, wanted: str, whole: str) -> Iterator[int]:
    """Where a character is outside of brackets and quotes."""
    depth, quote = 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif depth and character in "\"'":  # outside of settings, it is an apostrophe
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == wanted and not depth:
            yield at
    if depth or quote:
        raise MomentseekError(f"{whole!r}: a bracket or quote is not closed; write MODEL[key=value, …]")
