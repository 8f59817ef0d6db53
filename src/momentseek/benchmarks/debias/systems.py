"""The systems to compare, including blind baselines, and the scores of every seed of a system on a split."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.benchmarks.baselines import BASELINES, BaselineSettings
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.evaluate import evaluate
from momentseek.measuring.replicates import video_clusters
from momentseek.measuring.result import Missing

IOU_THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 10))
RECALL_KINDS = ("dR", "R")
RECALL_MEASURES = tuple(f"{kind}@1[IoU>={t}]" for kind in RECALL_KINDS for t in IOU_THRESHOLDS)
GAP_MEASURES = tuple(f"{kind}@1[IoU>={t}]" for kind in RECALL_KINDS for t in (0.3, 0.5, 0.7))
"""Measures whose gap between iid and ood is reported."""


BLIND_BASELINES = ("bias-based", "moment-frequency", "predict-all", "chance")
RANDOM_BASELINES = ("bias-based", "chance")


@dataclass(frozen=True, eq=False)
class System:
    """A system's name and, per seed, its runs on iid and ood (None if missing); ``blind``: it never saw a video."""

    name: str
    runs: tuple[tuple[Run | None, Run | None], ...]
    blind: bool = False


@dataclass(frozen=True, eq=False)
class SeedScores:
    """Means ``(seeds, measures)``, NaN for a seed without a run, and values per query, averaged over seeds."""

    means: FloatArray
    values: FloatArray
    clusters: IntArray | None = None
    """The number of each query's video; None if no two queries share a video."""

    def gap_values(self) -> FloatArray:
        """Return the values per query of the measures whose gap is reported."""
        return self.values[:, [RECALL_MEASURES.index(name) for name in GAP_MEASURES]]


def score_seeds(runs: Sequence[Run | None], truth: Judgements, missing: Missing = "error") -> SeedScores:
    """Score the seeds of a system on one split.

    >>> truth = Judgements.from_groups(["q"], [1], ["v"], [0], [50], durations={"v": 100})
    >>> found = score_seeds([Run.from_rows([("q", "v", 0, 80, 1)]), None], truth)
    >>> first, second = found.means
    >>> float(first[RECALL_MEASURES.index("dR@1[IoU>=0.5]")].round(2)), bool(np.isnan(second).all())
    (0.7, True)
    """
    means = np.full((len(runs), len(RECALL_MEASURES)), np.nan)
    values = np.full((len(runs), len(truth), len(RECALL_MEASURES)), np.nan)
    for i, run in enumerate(runs):
        if run is not None:
            found = evaluate(run, truth, RECALL_MEASURES, missing=missing)
            means[i] = [found.means[name] for name in RECALL_MEASURES]
            values[i] = found.values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a split that no seed answered has no mean
        return SeedScores(means, np.nanmean(values, axis=0), video_clusters(truth))


def blind_systems(iid: Judgements, ood: Judgements, train: Judgements | None, seeds: int = 5) -> list[System]:
    """Return all blind baselines, random ones with several seeds; those that learn need a training set.

    >>> at = dict(durations={"a": 10.0})
    >>> truth = Judgements.from_groups(["q"], [1], ["a"], [2], [5], **at)
    >>> [(s.name, len(s.runs)) for s in blind_systems(truth, truth, None, seeds=3)]
    [('predict-all', 1), ('chance', 3)]
    """
    found = []
    for name in BLIND_BASELINES:
        baseline = BASELINES[name]
        if baseline.learns and train is None:
            continue
        settings = [BaselineSettings(seed=seed, top=1) for seed in range(seeds if name in RANDOM_BASELINES else 1)]
        runs = tuple((baseline.predict(train, iid, s), baseline.predict(train, ood, s)) for s in settings)
        found.append(System(name, runs, blind=True))
    return found


@dataclass(frozen=True, slots=True)
class ModelEntrant:
    """A model that is trained for the comparison."""

    label: str
    name: str
    settings: tuple[str, ...] = ()
    """Settings of the model beyond those for all models, each as ``key=value``."""


@dataclass(frozen=True, slots=True)
class TrainedEntrant:
    """A training run that exists already, or a folder of several (``seed-0``, ``seed-1``, …)."""

    label: str
    path: str


@dataclass(frozen=True, slots=True)
class FilesEntrant:
    """Files of predictions for the two splits; an empty name if there is none."""

    label: str
    iid: str
    ood: str


Entrant = ModelEntrant | TrainedEntrant | FilesEntrant


def parse_entrant(text: str) -> Entrant:
    """Parse one argument: a model, a training run or a pair of files.

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
    """Return label → what was given under it, in order; a model can only be given once under a label.

    >>> [len(found) for found in parse_entrants(["a=x,y", "b=x,y", "a=v,w"]).values()]
    [2, 1]
    """
    found: dict[str, list[Entrant]] = {}
    for text in texts:
        each = parse_entrant(text)
        others = found.setdefault(each.label, [])
        if others and (isinstance(each, ModelEntrant) or any(isinstance(other, ModelEntrant) for other in others)):
            raise MomentseekError(
                f"{each.label!r} is given twice; leave one out, or name them (NAME={text}); {parameter('seeds')} "
                "repeats a model"
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
            f"{text!r} is not a model, folder or pair of files; write MODEL, MODEL[key=value, …], a path with a slash, "
            "or NAME=IID,OOD"
        )
    inside = rest[:-1]
    edges = [-1, *_outside(inside, ",", text), len(inside)]
    settings = [inside[a + 1 : b].strip() for a, b in itertools.pairwise(edges)] if inside.strip() else []
    for setting in settings:
        if not re.match(r"[\w.]+\s*=", setting):
            raise MomentseekError(f"{text!r}: {setting!r} is not a setting; write key=value, such as lr=0.0005")
    return name.strip(), tuple(settings)


def _pair(value: str, commas: list[int], text: str) -> tuple[str, str]:
    """Split a value into two files; if it has several commas, split at the one that gives existing files."""
    pairs = [(value[:at].strip(), value[at + 1 :].strip()) for at in commas]
    if len(pairs) > 1:
        pairs = [pair for pair in pairs if all(not path or Path(path).is_file() for path in pair)]
    if len(pairs) != 1 or not any(pairs[0]):
        raise MomentseekError(f"{text!r} names no pair of files; write NAME=IID,OOD (one of them may be left empty)")
    return pairs[0]


def _outside(text: str, wanted: str, whole: str) -> Iterator[int]:
    """Yield the positions of a character outside brackets and quotes."""
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
