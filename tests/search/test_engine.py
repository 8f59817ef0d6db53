from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_library import OpenLibrary, WordVectors, fill, film, nothing

from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.reader import take_snapshot
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import Understanding
from momentseek.search.engine import Engine
from momentseek.search.fusion import FUSIONS
from momentseek.search.hit import MAX_HIDDEN
from momentseek.search.options import SearchOptions
from momentseek.search.query import Part, Query
from momentseek.search.streams import span_search
from momentseek.search.streams.vision import build_vision_query

BACKGROUND = {f"other{i}.mp4": nothing(24, seed=i) for i in range(12)}


def engine(folder, films, cues=None, **more) -> Engine:
    catalog = fill(folder, films, cues or {}, **more)
    return Engine(OpenLibrary(folder, catalog, WordVectors()))


def planted(what: str, seed: int = 100):
    """Thirty clips, of which 10 to 16 show something."""
    return np.concatenate([nothing(10, seed), film([(what, 6)], seed=seed), nothing(14, seed + 1)])


def ask(on: Engine, text: str, **options):
    return on.search(Query.parse(text), SearchOptions(**options))


def iou(hit, start, end):
    shared = max(0.0, min(hit.end, end) - max(hit.start, start))
    return shared / (hit.end - hit.start + end - start - shared)


def test_a_planted_moment_is_first_strong_and_where_it_is(tmp_path):
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")})
    hits = ask(on, "a dog on the beach")
    assert (hits[0].name, hits[0].level, hits[0].rank) == ("shore.mp4", "strong", 1)
    assert iou(hits[0], 15.0, 24.0) >= 0.6
    assert hits[0].start <= hits[0].peak <= hits[0].end
    assert hits[0].streams["vision"].rank == 1
    assert hits[0].curve == ()


def test_the_same_query_twice_gives_the_same_answer_without_encoding_again(tmp_path):
    catalog = fill(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")})
    encoder = WordVectors()
    on = Engine(OpenLibrary(tmp_path, catalog, encoder))
    first, second = (ask(on, "dog beach", all=True, explain=True) for _ in range(2))
    assert list(first) == list(second)
    assert encoder.calls == 1
    fresh = Engine(OpenLibrary(tmp_path, catalog, encoder))
    assert list(ask(fresh, "dog beach", all=True, explain=True)) == list(first)


def test_absent_thing_shows_three_nearest_hits_and_counts_the_rest(tmp_path):
    on = engine(tmp_path, BACKGROUND)
    hits = ask(on, "a giraffe", k=10)
    assert [hit.level for hit in hits] == ["weak"] * 3
    assert 10 < hits.hidden <= MAX_HIDDEN
    assert {ask(on, "a giraffe", k=k).hidden for k in (3, 5, 40)} == {hits.hidden}
    assert hits.note == "nothing matches well; these are the nearest"
    everything = ask(on, "a giraffe", k=10, all=True)
    assert len(everything) == 10
    assert {hit.level for hit in everything} == {"weak"}
    assert everything.hidden == 0


def test_moments_of_one_video_never_repeat_each_other(tmp_path):
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")})
    spans: dict[str, list[tuple[float, float]]] = {}
    for hit in ask(on, "dog beach", k=100, all=True):
        for start, end in spans.get(hit.name, []):
            shared = min(end, hit.end) - max(start, hit.start)
            assert shared <= 0.5 * min(end - start, hit.end - hit.start) + 1e-9
        spans.setdefault(hit.name, []).append((hit.start, hit.end))


def test_scores_fall_and_ranks_count(tmp_path):
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")})
    hits = ask(on, "dog beach", k=15, all=True)
    assert [hit.rank for hit in hits] == list(range(1, 16))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_speech_and_picture_merge_into_one_moment_with_the_pictures_bounds(tmp_path):
    cues = {"shore.mp4": [Cue(16.0, 18.0, "What a good dog!")], "talk.mp4": [Cue(3.0, 5.0, "My dog is ill.")]}
    on = engine(tmp_path, {**BACKGROUND, "talk.mp4": nothing(20, 77), "shore.mp4": planted("dog beach")}, cues)
    hits = ask(on, "dog beach")
    assert hits[0].name == "shore.mp4"
    assert set(hits[0].streams) == {"vision", "speech"}
    assert iou(hits[0], 15.0, 24.0) >= 0.6
    assert [cue.text for cue in hits[0].said] == ["What a good dog!"]
    assert sum("speech" in hit.streams and hit.name == "shore.mp4" for hit in hits) == 1


def test_words_alone_give_the_time_of_the_words(tmp_path):
    cues = {"talk.mp4": [Cue(3.0, 5.0, "Where is the lighthouse?"), Cue(9.0, 10.0, "Over there.")]}
    on = engine(tmp_path, {**BACKGROUND, "talk.mp4": nothing(20, 77)}, cues)
    (hit,) = ask(on, "said:lighthouse")
    assert (hit.name, hit.start, hit.end, hit.level) == ("talk.mp4", 3.0, 5.0, "strong")
    assert set(hit.streams) == {"speech"}


def test_exact_words_must_be_said_even_across_cues(tmp_path):
    cues = {
        "a.mp4": [Cue(1.0, 2.0, "he runs, and runs")],
        "b.mp4": [Cue(1.0, 2.0, "Well, RUN and"), Cue(2.0, 3.0, "hide now")],
        "c.mp4": [Cue(4.0, 5.0, "to rún AND hide!")],
    }
    on = engine(tmp_path, {name: nothing(20, 5 + i) for i, name in enumerate(cues)} | BACKGROUND, cues)
    assert {(h.name, h.start, h.end) for h in ask(on, '"run and hide"')} == {("b.mp4", 1.0, 3.0), ("c.mp4", 3.5, 5.5)}
    assert [h.name for h in ask(on, '"run and" "hide now"')] == ["b.mp4"]
    assert list(ask(on, '"run away"')) == []


def test_exact_words_together_with_a_picture(tmp_path):
    films = {**BACKGROUND, "shore.mp4": planted("dog beach"), "quiet.mp4": planted("dog beach", seed=300)}
    cues = {"shore.mp4": [Cue(16.0, 18.0, "fetch it")], "other3.mp4": [Cue(2.0, 3.0, "go fetch it")]}
    on = engine(tmp_path, films, cues)
    hits = ask(on, 'dog beach "fetch it"')
    assert [hit.name for hit in hits] == ["shore.mp4", "other3.mp4"]
    assert hits[0].end - hits[0].start > 4


def test_sentences_are_found_across_cues_and_rare_words_count_most(tmp_path):
    cues = {
        "a.mp4": [Cue(1.0, 2.0, "I lost my"), Cue(2.0, 3.0, "passport in Lisbon")],
        "b.mp4": [Cue(t, t + 1, "I lost again") for t in range(8)],
    }
    on = engine(tmp_path, {"a.mp4": nothing(8, 1), "b.mp4": nothing(8, 2)} | BACKGROUND, cues)
    hits = ask(on, "said:lost said:passport", all=True)
    assert (hits[0].name, hits[0].start, hits[0].end, hits[0].level) == ("a.mp4", 1.0, 3.0, "strong")
    assert {hit.level for hit in hits[1:]} == {"weak"}


def test_speech_is_found_by_meaning_where_cues_have_vectors(tmp_path):
    said = {f"talk{i}.mp4": [Cue(j, j + 1, f"w{i}x{j} y{i}z{j}") for j in range(6)] for i in range(10)}
    said["talk3.mp4"][2] = Cue(2, 3, "lighthouse storm night")
    films = {name: nothing(6, i) for i, name in enumerate(said)}
    on = engine(tmp_path, films, said, speech=WordVectors())
    (hit, *_) = ask(on, "said:lighthouse said:storm said:ship")
    assert (hit.name, hit.start) == ("talk3.mp4", 1.5)


def test_a_file_name_finds_its_video(tmp_path):
    on = engine(tmp_path, {**BACKGROUND, "holiday/Porto_2019-part2.mp4": nothing(24, 50)})
    for text in ("Porto_2019-part2.mp4", "porto 2019 part 2", "name:porto"):
        hits = ask(on, text)
        assert hits[0].name == "holiday/Porto_2019-part2.mp4", text
    assert ask(on, "Porto_2019-part2.mp4")[0].level == "strong"
    assert ask(on, "name:porto")[0].moment.end == 36.0


def test_a_name_lifts_the_best_moment_of_its_video(tmp_path):
    films = {**BACKGROUND, "a.mp4": planted("dog beach", 400), "lisbon.mp4": planted("dog beach", 500)}
    on = engine(tmp_path, films)
    hits = ask(on, "dog beach lisbon")
    assert hits[0].name == "lisbon.mp4"
    assert set(hits[0].streams) == {"vision", "name"}
    assert iou(hits[0], 15.0, 24.0) >= 0.6


def test_filters_hold_together_with_the_search(tmp_path):
    films = {**BACKGROUND, "trip/a.mp4": planted("dog beach"), "home/b.mp4": planted("dog beach", 600)}
    cues = {"home/b.mp4": [Cue(1, 2, "dog")], "trip/a.mp4": [Cue(1, 2, "dog")]}
    on = engine(tmp_path, films, cues, times={"trip/a.mp4": 1.2e9})
    assert {h.name for h in ask(on, "dog beach in:trip/*", all=True)} == {"trip/a.mp4"}
    assert {h.name for h in ask(on, "dog beach in:trip/* in:home/*", all=True)} == {"trip/a.mp4", "home/b.mp4"}
    assert "home/b.mp4" not in {h.name for h in ask(on, "dog beach -in:home", all=True)}
    assert {h.name for h in ask(on, "dog beach after:2005", all=True)} == {"trip/a.mp4"}
    assert {h.name for h in ask(on, "said:dog before:2005", all=True)} == {"home/b.mp4"}
    assert ask(on, "dog in:nowhere").note == "no video passes the filters of the query"
    with pytest.raises(MomentseekError, match="no time is after 2024 and before 2020"):
        ask(on, "dog after:2024 before:2020")


def test_what_is_to_be_avoided_sinks(tmp_path):
    films = {**BACKGROUND, "with.mp4": planted("dog leash"), "without.mp4": planted("dog", 700)}
    on = engine(tmp_path, films)
    assert {"with.mp4", "without.mp4"} <= {h.name for h in ask(on, "dog")}
    avoided = ask(on, "dog -leash")
    assert avoided[0].name == "without.mp4"
    assert "with.mp4" not in {h.name for h in avoided}
    with pytest.raises(MomentseekError, match="looks for and avoids the same: dog"):
        ask(on, "dog -dog")


def test_what_must_not_be_said_is_dropped(tmp_path):
    cues = {"shore.mp4": [Cue(16.0, 18.0, "a bad dog")]}
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")}, cues)
    assert ask(on, "dog beach")[0].name == "shore.mp4"
    for text in ('dog beach -"bad dog"', "dog beach -said:bad"):
        assert not [h for h in ask(on, text, all=True, k=100) if h.name == "shore.mp4" and h.start < 18 and h.end > 16]


def test_weights_decide_between_two_things(tmp_path):
    films = {**BACKGROUND, "dog.mp4": planted("dog", 800), "park.mp4": planted("park", 900)}
    on = engine(tmp_path, films)
    assert ask(on, "3:dog 0.5:park", streams=("vision",))[0].name == "dog.mp4"
    assert ask(on, "0.5:dog 3:park", streams=("vision",))[0].name == "park.mp4"


def test_copies_are_folded(tmp_path):
    rows = planted("dog beach")
    on = engine(tmp_path, {**BACKGROUND, "a.mp4": rows, "copy.mp4": rows}, hashes={"a.mp4": "h", "copy.mp4": "h"})
    hits = ask(on, "dog beach", all=True, k=100)
    assert "copy.mp4" not in {h.name for h in hits}
    assert hits[0].also == ("copy.mp4",)


def test_one_moment_per_video(tmp_path):
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")})
    names = [h.name for h in ask(on, "dog beach", all=True, group="video", k=100)]
    assert len(names) == len(set(names)) == 13


def test_streams_can_be_chosen(tmp_path):
    cues = {"shore.mp4": [Cue(1.0, 2.0, "dog beach")]}
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")}, cues)
    assert {s for h in ask(on, "dog beach", streams=("speech",), all=True) for s in h.streams} == {"speech"}
    assert {s for h in ask(on, "dog beach", streams=("vision",), all=True) for s in h.streams} == {"vision"}


def test_an_explanation_has_the_curve(tmp_path):
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")})
    (hit, *_) = ask(on, "dog beach", explain=True)
    assert len(hit.curve) == 30
    assert 10 <= int(np.argmax(hit.curve)) < 16


def test_a_tiny_library_shows_what_it_has(tmp_path):
    on = engine(tmp_path, {"a.mp4": film([("dog", 1), ("cat", 1), ("park", 1)])})
    hits = ask(on, "dog")
    assert hits
    assert {h.level for h in hits} == {"fair"}


def test_a_small_library_shows_the_nearest_where_nothing_is_sure(tmp_path):
    on = engine(tmp_path, {"a.mp4": nothing(60, 1), "b.mp4": nothing(60, 2)})
    hits = ask(on, "a giraffe")
    assert 1 <= len(hits) <= 3
    assert {h.level for h in hits} == {"weak"}
    assert hits.note == "nothing matches well; these are the nearest"


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "is empty"), ("-dog", "only says what to avoid"), ("in:x*", "only says where to look")],
)
def test_queries_that_look_for_nothing(tmp_path, text, why):
    with pytest.raises(MomentseekError, match=why):
        ask(engine(tmp_path, BACKGROUND), text)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"k": 0}, "at least 1"),
        ({"group": "scene"}, "clip and video"),
        ({"streams": ("smell",)}, "vision, speech, text, described, name"),
        ({"streams": ()}, "no stream"),
        ({"localiser": "watersheds"}, "did you mean"),
    ],
)
def test_options_that_make_no_sense(options, why):
    with pytest.raises(MomentseekError, match=why):
        SearchOptions(**options)


def test_removed_videos_are_not_found(tmp_path):
    catalog = fill(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")})
    with catalog.changes():
        catalog.remove_video(13)
    on = Engine(OpenLibrary(tmp_path, catalog, WordVectors()))
    hits = ask(on, "dog beach", all=True, k=100)
    assert hits
    assert "shore.mp4" not in {h.name for h in hits}


def test_only_videos_that_are_shown_are_read_whole_and_batches_change_nothing(tmp_path, monkeypatch):
    films = BACKGROUND | {f"dog{i}.mp4": planted("dog", 10 * i) for i in range(60)}
    catalog = fill(tmp_path, films, {"dog3.mp4": [Cue(1.0, 2.0, "a dog")], "other1.mp4": [Cue(3.0, 9.0, "the dog")]})
    read: list[int] = []
    videos = Catalog.videos
    monkeypatch.setattr(Catalog, "videos", lambda self, ids: read.extend(ids) or videos(self, ids))
    hits = list(ask(Engine(OpenLibrary(tmp_path, catalog, WordVectors())), "dog", k=5))
    assert len(hits) == 5
    assert sorted(read) == sorted({hit.video_id for hit in hits})
    for at_a_time in (1, 7, 1000):
        monkeypatch.setattr(span_search, "MORE_VIDEOS", at_a_time)
        assert list(ask(Engine(OpenLibrary(tmp_path, catalog, WordVectors())), "dog", k=5)) == hits


def test_words_in_a_video_beyond_the_best_get_the_bounds_that_its_picture_gives(tmp_path):
    films = {f"dog{i}.mp4": film([("dog", 1)], noise=0.3, seed=i) for i in range(105)}
    films |= {f"long{i}.mp4": nothing(200, 50 + i) for i in range(4)}
    films["shore.mp4"] = np.concatenate([nothing(10, 1), film([("dog beach", 6)], noise=0.5), nothing(14, 2)])
    cues = {"shore.mp4": [Cue(17.0, 18.0, "the lighthouse"), Cue(40.0, 41.0, "lighthouse")]}
    hits = [h for h in ask(engine(tmp_path, films, cues), "dog said:lighthouse", k=200) if "speech" in h.streams]
    assert {("vision" in hit.streams) for hit in hits} == {False}
    spans = sorted((hit.start, hit.end) for hit in hits)
    assert spans[0][0] <= 17.0
    assert spans[0][1] >= 18.0
    assert spans[0][1] - spans[0][0] >= 3
    assert spans[1] == (39.5, 41.5)


def test_what_must_not_be_said_is_meant_word_for_word(tmp_path):
    cues = {"shore.mp4": [Cue(16.0, 18.0, "a bad dog, runs")]}
    on = engine(tmp_path, {**BACKGROUND, "shore.mp4": planted("dog beach")}, cues)
    for text in ('dog beach -"bad dogs"', 'dog beach -"run"'):
        assert ask(on, text)[0].name == "shore.mp4", text


def test_a_picture_is_found_among_many_moments_that_say_a_common_word(tmp_path):
    films = {f"talk{i}.mp4": nothing(40, i) for i in range(12)} | {"shore.mp4": planted("dog beach")}
    cues = {name: [Cue(t, t + 1, "the") for t in range(0, 60, 2)] for name in films}
    cues["shore.mp4"] = [Cue(17.0, 20.0, "and here on the left there is nothing but sand")]
    hits = ask(engine(tmp_path, films, cues), 'dog beach "the"')
    assert [set(hit.streams) for hit in hits if hit.name == "shore.mp4"] == [{"vision", "speech"}]


def test_levels_never_contradict_ranks_and_weak_ones_only_follow(tmp_path):
    films = {**BACKGROUND, "shore.mp4": planted("dog beach"), "dune.mp4": planted("dog beach", 44)}
    cues = {f"other{i}.mp4": [Cue(2.0, 4.0, "a dog at home"), Cue(9.0, 10.0, "beach")] for i in range(12)}
    on = engine(tmp_path, films, cues)
    for k in (3, 8, 40):
        sure, everything = (ask(on, "a dog on the beach", k=k, all=all) for all in (False, True))
        assert list(everything)[: len(sure)] == list(sure)
        levels = [("strong", "fair", "weak").index(hit.level) for hit in everything]
        assert levels == sorted(levels)
    assert set(levels) >= {0, 2}


def damaged(folder, films, cues, stream, rows, **more) -> Engine:
    """An engine over a library some of whose rows are no numbers any more."""
    catalog = fill(folder, films, cues, **more)
    state = take_snapshot(catalog, folder / "segments")
    (whole,) = getattr(state, stream)
    half = np.array(whole.half)
    half[rows] = np.nan
    state = replace(state, **{stream: (replace(whole, half=half),)})
    return Engine(OpenLibrary(folder, catalog, WordVectors(), state))


def test_damaged_vectors_cost_their_own_video_alone(tmp_path):
    films = {"spoilt.mp4": nothing(24, 50), **BACKGROUND, "shore.mp4": planted("dog beach")}
    on = damaged(tmp_path, films, {}, "vision", [5])
    hits = ask(on, "a dog on the beach")
    assert (hits[0].name, hits[0].level) == ("shore.mp4", "strong")
    assert hits.note == "some of the library's vectors are damaged; run momentseek verify"
    assert "spoilt.mp4" not in {hit.name for hit in ask(on, "a dog on the beach", all=True, k=100)}


def test_completely_damaged_library_is_reported_as_damaged(tmp_path):
    on = damaged(tmp_path, {"spoilt.mp4": nothing(30, 1)}, {}, "vision", slice(None))
    hits = ask(on, "dog")
    assert list(hits) == []
    assert "damaged" in hits.note
    with pytest.raises(MomentseekError, match="run momentseek verify"):
        build_vision_query(on.sampled_vision(), [Part("dog")], [], WordVectors().encode)


def test_damaged_speech_vector_loses_only_its_cue(tmp_path):
    said = {f"talk{i}.mp4": [Cue(j, j + 1, f"w{i}x{j} y{i}z{j}") for j in range(6)] for i in range(10)}
    said["talk3.mp4"][2] = Cue(2, 3, "lighthouse storm night")
    films = {name: nothing(6, i) for i, name in enumerate(said)}
    on = damaged(tmp_path, films, said, "speech", [0, 18], speech=WordVectors())
    hits = ask(on, "said:lighthouse said:storm said:ship")
    assert (hits[0].name, hits[0].start) == ("talk3.mp4", 1.5)
    assert "damaged" in hits.note


@pytest.mark.parametrize("clips", [4, 60, 300])
def test_of_words_that_the_encoder_does_not_know_nothing_is_sure(tmp_path, monkeypatch, clips):
    monkeypatch.setattr(WordVectors, "knows", lambda self, text: "dog" in text, raising=False)
    on = engine(tmp_path, {"a.mp4": nothing(clips, 1)}, {"a.mp4": [Cue(1, 2, "xyz")]})
    hits = ask(on, "qqqq")
    assert list(hits) == []
    assert hits.hidden > 0
    assert hits.note.startswith("the image encoder knows no word of the query")
    assert {hit.level for hit in ask(on, "qqqq", all=True)} == {"weak"}
    assert [set(hit.streams) & {"speech"} for hit in ask(on, "said:xyz")] == [{"speech"}]
    assert not ask(on, "a dog").note.startswith("the encoder")
    near = Understanding(("words",), unknown=("qqqq",), suggestions={"qqqq": "dog"})
    monkeypatch.setattr(WordVectors, "understand", lambda self, text: near, raising=False)
    assert ask(on, "qqqq").note == "unknown words: “qqqq” (did you mean “dog”?)"


@pytest.mark.parametrize("fusion", sorted(FUSIONS))
def test_every_fusion_finds_what_is_seen_and_said(tmp_path, fusion):
    films = {**BACKGROUND, "shore.mp4": planted("dog beach"), "talk.mp4": nothing(30, 900)}
    cues = {"shore.mp4": [Cue(16.0, 18.0, "look, the dog on the beach")], "talk.mp4": [Cue(3.0, 4.0, "a dog, you say")]}
    on = engine(tmp_path, films, cues)
    hits = ask(on, "dog beach", fusion=fusion, all=True, k=40)
    assert (hits[0].name, hits[0].level) == ("shore.mp4", "strong")
    assert set(hits[0].streams) == {"vision", "speech"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    fewer = ask(on, "dog beach", fusion=fusion, all=True, k=10)
    assert [hit.moment for hit in fewer] == [hit.moment for hit in hits[:10]]


def test_an_unknown_fusion_is_refused():
    with pytest.raises(MomentseekError, match="did you mean 'scores'"):
        SearchOptions(fusion="score")


def test_ranks_of_streams_count_the_moments_of_the_answer(tmp_path):
    """A copy, a repetition or a weak moment that is not shown leaves no gap, on any page."""
    films = {**BACKGROUND, "shore.mp4": planted("dog beach"), "pier.mp4": planted("dog pier", 40)}
    on = engine(tmp_path, films, {"pier.mp4": [Cue(15, 17, "the dog on the beach")]})
    for options in ({}, {"all": True}, {"group": "video"}):
        hits = ask(on, "dog beach", k=100, **options)
        for stream in ("vision", "speech"):
            ranks = [hit.streams[stream].rank for hit in hits if stream in hit.streams]
            assert sorted(ranks) == list(range(1, len(ranks) + 1))
            scores = [h.streams[stream].score for h in sorted(hits, key=lambda h: h.rank) if stream in h.streams]
            assert [s for _, s in sorted(zip(ranks, scores, strict=True))] == sorted(scores, reverse=True)
        assert list(ask(on, "dog beach", k=2, **options)) == list(hits[:2])


class NamedThings(WordVectors):
    """An encoder that is sure of dogs by name, and does not know the word "hund"."""

    def evidence(self, text):
        return lambda rows: (0.9 if "dog" in text else 0.0) * (rows @ self.one(text) > 0.5)

    def understand(self, text):
        return Understanding(unknown=tuple(word for word in text.split() if word == "hund"))


def test_where_things_are_known_by_name_only_that_is_strong(tmp_path):
    films = {**BACKGROUND, "shore.mp4": planted("dog beach"), "hill.mp4": planted("castle sunset", 300)}
    on = Engine(OpenLibrary(tmp_path, fill(tmp_path, films, {}), NamedThings()))
    assert (ask(on, "dog beach")[0].name, ask(on, "dog beach")[0].level) == ("shore.mp4", "strong")
    assert (ask(on, "castle sunset")[0].name, ask(on, "castle sunset")[0].level) == ("hill.mp4", "fair")
    assert ask(on, "hund castle sunset").note == "unknown words: “hund”"
    assert ask(on, "castle sunset").note == ""


def test_words_without_a_label_are_named(tmp_path, monkeypatch):
    on = engine(tmp_path, BACKGROUND)
    assert ask(on, "a dog runs").understood.unfamiliar == ()
    understood = Understanding(("words",), words=("dog",), guessed=("a", "runs"))
    monkeypatch.setattr(WordVectors, "understand", lambda self, text: understood, raising=False)
    assert ask(on, "a dog runs").understood == replace(understood, guessed=("runs",))
    assert ask(on, "said:runs").understood.unfamiliar == ()
