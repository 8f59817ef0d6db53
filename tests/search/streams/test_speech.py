"""What is said is found by its meaning, over several cues, in libraries with vectors of passages and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_library import OpenLibrary, WordVectors, fill, nothing

from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import PASSAGES_SETTING, encode_cues, fill_speech, passages
from momentseek.library.encoders import installed_speech_encoder
from momentseek.library.paths import LibraryPaths
from momentseek.media.subtitles.cues import Cue
from momentseek.search.confidence import Scale
from momentseek.search.display import table
from momentseek.search.engine import Engine
from momentseek.search.export.json import hit_record
from momentseek.search.hit import Results, StreamHit
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.stream_index import VideoRows
from momentseek.search.streams.speech import MIN_MEANING, MeaningQuery, find_passages, fuse_hits

TALK = [
    Cue(0.0, 3.0, "Good evening, and welcome to the programme."),
    Cue(3.2, 6.0, "If you tell anyone, I will release the tape to the press."),
    Cue(6.1, 9.0, "Everybody will hear what you said in that room."),
    Cue(9.2, 12.0, "Take your time and think about it."),
    Cue(20.0, 22.0, "Yes."),
]
OTHERS = [
    "Stir the soup and add a little salt.", "The train to the coast leaves at nine.", "She won the race by a second.",
    "My grandmother had a farm with goats.", "The engine needs new oil every year.", "It will rain in the north.",
    "We painted the kitchen blue last week.", "The match ended in a draw.", "He plays the violin in an orchestra.",
    "The museum is closed on Mondays.", "Her horse jumped over the fence.", "Bread is baked at four in the morning.",
    "The glacier melts a little more each year.", "Turn the screw to the left.", "Two cups of flour and an egg.",
    "He scored in the last minute.", "The bridge was built of stone.", "Wolves hunt at night.", "Plant them in spring.",
]  # fmt: skip
OTHER_TALK = [Cue(4.0 * i, 4.0 * i + 3, text) for i, text in enumerate(OTHERS)]


class Sentences(WordVectors):
    """The encoder of cues, with the dimension of drawn clips."""

    def __init__(self) -> None:
        super().__init__()
        self._real = installed_speech_encoder()
        if self._real is None:
            pytest.skip("the text encoder is not installed")

    def encode(self, texts: list[str]) -> np.ndarray:  # type: ignore[override]
        return self._real.encode(texts)


def _ask(folder: Path, catalog: Catalog, text: str) -> Results:
    options = SearchOptions(streams=("speech",))
    return Engine(OpenLibrary(folder, catalog, Sentences())).search(Query.parse(text), options)  # type: ignore[arg-type]


def _library(folder: Path) -> Catalog:
    films = {name: nothing(24, at) for at, name in enumerate(("talk.mp4", "other.mp4"))}
    return fill(folder, films, {"talk.mp4": TALK, "other.mp4": OTHER_TALK}, speech=Sentences())


@pytest.mark.parametrize("passages_too", [False, True])
def test_a_threat_over_two_cues_is_found_in_other_words(tmp_path: Path, passages_too: bool) -> None:
    catalog = _library(tmp_path)
    if passages_too:
        fill_speech(catalog, LibraryPaths(tmp_path), Sentences())
        assert catalog.get(PASSAGES_SETTING) is True
    hits = _ask(tmp_path, catalog, "said:'somebody threatens to publish a secret recording'".replace("'", '"'))
    assert (hits[0].name, hits[0].start) == ("talk.mp4", 3.2)
    assert hits[0].end <= 9.0, "the cues that match, not the whole passage"
    assert hits[0].level == "fair", "meaning alone is never strong"
    assert hits[0].meant is not None
    said = hit_record(hits[0])["said"]
    assert [cue["text"] for cue in said if "meaning" in cue] == [
        cue.text for cue in TALK[1:3] if cue.end <= hits[0].end
    ]
    shown = table(hits[:1], hits.query, explain=True)
    assert f"said: meaning {hits[0].meant[2]:.2f} at 0:03.2" in shown
    assert not _ask(tmp_path, catalog, 'said:"how volcanoes are formed"')


def test_exact_words_go_before_the_same_meaning(tmp_path: Path) -> None:
    hits = _ask(tmp_path, _library(tmp_path), 'said:"add salt to the soup"')
    assert (hits[0].level, hits[0].said[0].text) == ("strong", OTHERS[0])
    assert "said: words add, salt, soup" in table(hits[:1], hits.query, explain=True)


def test_rows_are_those_of_cues_and_then_of_passages_of_several_cues() -> None:
    encoder = WordVectors()
    (rows,) = encode_cues(encoder, [TALK])
    assert rows is not None
    found = passages(TALK)
    assert found == [range(3), range(2, 4), range(4, 5)]
    assert len(rows) == len(TALK) + 2
    assert np.allclose(rows[len(TALK)], encoder.one(" ".join(cue.text for cue in TALK[:3])))
    assert encode_cues(encoder, [[], TALK[:1]])[0] is None


def test_passages_that_were_not_encoded_have_the_mean_of_their_cues() -> None:
    (rows,) = encode_cues(WordVectors(), [TALK])
    assert rows is not None
    asked = MeaningQuery(rows[:3].sum(axis=0) / np.linalg.norm(rows[:3].sum(axis=0)), Scale(0.0, 0.01, 60))
    spoken = [(TALK, passages(TALK))]
    block = VideoRows([7], np.array([0, len(TALK)]), rows[: len(TALK)])
    first, *_ = find_passages(block, spoken, asked)
    assert (first.rows, round(first.score, 4)) == (range(3), 1.0)
    both = VideoRows([7, 8], np.array([0, len(rows), len(rows) + len(TALK)]), np.concatenate([rows, block.rows]))
    two = [one for one in find_passages(both, spoken * 2, asked) if one.video == 1]
    assert two[0].rows == range(len(rows), len(rows) + 3), "others in the same block change nothing"
    assert two[0].score == first.score
    less = VideoRows([7], np.array([0, 2]), rows[:2])
    assert find_passages(less, spoken, asked) == [], "cues that have just been replaced"


def test_the_cues_shown_of_a_passage_are_those_that_are_near() -> None:
    """Of four cues the second and third are near; the longest run that is nearly as near as the best is shown."""
    query, other = np.eye(2, dtype=np.float32)
    away = 0.95 * other - 0.3 * query
    rows = np.stack([away, query, 0.9 * query + 0.1 * other, away])
    asked = MeaningQuery(query, Scale(0.0, 0.01, 60))
    cues = [Cue(n, n + 1, text) for n, text in enumerate(("one thing", "a red boat", "a blue boat", "last thing"))]
    (found,) = find_passages(VideoRows([1], np.array([0, 4]), rows), [(cues, [range(4)])], asked)
    assert (found.rows, found.best) == (range(4), range(1, 3))


def test_a_larger_library_asks_for_more() -> None:
    scores = np.random.default_rng(0).normal(0.05, 0.08, 500).astype(np.float32)
    least = [MeaningQuery.of(np.zeros(2, np.float32), scores, rows).least for rows in (10, 60, 300, 10_000)]
    assert least[0] == least[3] == MIN_MEANING[1], "few cues cannot tell what stands out"
    assert MIN_MEANING[0] == least[1] < least[2] < least[3]
    asked = MeaningQuery.of(np.zeros(2, np.float32), scores + 0.35, 60)
    assert asked.level(0.45) is None, "all that is said is as near"
    asked = MeaningQuery.of(np.zeros(2, np.float32), scores, 60)
    assert [asked.level(score) for score in (0.2, 0.33, 0.4, 0.9)] == [None, "weak", "fair", "fair"]


def test_a_weak_hit_by_words_gives_way_to_the_passage_it_is_in() -> None:
    weak, sure = StreamHit(1, 4.0, 6.0, 1.0, "weak"), StreamHit(2, 0.0, 2.0, 3.0, "strong")
    meant = StreamHit(1, 3.0, 9.0, 0.5, "fair", meant=(3.0, 9.0, 0.5))
    same = StreamHit(2, 1.0, 9.0, 0.4, "fair", meant=(1.0, 9.0, 0.4))
    fused = fuse_hits([weak, sure], [meant, same])
    assert [(hit.video, hit.start, hit.level) for hit in fused] == [(2, 0.0, "strong"), (1, 3.0, "fair")]
    assert fused[0].meant == same.meant


def test_a_passage_counts_whose_cues_alone_mean_something_else() -> None:
    """The vector of a passage is not made of those of its cues: all of them may point away from the query."""
    query = np.array([1, 0, 0], np.float32)
    rows = np.array([[-0.6, 0.8, 0], [-0.8, 0, 0.6], [0.8, 0.6, 0]], np.float32)
    asked = MeaningQuery(query, Scale(0.0, 0.1, 60))
    cues = [Cue(0, 2, "Never again"), Cue(2, 4, "says the raven")]
    block = VideoRows([1], np.array([0, 3]), rows)
    (found,) = find_passages(block, [(cues, passages(cues))], asked)
    assert (found.best, round(found.score, 3)) == (range(1), 0.8)
