"""Captions without names, as TVR-Ranking's queries are (section 3.1): the package's own rules, told the cast."""

from __future__ import annotations

from collections.abc import Iterable

from momentseek.construct.imprecise.gazetteer import Gazetteer
from momentseek.construct.imprecise.substitution import substitute
from momentseek.simulate.world import World


def remove_names(world: World, texts: Iterable[str]) -> list[str]:
    """Every name replaced by a general word.

    >>> from momentseek.simulate.world import the_world
    >>> remove_names(the_world(), ["Nora hands the mug to Clara.", "In the park, Victor hugs Nora."])
    ['A woman hands the mug to another woman.', 'In the park, a man hugs a woman.']
    """
    cast = Gazetteer({}).with_names([(c.name, c.group) for c in world.concepts if c.kind == "person"])
    return [substitute(text, cast).text for text in texts]
