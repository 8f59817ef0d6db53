from __future__ import annotations

import numpy as np
import pytest

from momentseek.benchmarks.simulation.captions import nearest_captions, sentence_vectors
from momentseek.benchmarks.simulation.relevance import snap_to_clips
from momentseek.benchmarks.simulation.settings import Difficulty, SimulationSettings
from momentseek.benchmarks.simulation.vectors import draw_concept_vectors, query_features
from momentseek.benchmarks.simulation.world import tag, the_world

WORLD = the_world()


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_synonyms_have_similar_word_vectors_and_other_words_do_not() -> None:
    settings = SimulationSettings(hard=0, text_dim=512)
    space = draw_concept_vectors(WORLD, ["mug", "cup", "coat"], settings)
    mug, cup, coat = (
        query_features(tag(word), space, settings, np.random.default_rng(i))[0]
        for i, word in enumerate(("mug", "cup", "coat"))
    )
    assert cosine(mug, cup) > 0.5
    assert abs(cosine(mug, coat)) < 0.25


def test_members_of_a_group_look_the_more_alike_the_harder_it_is() -> None:
    sit, stand = WORLD.number["action", "sit"], WORLD.number["action", "stand"]
    looks = [draw_concept_vectors(WORLD, [], SimulationSettings(hard=hard, video_dim=512)).looks for hard in (0.0, 1.0)]
    alike = [cosine(x[sit], x[stand]) for x in looks]
    assert abs(alike[0]) < 0.2
    assert alike[1] > 0.75


def test_similarity_is_one_for_equal_texts_and_higher_for_paraphrases() -> None:
    texts = ["A man picks up the mug.", "A man lifts the cup.", "A woman dances with a man.", "A man picks up the mug."]
    vectors = sentence_vectors(WORLD, texts, SimulationSettings())
    rows, values = nearest_captions(vectors[:1], vectors, 4)
    assert rows[0].tolist() == [0, 3, 1, 2]
    assert values[0, :2].tolist() == [1.0, 1.0]
    assert 1 > values[0, 2] > values[0, 3] >= 0


def test_nearest_is_a_stable_sort_of_all() -> None:
    rng = np.random.default_rng(0)
    captions = rng.integers(0, 2, (300, 6)) + 0.1
    captions /= np.linalg.norm(captions, axis=1, keepdims=True)
    rows, values = nearest_captions(captions[:20], captions, 40)
    rounded = np.sqrt(np.clip(captions[:20] @ captions.T, 0, 1)).round(4)
    assert (rows == np.argsort(-rounded, axis=1, kind="stable")[:, :40]).all()
    assert (values == np.take_along_axis(rounded, rows, axis=1)).all()


def test_every_strength_grows_with_difficulty() -> None:
    levels = [Difficulty.at(hard) for hard in (0.0, 0.3, 0.5, 0.8, 1.0)]
    for name in Difficulty.__slots__:
        values = [getattr(level, name) for level in levels]
        assert values == sorted(values), name
        assert values[0] < values[-1], name


@pytest.mark.parametrize(("start", "end"), [(0.0, 1.5), (0.2, 0.5), (10.0, 33.3), (1.49, 3.02)])
def test_snapped_times_are_the_best_of_the_grid(start: float, end: float) -> None:
    grid = [(a * 1.5, b * 1.5) for a in range(30) for b in range(a + 1, 31)]

    def overlap(a: float, b: float) -> float:
        inter = max(0.0, min(b, end) - max(a, start))
        return inter / ((b - a) + (end - start) - inter)

    first, last = snap_to_clips(np.array([start]), np.array([end]))
    assert overlap(first[0], last[0]) == pytest.approx(max(overlap(a, b) for a, b in grid))
