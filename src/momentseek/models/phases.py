"""Phases of training: what is trained in a step, and how fast, as a function of the step alone.

A model that trains its parts in turns (TSP-PRL), one after another (DRN) or at different rates (WSSL) names them as
``rate_groups``, prefixes of its parameters' names, and says with ``phase_at`` which rate each has in a step. Nothing
else is remembered, so that training continued from a checkpoint is in the same phase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

REST = ""
"""The group of all parameters that no other group names."""


@dataclass(frozen=True)
class Phase:
    """What is trained in a step."""

    name: str = ""
    """What the model calls it; its ``loss`` may look."""
    rates: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Factors of the learning rate by group of parameters, 1 where nothing is said; 0 leaves a group as it is."""

    def rate(self, group: str) -> float:
        """The factor of a group's learning rate.

        >>> Phase("leaf", {"root": 0.0}).rate("root"), Phase().rate("root")
        (0.0, 1.0)
        """
        return self.rates.get(group, 1.0)


EVERYTHING = Phase()
"""All parameters at the same rate: what models without phases train in every step."""


def group_of(parameter: str, groups: Iterable[str]) -> str:
    """The group of a parameter: the longest prefix of its name, at whole parts, that is one of the groups.

    >>> group_of("leaf.2.weight", ["leaf", "leaf.2"]), group_of("leafage.weight", ["leaf"])
    ('leaf.2', '')
    """
    return max((g for g in groups if parameter == g or parameter.startswith(f"{g}.")), key=len, default=REST)
