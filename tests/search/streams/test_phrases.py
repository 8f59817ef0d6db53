from __future__ import annotations

import numpy as np
import pytest
from small_library import fill, nothing

from momentseek.library.database import OCR
from momentseek.library.words import plain_words
from momentseek.media.subtitles.cues import Cue
from momentseek.search.streams.phrases import find_phrases, phrase_times


def library(folder, said_in):
    return fill(folder, {name: nothing(4, i) for i, name in enumerate(said_in)}, said_in)


def places(found):
    return [(u.video, u.start, u.end) for u in found]


def test_a_word_said_once_is_found_among_thousands_of_its_forms(tmp_path):
    cues = [Cue(t, t + 1, "running and running") for t in range(3000)] + [Cue(4000, 4001, "and so they run away home")]
    on = library(tmp_path, {"a.mp4": cues})
    assert places(find_phrases(on, ["run"])) == [(1, 4000, 4001)]
    assert places(find_phrases(on, ["RUN, away!"])) == [(1, 4000, 4001)]
    assert find_phrases(on, ["runs"]) == []


def test_a_phrase_over_two_cues_is_found_however_common_its_first_word(tmp_path):
    cues = [Cue(2 * t, 2 * t + 1, f"look at the w{t}") for t in range(2000)]
    cues += [Cue(5000, 5001, "this is the"), Cue(5001, 5002, "lighthouse of Porto"), Cue(5010, 5011, "the")]
    on = library(tmp_path, {"a.mp4": cues, "b.mp4": [Cue(0, 1, "lighthouse")]})
    assert places(find_phrases(on, ["the lighthouse"])) == [(1, 5000, 5002)]
    assert find_phrases(on, ["lighthouse of Porto the"]) == []  # nine seconds lie between
    assert find_phrases(on, ["the lighthouse", "w7"]) == []
    assert places(find_phrases(on, ["lighthouse of", "this is"])) == [(1, 5000, 5002)]


def test_the_end_of_a_video_is_not_followed_by_the_next_video(tmp_path):
    on = library(tmp_path, {"a.mp4": [Cue(0, 1, "go to the")], "b.mp4": [Cue(1, 2, "lighthouse")]})
    assert find_phrases(on, ["the lighthouse"]) == []


def test_text_or_description_next_to_a_cue_is_not_speech(tmp_path):
    cues = [Cue(0, 1, "an old man of Porto"), Cue(1, 2, "an old house of his"), Cue(5, 6, "go to the lighthouse")]
    on = library(tmp_path, {"a.mp4": cues})
    with on.changes():
        on.insert_cues(1, [Cue(6, 7, "of old, the old lighthouse"), Cue(7, 8, "猫")], OCR)
    assert places(find_phrases(on, ["the lighthouse"])) == [(1, 5, 6)]
    for not_said in ("old lighthouse", "lighthouse of", "猫"):
        assert find_phrases(on, [not_said]) == []


def test_what_is_nothing_but_the_phrase_is_best(tmp_path):
    on = library(tmp_path, {"a.mp4": [Cue(0, 1, "well, good boy, come here")], "b.mp4": [Cue(0, 1, "Good boy!")]})
    assert [u.video for u in find_phrases(on, ["good boy"])] == [2, 1]
    assert [u.video for u in find_phrases(on, ["good boy"], np.array([1]))] == [1]


@pytest.mark.parametrize("text", ["İSTANBUL'DA", "istanbul da", "I\u0307stanbul da"])
def test_case_and_accents_do_not_count(tmp_path, text):
    on = library(tmp_path, {"a.mp4": [Cue(0, 1, "şimdi İstanbul'da."), Cue(1, 2, "Istanbul")]})
    assert places(find_phrases(on, [text])) == [(1, 0, 1)]


@pytest.mark.parametrize("text", ["猫", "猫很", "的猫很可", "我的猫很可爱 真的"])
def test_words_without_spaces_between_them_are_found(tmp_path, text):
    on = library(tmp_path, {"a.mp4": [Cue(0, 1, "狗"), Cue(1, 2, "我的猫很可爱"), Cue(2, 3, "真的!")], "b.mp4": []})
    assert [u.start for u in find_phrases(on, [text])] == [1]
    assert find_phrases(on, ["猫可"]) == []


def test_voiced_and_unvoiced_kana_differ():
    unvoiced, voiced, apart = plain_words(["か", "が", "か\u3099"])
    assert voiced == apart != unvoiced


def test_every_cue_is_read_once_however_long_the_phrase(tmp_path):
    cues = [Cue(t, t + 1, "a b c d e f a b c d e f") for t in range(200)]
    on = library(tmp_path, {"a.mp4": cues})
    asked: list[str] = []
    rows = on.rows
    on.rows = lambda sql, values=(): asked.append(sql) or rows(sql, values)
    assert find_phrases(on, ["a b c d e f " * 160]) == []
    assert len(asked) <= 6 + 3
    asked.clear()
    assert len(phrase_times(on, ["a b", "c d", "f a", "b c"], [1])[1]) > 200
    assert len(asked) <= 6 + 3


def test_what_must_not_be_said_is_exact_too_and_runs_over_cues(tmp_path):
    cues = [Cue(0, 1, "bad dogs"), Cue(5, 6, "a bad"), Cue(6, 7, "dog")]
    on = library(tmp_path, {"a.mp4": cues, "b.mp4": [Cue(0, 1, "bad dog")]})
    assert phrase_times(on, ["bad dog"], [1]) == {1: [(5, 7)]}
    assert phrase_times(on, ["bad dog"], [1, 2]) == {1: [(5, 7)], 2: [(0, 1)]}
    assert phrase_times(on, [], [1]) == {}


def test_a_phrase_is_never_taken_for_a_match_expression(tmp_path):
    on = library(tmp_path, {"a.mp4": [Cue(0, 1, "this NEAR that AND x*")]})
    assert places(find_phrases(on, ["NEAR that AND"])) == [(1, 0, 1)]
    assert find_phrases(on, ["x* OR y"]) == []
