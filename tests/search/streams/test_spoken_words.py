"""A phrase that a recogniser heard is bounded by its sentence; one of subtitles by its cue."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_library import fill, nothing

from momentseek.library.catalog import Catalog
from momentseek.library.tracks.speech import Transcript, finish_transcript
from momentseek.media.subtitles.cues import Cue, SpokenWord
from momentseek.recognition.speech.transcript import cues_from_words
from momentseek.search.hit import StreamHit
from momentseek.search.streams.phrases import find_phrases
from momentseek.search.streams.speech import WORD_MARGIN_SECONDS, bound_by_words, sentence_bounds

TEXT = "It was the best of times, it was the worst of times."


def words(text: str, start: float) -> list[SpokenWord]:
    return [SpokenWord(start + i / 2, start + i / 2 + 0.4, f" {word}") for i, word in enumerate(text.split())]


def library(folder: Path) -> Catalog:
    """Two videos that say the same: subtitles say it in one, a recogniser heard it in the other."""
    catalog = fill(folder, {"read.mp4": nothing(8, 0), "heard.mp4": nothing(8, 1)}, {"read.mp4": [Cue(1, 7, TEXT)]})
    heard = cues_from_words([*words(TEXT, 1.0), *words("We had everything", 8.0)])
    with catalog.changes():
        finish_transcript(catalog, Transcript(2, "whisper-base", "en", tuple(heard), fingerprint="print"), 12.0)
    return catalog


def bounds(catalog: Catalog, *phrases: str) -> dict[int, tuple[float, float, float | None]]:
    hits = bound_by_words(catalog, find_phrases(catalog, phrases), phrases)
    return {hit.video: (hit.start, hit.end, hit.peak) for hit in hits}


def test_a_phrase_is_bounded_by_its_sentence_and_shown_at_its_words(tmp_path: Path) -> None:
    catalog, margin = library(tmp_path), WORD_MARGIN_SECONDS
    assert bounds(catalog, "best of times")[1] == (1.0, 7.0, None)
    for phrases, start, end, peak in (
        (["best of times"], 1.0, 6.9, 3.2), (["worst"], 1.0, 6.9, 5.7), (["worst", "best"], 1.0, 6.9, 4.2),
        (["We had"], 8.0, 9.4, 8.45),
    ):  # fmt: skip
        assert bounds(catalog, *phrases)[2] == pytest.approx((start - margin, end + margin, peak)), phrases


def test_a_sentence_that_never_ends_is_bounded_by_the_words() -> None:
    said = words(" ".join(["and"] * 60), 0.0)
    assert sentence_bounds(said, 10.0, 10.9) == (10.0, 10.9)
    assert sentence_bounds(said[:8], 1.0, 1.4) == (0.0, 3.9)
    assert sentence_bounds([], 1.0, 1.4) == (1.0, 1.4)


def test_a_hit_whose_words_are_not_there_stays_as_it_is(tmp_path: Path) -> None:
    catalog = library(tmp_path)
    hit = StreamHit(2, 1.0, 6.9, 0.5, "strong")
    assert bound_by_words(catalog, [hit], ["never said"]) == [hit]
    assert bound_by_words(catalog, [], ["never said"]) == []
