from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.benchmarks.simulation import settings as lengths
from momentseek.benchmarks.simulation.captions import remove_names, write_captions
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.benchmarks.simulation.story import NO_CONCEPT, Story, tell_story
from momentseek.benchmarks.simulation.vectors import clip_count, clip_shares, spoken_concepts, visible_concepts
from momentseek.benchmarks.simulation.world import phrases, tag, the_world

WORLD = the_world()


@pytest.fixture(scope="module")
def story() -> Story:
    return tell_story(WORLD, SimulationSettings(videos=300, seed=5))


def test_lengths_and_places_are_tvrs(story: Story) -> None:
    m = story.moments
    seconds = np.array([v.seconds for v in story.videos])
    length = m.end - m.start
    assert seconds.mean() == pytest.approx(76.2, rel=0.05)
    assert length.mean() == pytest.approx(9.2, rel=0.15)
    assert np.median(length) == pytest.approx(5.06, rel=0.1)
    assert len(m) / len(seconds) == pytest.approx(5, abs=0.1)
    first_tenth = (m.start < 0.1 * seconds[m.video]).mean()
    assert 0.24 < first_tenth < 0.34
    shares = np.bincount(m.kind) / len(m)
    assert shares == pytest.approx(np.array(lengths.KIND_SHARES), abs=0.03)


def test_moments_lie_in_their_videos(story: Story) -> None:
    m = story.moments
    seconds = np.array([v.seconds for v in story.videos])[m.video]
    assert (m.start >= 0).all()
    assert (m.start < m.end).all()
    assert (m.end <= seconds).all()
    assert (m.begin < m.finish).all()
    assert (m.finish <= seconds + 1e-9).all()
    assert (np.repeat(np.arange(len(story.videos)), np.diff(story.offsets)) == m.video).all()


def test_very_short_videos_have_moments_too() -> None:
    seconds = np.array([2.02, 5.0, 90.0])
    assert lengths.moments_per_video(seconds).tolist() == [1, 2, 5]
    rng = np.random.default_rng(0)
    start, end = lengths.draw_moment_times(np.repeat([0, 1, 2], 500), np.full(1500, 2.02), rng)
    assert (start < end).all()
    assert end.max() <= 2.02


def test_scenes_fill_the_video_and_hold_what_happens(story: Story) -> None:
    for video in story.videos:
        edges = [s.start for s in video.scenes] + [video.seconds]
        assert edges[0] == 0
        assert [s.end for s in video.scenes] == edges[1:]
    m = story.moments
    for row in range(len(m)):
        video = story.videos[m.video[row]]
        scene = next(s for s in video.scenes if (m.start[row] + m.end[row]) / 2 < s.end or s is video.scenes[-1])
        assert m.place[row] == scene.place
        assert m.actor[row] in scene.people


def test_texts_are_read_back_into_the_concepts_they_were_made_from(story: Story) -> None:
    m = story.moments
    precise = write_captions(WORLD, m, np.random.default_rng(0))
    for event, text, vague in zip(m.events(), precise, remove_names(WORLD, precise), strict=True):
        wanted = {event.action, event.object, event.action2, event.object2, event.manner, event.speech, event.topic}
        wanted |= {event.place if event.names_place else NO_CONCEPT, event.color if event.names_color else NO_CONCEPT}
        kinds = {"gender", "person"}
        for sentence in (text, vague):
            found = {c for c in tag(sentence).concepts if c != NO_CONCEPT and WORLD.concepts[c].kind not in kinds}
            assert found == wanted - {NO_CONCEPT}, sentence
        assert event.actor in tag(text).concepts
        assert not any(c != NO_CONCEPT and WORLD.concepts[c].kind == "person" for c in tag(vague).concepts)


def test_every_phrase_has_one_concept() -> None:
    assert len(phrases()) == sum(len(c.words) for c in WORLD.concepts)


@given(st.floats(0, 50), st.floats(0.1, 30), st.integers(1, 60))
def test_clips_share_what_lies_within_the_video(start: float, length: float, clips: int) -> None:
    shares = clip_shares(clips, start, start + length)
    inside = max(0.0, min(start + length, clips * 1.5) - start)
    assert shares.sum() * 1.5 == pytest.approx(inside, abs=1e-6)
    assert ((shares >= 0) & (shares <= 1)).all()


@pytest.mark.parametrize("kind", ["v", "t"])
def test_what_is_seen_or_heard_begins_and_ends_with_the_action(story: Story, kind: str) -> None:
    settings = SimulationSettings(hard=0)
    m = story.moments
    column = m.action if kind == "v" else m.topic
    checked = 0
    for row in np.flatnonzero((m.kind == lengths.KINDS.index(kind)) & (m.action2 == NO_CONCEPT) & (m.prominence == 2)):
        video = int(m.video[row])
        neighbours = slice(int(story.offsets[video]), int(story.offsets[video + 1]))
        done = np.concatenate([column[neighbours], m.action2[neighbours]])
        if (done == column[row]).sum() > 1:
            continue
        rng = np.random.default_rng(0)
        both = (
            visible_concepts(WORLD, story, video, settings.difficulty, rng)[0],
            spoken_concepts(WORLD, story, video, settings, rng),
        )
        strength = both[kind == "t"][:, column[row]]
        share = clip_shares(clip_count(story.videos[video].seconds), float(m.begin[row]), float(m.finish[row]))
        assert (strength >= share - 1e-9).all()
        assert strength[share == 0].max(initial=0) <= 0.5  # of a topic, somebody else may speak
        checked += int((share == 1).any())
    assert checked > 20
