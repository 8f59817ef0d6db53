"""A sentence for every moment with a query, and which other films answer it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.moments import Judgements
from momentseek.simulation.grounding.films import Deed, SimulatedFilm
from momentseek.simulation.grounding.settings import GroundingSettings
from momentseek.simulation.world import World

MAX_FURTHER_POSITIVES = 4
"""Further positives of an MVMR query at most, as in the published files."""


@dataclass(frozen=True, slots=True)
class FilmQuery:
    """A query for films: its text, the film for which it was written, and the moment there."""

    text: str
    film: SimulatedFilm
    deed: Deed


def write_queries(world: World, films: list[SimulatedFilm], settings: GroundingSettings) -> list[FilmQuery]:
    """Write "person opens the door." for every moment with a query, in the order of the films."""
    rng = settings.base.random("sentences")
    found = []
    for film in films:
        for deed in film.deeds:
            if deed.asked:
                words = ["person", _draw_word(world, deed.action, rng)]
                words += ["the", _draw_word(world, deed.object, rng)] if deed.object >= 0 else []
                found.append(FilmQuery(" ".join(words) + ".", film, deed))
    return found


def moment_judgements(asked: list[FilmQuery]) -> Judgements:
    """Judgements of one moment per query, as in Charades-STA; ids are VIDEO:i."""
    return Judgements.from_groups(
        number_queries(asked), [1] * len(asked), [a.film.name for a in asked], [a.deed.start for a in asked],
        [a.deed.end for a in asked], durations={a.film.name: a.film.seconds for a in asked},
        queries=[a.text for a in asked],
    )  # fmt: skip


def number_queries(asked: list[FilmQuery]) -> list[str]:
    """The queries' ids, VIDEO:i, counted per video in their order."""
    seen: dict[str, int] = {}
    ids = []
    for a in asked:
        ids.append(f"{a.film.name}:{seen.get(a.film.name, 0)}")
        seen[a.film.name] = seen.get(a.film.name, 0) + 1
    return ids


def related_films(asked: list[FilmQuery], films: list[SimulatedFilm]) -> dict[str, list[str]]:
    """The other films in which the same is done, by query id, as the similarity of captions would find them."""
    where: dict[tuple[int, int], list[str]] = {}
    for film in films:
        for pair in film.asked_pairs:
            where.setdefault(pair, []).append(film.name)
    found = {}
    for key, a in zip(number_queries(asked), asked, strict=True):
        others = [v for v in where[a.deed.action, a.deed.object] if v != a.film.name]
        if others:
            found[key] = others
    return found


def pool_judgements(
    asked: list[FilmQuery], films: list[SimulatedFilm], settings: GroundingSettings, draw: str = "pools"
) -> Judgements:
    """Judgements with up to four further positives per query and a pool of films in which nobody does that action."""
    rng = settings.base.random(draw)
    rows: list[tuple[str, float, float, str]] = []
    counts, sizes, pools = [], [], []
    texts = {(a.film.name, a.deed): a.text for a in asked}
    for a in asked:
        same = [
            (f, d) for f in films for d in f.deeds
            if d.asked and (d.action, d.object) == (a.deed.action, a.deed.object) and f.name != a.film.name
        ]  # fmt: skip
        chosen = [same[i] for i in sorted(rng.permutation(len(same))[:MAX_FURTHER_POSITIVES])]
        free = [f.name for f in films if all(d.action != a.deed.action for d in f.deeds)]
        rest = rng.permutation(len(free))[: max(0, settings.pool - 1 - len(chosen))]
        pool = [a.film.name, *(f.name for f, _ in chosen), *(free[i] for i in sorted(rest))]
        positives = [(a.film, a.deed), *chosen]
        rows += [(f.name, d.start, d.end, texts[f.name, d]) for f, d in positives]
        counts.append(len(positives))
        sizes.append(len(pool))
        pools += pool
    videos, starts, ends, sentences = (list(column) for column in zip(*rows, strict=True))
    return Judgements.from_groups(
        number_queries(asked), counts, videos, np.array(starts, float), np.array(ends, float),
        durations={f.name: f.seconds for f in films}, queries=[a.text for a in asked],
        columns={"sentence": sentences}, pools=(sizes, pools),
    )  # fmt: skip


def _draw_word(world: World, concept: int, rng: np.random.Generator) -> str:
    words = world.concepts[concept].words
    return words[int(rng.integers(len(words)))]
