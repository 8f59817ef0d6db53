import numpy as np
import pytest

from momentseek.benchmarks.datasets.massive_report import cooccurrence_ratios, measure_cohesiveness, video_words

SENTENCES = [["A man opens the door."], ["The man opens a door!"], ["A dog barks", "a dog sleeps"]]


def test_ratios_count_the_other_videos_that_say_the_word():
    ratio, times = cooccurrence_ratios(video_words(SENTENCES))
    by_word = dict(zip(["a", "man", "opens", "the", "door", "dog", "barks", "sleeps"], ratio.tolist(), strict=True))
    assert by_word == {"a": 1, "man": 0.5, "opens": 0.5, "the": 0.5, "door": 0.5, "dog": 0, "barks": 0, "sleeps": 0}
    assert times.tolist() == [3, 2, 2, 2, 2, 1, 1, 1]


def test_a_set_of_the_same_words_is_wholly_cohesive():
    found = measure_cohesiveness([[0, 1]], video_words(SENTENCES))
    assert (found.mean, found.words) == (1.0, 10)
    assert found.histogram == (0.0,) * 9 + (1.0,)


def test_sets_are_pooled_and_single_videos_have_no_ratio():
    words = video_words(SENTENCES)
    both = measure_cohesiveness([[0, 1], [0, 1, 2], [2]], words)
    assert both.words == 24
    assert both.mean == pytest.approx((10 * 1 + 3 * 1 + 8 * 0.5) / 24)
    assert sum(both.histogram) == pytest.approx(1, abs=1e-3)
    assert np.isnan(measure_cohesiveness([[2]], words).mean)
