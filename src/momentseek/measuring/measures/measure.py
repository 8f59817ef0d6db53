"""The base class of measures, and the registry of all measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeVar

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.registry import Registry
from momentseek.measuring.measures.alignment import Alignment


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A number per query, between 0 and 1 unless documented otherwise; NaN if a query does not count.

    The fields are its options: they can be set in its name (``NDCG@20[IoU>=0.5,gain=exp2]``) or by a protocol.
    """

    NAME: ClassVar[str]
    ABOUT: ClassVar[str]
    """One line on what it measures, and its source."""
    COUNTS_EMPTY: ClassVar[bool] = False
    """Whether an empty list counts as an answer, instead of a query that the run left out."""

    LOWER_IS_BETTER: ClassVar[bool] = False
    """Whether it is an error rate, for which a smaller figure is better."""

    name: str = field(default="", compare=False)
    """Name of the measure as the caller wrote it."""

    @property
    def title(self) -> str:
        """The name with the comparison actually made: ``>`` instead of ``>=`` if the protocol compares strictly.

        >>> from momentseek.measuring.measures import parse
        >>> parse("R@1[IoU>=0.5]", {"strict": True}).title, parse("R@1[IoU>=0.5]").title
        ('R@1[IoU>0.5]', 'R@1[IoU>=0.5]')
        """
        return self.name.replace(">=", ">") if getattr(self, "strict", False) else self.name

    @abstractmethod
    def __call__(self, view: Alignment) -> FloatArray:
        """Return the value of each judged query, in the truth's order."""

    @property
    def max_rank(self) -> int | None:
        """Number of ranks it uses; None for all."""
        k: int | None = getattr(self, "k", None)
        return k

    def summarise(self, values: FloatArray) -> float:
        """Return the figure for a whole run: the mean over the queries that count."""
        counted = values[~np.isnan(values)]
        return float(np.mean(counted)) if len(counted) else float("nan")


MEASURES: Registry[type[Measure]] = Registry("measure", "momentseek.measuring.measures", group="measures")
"""Name → measure; the modules of this folder add theirs with ``register``."""
MeasureType = TypeVar("MeasureType", bound=type[Measure])


def register(measure: MeasureType) -> MeasureType:
    """Register a measure under its ``NAME``, which must be unique (a class decorator)."""
    MEASURES.add(measure.NAME, measure)
    return measure


LengthRange = Literal["full", "short", "middle", "long"]
LENGTH_BOUNDS_SECONDS: dict[str, tuple[float, float]] = {"short": (0, 10), "middle": (10, 30), "long": (30, 150)}


def in_range(truth: Judgements, length: LengthRange) -> tuple[BoolArray, BoolArray]:
    """Return which judged moments are in the range of lengths, and which queries have such a moment."""
    if length == "full":
        return np.ones(len(truth.video), dtype=bool), np.ones(len(truth), dtype=bool)
    low, high = LENGTH_BOUNDS_SECONDS[length]
    seconds = truth.end - truth.start
    moments = (low < seconds) & (seconds <= high)
    queries = np.zeros(len(truth), dtype=bool)
    queries[truth.row_query[moments]] = True
    return moments, queries
