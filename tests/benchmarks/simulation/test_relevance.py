"""The guideline's examples as simulated events (TVR-Ranking, appendix B.1)."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from momentseek.benchmarks.simulation.relevance import Judge, annotate, build_judge, draw_consensus
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.story import NO_CONCEPT, Event, SimulatedMoments, Story, tell_story
from momentseek.benchmarks.simulation.world import the_world

WORLD = the_world()


def concept(kind: str, name: str) -> int:
    return WORLD.number[kind, name]


NORA, CLARA, VICTOR = (concept("person", n) for n in ("Nora", "Clara", "Victor"))
QUERY = Event(
    actor=NORA,
    other=NO_CONCEPT,
    action=concept("action", "stand"),
    object=NO_CONCEPT,
    color=NO_CONCEPT,
    manner=NO_CONCEPT,
    action2=concept("action", "read"),
    object2=concept("object", "book"),
    speech=NO_CONCEPT,
    topic=NO_CONCEPT,
    place=concept("place", "office"),
    names_place=0,
    names_color=0,
    prominence=2,
)
"""A woman stands up and reads the book."""
TALK = QUERY._replace(
    other=VICTOR,
    action=NO_CONCEPT,
    action2=NO_CONCEPT,
    object2=NO_CONCEPT,
    speech=concept("speech", "tell"),
    topic=concept("topic", "wedding"),
)


def level(query: Event, moment: Event, times: tuple[float, float] = (0.0, 10.0)) -> int:
    """The level of a moment of ten seconds whose event happens at these times."""
    rows = np.array([query, moment]).T
    ten, zero = np.full(2, 10.0), np.zeros(2)
    begin, finish = np.array([0.0, times[0]]), np.array([10.0, times[1]])
    moments = SimulatedMoments(np.arange(2), np.zeros(2, dtype=np.int64), zero, ten, begin, finish, *rows)
    judge = build_judge(WORLD, Story((), moments, np.arange(3)))
    return int(judge(np.array([0]), np.array([1]))[0])


def test_columns_of_moments_end_with_those_of_events() -> None:
    assert tuple(f.name for f in fields(SimulatedMoments))[-len(Event._fields) :] == Event._fields


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (QUERY, 4),
        (QUERY._replace(actor=CLARA, place=concept("place", "park")), 4),
        (QUERY._replace(actor=VICTOR), 3),
        (QUERY._replace(object2=concept("object", "letter")), 3),
        (QUERY._replace(prominence=1), 3),
        (QUERY._replace(action2=NO_CONCEPT, object2=NO_CONCEPT), 2),
        (QUERY._replace(action=concept("action", "sit")), 2),
        (QUERY._replace(action=concept("action", "wave")), 1),
        (QUERY._replace(action=concept("action", "wave"), action2=NO_CONCEPT, object2=NO_CONCEPT), 0),
        (QUERY._replace(prominence=0), 1),
        (TALK, 0),
    ],
    ids=[
        "same event",
        "another woman elsewhere",
        "a man",
        "another object",
        "at the edge",
        "only the first action",
        "an action like it",
        "only the second action",
        "another action",
        "hardly in the picture",
        "only talk",
    ],
)
def test_levels_follow_the_guideline(moment: Event, expected: int) -> None:
    assert level(QUERY, moment) == expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [((0, 10), 4), ((1, 9), 4), ((2, 8), 3), ((0, 4), 3)],
    ids=["whole", "most", "part", "little"],
)
def test_an_incomplete_moment_is_worth_less(times: tuple[float, float], expected: int) -> None:
    assert level(QUERY, QUERY, times) == expected


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (TALK, 4),
        (TALK._replace(topic=concept("topic", "rent")), 1),
        (TALK._replace(speech=concept("speech", "ask")), 1),
        (QUERY, 0),
    ],
    ids=["same talk", "other topic", "other way of talking", "no talk"],
)
def test_talk_is_about_its_topic(moment: Event, expected: int) -> None:
    assert level(TALK, moment) == expected


@pytest.fixture(scope="module")
def judge() -> Judge:
    return build_judge(WORLD, tell_story(WORLD, SimulationSettings(videos=60)))


def test_everything_is_what_pairs_are(judge: Judge) -> None:
    queries = np.arange(0, 200, 3)
    whole = judge.levels_of_all_moments(queries)
    assert whole.shape == (len(queries), len(judge.story.moments))
    assert set(np.unique(whole).tolist()) == {0, 1, 2, 3, 4}
    rng = np.random.default_rng(0)
    q, m = rng.integers(len(queries), size=300), rng.integers(whole.shape[1], size=300)
    assert (judge(queries[q], m) == whole[q, m]).all()


def test_an_overlapping_neighbour_counts_as_what_happens(judge: Judge) -> None:
    m = judge.story.moments
    overlapped = np.flatnonzero((judge.event[:, 1] != NO_CONCEPT) & (judge.completeness[:, 1] > 0.5))
    assert len(overlapped)
    levels = judge(judge.event[overlapped, 1], overlapped)
    shown = m.prominence[judge.event[overlapped, 1]] == 2
    assert (levels[shown] >= 3).all()


def test_pools_are_of_twenty_or_forty_and_keep_the_order(judge: Judge) -> None:
    queries = np.arange(100)
    rng = np.random.default_rng(1)
    near = np.stack([rng.permutation(len(judge.story.moments))[:40] for _ in queries])
    similarity = -np.sort(-rng.random((100, 40)), axis=1)
    judged = annotate(judge, queries, near, similarity, 0.12, rng)
    assert judged.counts.sum() == len(judged.moment) == len(judged.relevance)
    assert (judged.counts > 20).sum() == 47
    assert judged.counts.max() <= 40
    assert judged.moment[: judged.counts[0]].tolist() == [m for m in near[0] if m in judged.moment][: judged.counts[0]]


def test_consensus_strays_by_at_most_a_level() -> None:
    truth = np.repeat(np.arange(5), 400)
    levels = draw_consensus(truth, 0.12, np.random.default_rng(0))
    kept = levels >= 0
    assert kept.mean() > 0.97
    assert np.abs(levels - truth)[kept].max() <= 1
    assert (levels == truth).mean() > 0.7
