"""Generate what happens in each film: a few moments with queries, at habitual positions, and other deeds between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.benchmarks.simulation.settings import MIN_QUERIES, SimulationSettings
from momentseek.benchmarks.simulation.world import World
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class CorpusForm:
    """The corpus that films imitate: lengths of films (seconds) and of moments (fractions of a film), and files."""

    seconds: tuple[float, float]
    clip_seconds: float
    moments: int
    """Maximum number of moments with a query per film."""
    lengths: tuple[float, float]
    overlapping: bool
    """Whether two moments of a film may overlap."""
    corners: tuple[float, float]
    """Parameters of the beta distribution of habitual positions; below 1, most are near a film's start or end."""
    format: str
    ending: str
    longest_ood: float = 1.0
    """The longest moment of test_ood, as a fraction of its film; ActivityNet-CD keeps longer ones for training."""
    windows: tuple[float, ...] = (1.0,)
    """Shares of the queries that have one window, two, …; if several are possible, clips are rated too."""
    preset: str = "films"
    """The preset that models are trained with."""

    @property
    def rated(self) -> bool:
        """Whether queries have several windows on a grid of clips, whose saliency is rated."""
        return len(self.windows) > 1

    @property
    def middle(self) -> tuple[float, float]:
        """The range of habitual lengths: slightly narrower than that of all lengths."""
        shortest, longest = self.lengths
        return shortest + 0.05, longest - 0.05


FORMS = {
    "charades": CorpusForm((18.0, 45.0), 1.0, 2, (0.1, 0.5), False, (0.5, 0.6), "charades-sta", "txt"),
    "activitynet": CorpusForm(
        (40.0, 200.0), 2.0, 4, (0.05, 0.9), True, (0.3, 0.3), "activitynet", "json", longest_ood=0.5
    ),
    "tacos": CorpusForm((240.0, 480.0), 4.0, 8, (0.02, 0.15), True, (1.0, 1.0), "activitynet", "json"),
    "qvhighlights": CorpusForm(
        (60.0, 90.0), 2.0, 2, (0.04, 0.35), False, (0.8, 0.8), "qvhighlights", "jsonl",
        windows=(0.55, 0.2, 0.15, 0.1), preset="highlights",
    ),
}  # fmt: skip
"""Charades-STA has films of 29 s with moments of 8 s, ActivityNet Captions of 118 s with moments of 40 s that overlap
and crowd in the corners of the map of starts and ends (MVMR, Table 1; debiased grounding, Fig. 2), TACoS of 367 s with
many moments of 32 s. QVHighlights has films of 150 s with 1.8 windows of 25 s per query, clips of 2 s rated by three
people (Moment-DETR, Table 1); simulated ones last half as long."""


SPLIT_SHARES = {"train": 0.6, "val": 0.06, "test_iid": 0.17, "test_ood": 0.17}
"""Share of the videos in each split; only in test_ood do the positions of moments break the habits."""


@dataclass(frozen=True, slots=True)
class GroundingSettings:
    """The settings of simulated films; the same settings and version give the same files, byte for byte."""

    videos: int = 2000
    seed: int = 0
    hard: float = 0.5
    bias: float = 0.9
    """Share of the moments whose position follows a habit, from 0 to 1."""
    verb_bias: float = 1.0
    """Share of the actions with an individual habit; the others share one."""
    pool: int = 50
    """Number of videos searched per query of ``mvmr``."""
    like: str = "charades"
    """The corpus that the films resemble: charades, activitynet, tacos or qvhighlights."""
    video_dim: int = 128
    text_dim: int = 96

    def __post_init__(self) -> None:
        if not 0 <= self.bias <= 1:
            raise MomentseekError(
                f"a bias of {self.bias:g} is out of range; choose one from 0 to 1 ({parameter('bias')})"
            )
        if not 0 <= self.verb_bias <= 1:
            raise MomentseekError(
                f"a verb bias of {self.verb_bias:g} is out of range; choose one from 0 to 1 ({parameter('verb_bias')})"
            )
        if self.pool < 2:
            raise MomentseekError(f"a pool of {self.pool} is too small; give at least 2 videos ({parameter('pool')})")
        if self.like not in FORMS:
            raise MomentseekError(
                f"there are no films like {self.like!r}; choose {' or '.join(FORMS)} ({parameter('like')})"
            )
        _ = self.base  # checks the rest

    @property
    def form(self) -> CorpusForm:
        """The form of the corpus that the films resemble."""
        return FORMS[self.like]

    @property
    def base(self) -> SimulationSettings:
        """The settings shared with the other simulation: seed, difficulty, dimensions."""
        return SimulationSettings(
            videos=self.videos, queries=max(MIN_QUERIES, self.videos), seed=self.seed, hard=self.hard,
            video_dim=self.video_dim, text_dim=self.text_dim,
        )  # fmt: skip


HABIT_DEVIATION = 0.05
"""Standard deviation of positions and lengths around the habit, as a fraction of the film."""


@dataclass(frozen=True, eq=False)
class Habits:
    """The habitual position (0: film's start, 1: as late as possible) and length of every action."""

    place: FloatArray
    length: FloatArray
    form: CorpusForm

    @classmethod
    def draw(cls, actions: int, form: CorpusForm, rng: np.random.Generator, own: float = 1.0) -> Habits:
        """Draw a habit for every action.

        A share ``own`` of the actions has an individual habit, and the others share one: at 0 all moments have the same
        bias, at 1 every verb has its own.
        """
        place, length = rng.beta(*form.corners, actions), rng.uniform(*form.middle, actions)
        common = rng.random(actions) >= own
        return cls(
            np.where(common, rng.beta(*form.corners), place), np.where(common, rng.uniform(*form.middle), length), form
        )

    def span(self, action: int, bias: float, broken: bool, rng: np.random.Generator) -> tuple[float, float]:
        """Draw start and end of a moment as fractions of its film: by habit with probability ``bias``, else anywhere.

        If habits are ``broken``, it is half a film away from the habitual position instead, with any length up to
        ``longest_ood``.
        """
        shortest, longest = self.form.lengths
        length, place = rng.uniform(shortest, min(longest, self.form.longest_ood) if broken else longest), rng.random()
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


PLACEMENT_ATTEMPTS = 6
"""Number of attempts to place another moment before it is left out."""
BUSY_PROBABILITY = 0.8
"""Probability that something else is done between moments."""
OTHER_DEED_SHARES = (0.08, 0.25)
"""Shortest and longest deed between moments, as fractions of the film."""


@dataclass(frozen=True, slots=True)
class Deed:
    """An action, perhaps on an object, from ``start`` to ``end`` seconds; ``asked`` if there is a query for it."""

    action: int
    object: int
    start: float
    end: float
    asked: bool
    strengths: tuple[float, ...] = ()
    """How clearly each of its clips shows it, if clips are rated; 1 for all if empty."""
    ratings: tuple[tuple[int, int, int], ...] = ()
    """Ratings of each of these clips by three people, from 0 to 4."""


@dataclass(frozen=True, slots=True)
class SimulatedFilm:
    """A simulated film and everything that is done in it."""

    name: str
    split: str
    seconds: float
    deeds: tuple[Deed, ...]

    @property
    def asked_pairs(self) -> frozenset[tuple[int, int]]:
        """The (action, object) pairs in it for which there are queries."""
        return frozenset((d.action, d.object) for d in self.deeds if d.asked)


def make_films(world: World, settings: GroundingSettings) -> list[SimulatedFilm]:
    """Generate all films, split by split."""
    solo = np.array([a for a in world.of_kind("action").tolist() if a not in world.takes_two])
    habits = Habits.draw(len(world.concepts), settings.form, settings.base.random("habits"), settings.verb_bias)
    bounds = np.round(np.cumsum([0.0, *SPLIT_SHARES.values()]) * settings.videos).astype(int)
    films = []
    for split, first, last in zip(SPLIT_SHARES, bounds, bounds[1:], strict=False):
        for number in range(first, last):
            films.append(_make_film(world, solo, habits, split, number, settings))
    return films


def _make_film(
    world: World, solo: IntArray, habits: Habits, split: str, number: int, settings: GroundingSettings
) -> SimulatedFilm:
    rng = settings.base.random("film", number)
    seconds = round(float(rng.uniform(*settings.form.seconds)), 2)
    asked: list[Deed] = []
    if settings.form.rated:
        each = settings.form.clip_seconds
        seconds = each * round(seconds / each)
        for action in rng.choice(solo, settings.form.moments, replace=False).tolist():
            asked += _rated_windows(world, habits, action, asked, seconds, split == "test_ood", settings, rng)
    for action in rng.choice(solo, settings.form.moments, replace=False).tolist() if not settings.form.rated else ():
        for _ in range(PLACEMENT_ATTEMPTS):
            start, end = habits.span(action, settings.bias, split == "test_ood", rng)
            if settings.form.overlapping or all(end * seconds <= d.start or start * seconds >= d.end for d in asked):
                times = round(start * seconds, 1), min(round(end * seconds, 1), seconds)
                asked.append(Deed(action, _draw_object(world, action, rng), *times, asked=True))
                break
    taken = {d.action for d in asked}
    others = solo[~np.isin(solo, list(taken))]
    between = _fill_gaps(sorted(asked, key=lambda d: d.start), others, world, seconds, rng)
    return SimulatedFilm(f"F{number:05d}", split, seconds, tuple(sorted([*asked, *between], key=lambda d: d.start)))


WEAKEST = 0.3
"""Strength of the least salient clip of a window, relative to 1 for the most salient."""
RATING_DEVIATION = 0.6
"""Standard deviation of a person's rating around the clip's true salience."""


def _rated_windows(
    world: World, habits: Habits, action: int, taken: list[Deed], seconds: float, broken: bool,
    settings: GroundingSettings, rng: np.random.Generator,
) -> list[Deed]:  # fmt: skip
    """Draw the windows of one query: the first by habit, the others anywhere, all disjoint and on the grid of clips."""
    form, found = settings.form, list[Deed]()
    each, object_ = form.clip_seconds, _draw_object(world, action, rng)
    for number in range(1 + int(rng.choice(len(form.windows), p=form.windows))):
        for _ in range(PLACEMENT_ATTEMPTS):
            share = habits.span(action, settings.bias if number == 0 else 0.0, broken, rng)
            start, end = (each * round(x * seconds / each) for x in share)
            end = max(end, start + each)
            # there is a clip between windows, so that two never look like one
            if end <= seconds and all(end < d.start or start > d.end for d in [*taken, *found]):
                clips = round((end - start) / each)
                level = np.clip(rng.uniform(0.2, 1.0) + 0.2 * rng.standard_normal(clips), 0, 1)
                rated = np.clip(np.rint(4 * level + RATING_DEVIATION * rng.standard_normal((3, clips))), 0, 4)
                strengths = tuple((WEAKEST + (1 - WEAKEST) * level).tolist())
                ratings = tuple((int(a), int(b), int(c)) for a, b, c in rated.T.tolist())
                found.append(Deed(action, object_, start, end, True, strengths, ratings))
                break
    return found


def _fill_gaps(
    asked: list[Deed], others: IntArray, world: World, seconds: float, rng: np.random.Generator
) -> list[Deed]:
    """Draw actions without a query for the gaps between the moments with queries."""
    deeds = []
    free = 0.0
    gaps = []
    for deed in asked:
        gaps.append((free, deed.start))
        free = max(free, deed.end)
    for start, end in [*gaps, (free, seconds)]:
        at = start
        while at < end - 0.5:
            until = min(end, at + seconds * float(rng.uniform(*OTHER_DEED_SHARES)))
            if rng.random() < BUSY_PROBABILITY:
                action = int(rng.choice(others))
                deeds.append(Deed(action, _draw_object(world, action, rng), at, until, asked=False))
            at = until
    return deeds


def _draw_object(world: World, action: int, rng: np.random.Generator) -> int:
    possible = world.objects_for[action]
    return int(rng.choice(possible)) if len(possible) else -1
