"""What is only said, and what is only written, is found: real sound, real pictures, the real recogniser and reader."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from momentseek.api.library import Library
from momentseek.benchmarks.demo.filming import make_films
from momentseek.benchmarks.demo.films import SLIDE_FILM, SLIDE_QUERY, SPOKEN_FILM, SPOKEN_QUERY

for module in ("av", "onnxruntime", "skimage", "faster_whisper", "espeakng_loader", "rapidocr"):
    pytest.importorskip(module)


@pytest.mark.figures
def test_film_is_found_by_its_speech_and_its_text_on_screen(tmp_path: Path) -> None:
    films = make_films(tmp_path / "films", [SPOKEN_FILM, SLIDE_FILM])
    with Library.open(tmp_path / "library", create=True) as library:
        library.store.options = replace(library.store.options, transcriber="whisper-base")
        report = library.add(films)
        assert (report.added, report.heard) == (2, 1)
        library.ocr([SLIDE_FILM.name])
        for query in (SPOKEN_QUERY, SLIDE_QUERY):
            first = library.search(query.text)[0]
            start, end = query.interval
            assert (first.name, first.level) == (query.film, "strong")
            assert start - 0.5 <= first.start < first.end <= end + 0.5
        (phrase,) = library.search('said:"night train"')
        (cue,) = phrase.said
        assert cue.start + 0.5 < phrase.start < phrase.end < cue.end  # bounded by its words
        assert 0.4 < phrase.end - phrase.start < 1.6
        assert library.verify().clean
