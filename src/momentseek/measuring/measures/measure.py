"""What a measure is, and the list of all of them."""

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
    """A number per query, between 0 and 1 unless its file says otherwise; NaN where a query does not count.

    The fields are its options: they can be set in its name (``NDCG@20[IoU>=0.5,gain=exp2]``) or by a protocol.
    """

    NAME: ClassVar[str]
    ABOUT: ClassVar[str]
    """One line on what the measure says, and its source."""
    COUNTS_EMPTY: ClassVar[bool] = False
    """Whether an empty list is an answer to it, and not a query that the run left out."""

    LOWER_IS_BETTER: ClassVar[bool] = False
    """Whether it is an error rate, so that a comparison favours the smaller figure."""

    name: str = field(default="", compare=False)
    """Name of the measure as the caller wrote it."""

    @property
    def title(self) -> str:
        """The name with the comparison that is made: under a protocol that compares with ``>``, no ``>=``.

        >>> from momentseek.measuring.measures import parse
        >>> parse("R@1[IoU>=0.5]", {"strict": True}).title, parse("R@1[IoU>=0.5]").title
        ('R@1[IoU>0.5]', 'R@1[IoU>=0.5]')
        """
        return self.name.replace(">=", ">") if getattr(self, "strict", False) else self.name

    @abstractmethod
    def __call__(self, view: Alignment) -> FloatArray:
        """The value of each judged query, in the truth's order."""

    @property
    def max_rank(self) -> int | None:
        """How many ranks it looks at; None for all."""
        k: int | None = getattr(self, "k", None)
        return k

    def summarise(self, values: FloatArray) -> float:
        """The figure for a whole run: the mean over the queries that count."""
        counted = values[~np.isnan(values)]
        return float(np.mean(counted)) if len(counted) else float("nan")


MEASURES: Registry[type[Measure]] = Registry("measure", "momentseek.measuring.measures", group="measures")
"""Name → measure; every file of this folder that defines one adds it with ``register``."""
MeasureType = TypeVar("MeasureType", bound=type[Measure])


def register(measure: MeasureType) -> MeasureType:
    """Class decorator: make the measure known by its ``NAME``, which no other may have."""
    MEASURES.add(measure.NAME, measure)
    return measure


LengthRange = Literal["full", "short", "middle", "long"]
LENGTH_BOUNDS_SECONDS: dict[str, tuple[float, float]] = {"short": (0, 10), "middle": (10, 30), "long": (30, 150)}


def in_range(truth: Judgements, length: LengthRange) -> tuple[BoolArray, BoolArray]:
    """Which judged moments lie in the range, and which queries have one that does."""
    if length == "full":
        return np.ones(len(truth.video), dtype=bool), np.ones(len(truth), dtype=bool)
    low, high = LENGTH_BOUNDS_SECONDS[length]
    seconds = truth.end - truth.start
    moments = (low < seconds) & (seconds <= high)
    queries = np.zeros(len(truth), dtype=bool)
    queries[truth.row_query[moments]] = True
    return moments, queries
