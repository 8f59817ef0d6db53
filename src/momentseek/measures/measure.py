"""What a measure is, and the list of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np

from momentseek.measures.alignment import Alignment
from momentseek.moments.arrays import FloatArray
from momentseek.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A number per query, between 0 and 1 unless its file says otherwise; NaN where a query does not count.

    The fields are its options: they can be set in its name (``NDCG@20[IoU>=0.5,gain=exp2]``) or by a protocol.
    """

    NAME: ClassVar[str]
    ABOUT: ClassVar[str]
    """One line on what the measure says, and its source."""

    name: str = field(default="", compare=False)
    """Name of the measure as the caller wrote it."""

    @property
    def title(self) -> str:
        """The name with the comparison that is made: under a protocol that compares with ``>``, no ``>=``.

        >>> from momentseek.measures import parse
        >>> parse("R@1[IoU>=0.5]", {"strict": True}).title, parse("R@1[IoU>=0.5]").title
        ('R@1[IoU>0.5]', 'R@1[IoU>=0.5]')
        """
        return self.name.replace(">=", ">") if getattr(self, "strict", False) else self.name

    @abstractmethod
    def __call__(self, view: Alignment) -> FloatArray:
        """The value of each judged query, in the truth's order."""

    @property
    def reach(self) -> int | None:
        """How many ranks it looks at; None for all."""
        k: int | None = getattr(self, "k", None)
        return k

    def summarise(self, values: FloatArray) -> float:
        """The figure for a whole run: the mean over the queries that count."""
        counted = values[~np.isnan(values)]
        return float(np.mean(counted)) if len(counted) else float("nan")


MEASURES: Registry[type[Measure]] = Registry("measure", package="momentseek.measures")
"""Name → measure; every file of this folder that defines one adds it with ``register``."""
MeasureType = TypeVar("MeasureType", bound=type[Measure])


def register(measure: MeasureType) -> MeasureType:
    """Class decorator: make the measure known by its ``NAME``, which no other may have."""
    MEASURES.add(measure.NAME, measure)
    return measure
