"""Where an action usually happens: a favourite place and length each (Fig. 6 of the debiased grounding paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.simulate.grounding.forms import CorpusForm

HABIT_DEVIATION = 0.05
"""Standard deviation around the habit."""


@dataclass(frozen=True, eq=False)
class Habits:
    """A favourite place (0: film's start, 1: as late as its length allows) and length of every action."""

    place: FloatArray
    length: FloatArray
    form: CorpusForm

    @classmethod
    def drawn(cls, actions: int, form: CorpusForm, rng: np.random.Generator, own: float = 1.0) -> Habits:
        """Places crowd at the films' start and end; lengths are what they are.

        A share ``own`` of the actions has a habit of its own, the others have one in common: at 0 only the places of
        all moments are biased, at 1 those of every verb in its own way.
        """
        place, length = rng.beta(*form.corners, actions), rng.uniform(*form.middle, actions)
        common = rng.random(actions) >= own
        return cls(
            np.where(common, rng.beta(*form.corners), place), np.where(common, rng.uniform(*form.middle), length), form
        )

    def span(self, action: int, bias: float, broken: bool, rng: np.random.Generator) -> tuple[float, float]:
        """Start and end of a moment as shares of its film: by habit with probability ``bias``, else anywhere.

        Where habits are ``broken``, half a film away from the favourite place instead, at any length.
        """
        length, place = rng.uniform(*self.form.lengths), rng.random()
        if rng.random() < bias:
            usual = float(self.place[action]) + HABIT_DEVIATION * rng.standard_normal()
            if broken:
                place = (usual + 0.5) % 1.0
            else:
                place = float(np.clip(usual, 0, 1))
                length = float(
                    np.clip(self.length[action] + HABIT_DEVIATION * rng.standard_normal(), *self.form.lengths)
                )
        start = place * (1 - length)
        return start, start + length
