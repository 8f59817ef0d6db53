"""What is written in pictures is found by its words, with a letter wrong too, and apart from what is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from small_library import OpenLibrary, WordVectors, fill, film, nothing

from momentseek.library.catalog import Catalog
from momentseek.library.database import OCR
from momentseek.library.timed_text import Maker, finish_track
from momentseek.library.word_counts import TextRows
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, merge_lines
from momentseek.search.display import table
from momentseek.search.engine import Engine
from momentseek.search.hit import Results, StreamHit
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query
from momentseek.search.streams.timed_text import join_cues, join_lines, judge_texts

Seen = tuple[float, float, str]
BOX = Box(0.1, 0.2, 0.5, 0.1)


def _write(catalog: Catalog, video: int, lines: Sequence[Seen]) -> None:
    """Let lines of a video be read, each in one frame."""
    frames = tuple(OcrFrame(a, b, (a + b) / 2, (OcrLine(text, BOX, 0.9),)) for a, b, text in lines)
    moved = [OcrFrame(f.start + i * 1e-6, f.end, f.at, f.lines) for i, f in enumerate(frames)]  # each has its own frame
    with catalog.changes():
        cues = merge_lines(sorted(moved, key=lambda frame: frame.start))
        finish_track(catalog, OCR, video, Maker("ppocr", "print"), 36.0, cues)


def _library(folder: Path, written: Mapping[str, Sequence[Seen]], cues: Mapping[str, Sequence[Cue]] = {}) -> Catalog:
    catalog = fill(folder, {name: nothing(24, i) for i, name in enumerate(written)}, cues)
    for id, lines in enumerate(written.values(), 1):
        _write(catalog, id, lines)
    return catalog


def _ask(on: Catalog, folder: Path, text: str, **options: object) -> Results:
    return Engine(OpenLibrary(folder, on, WordVectors())).search(Query.parse(text), SearchOptions(**options))  # type: ignore[arg-type]


def search_text(
    on: Catalog, text: str, allowed: Sequence[int] | None = None, *, only_text: bool = False
) -> list[StreamHit]:
    """What the text stream finds."""
    asked = Query.parse(f'text:"{text}"' if only_text else text)
    engine = Engine(OpenLibrary(on.path.parent, on, WordVectors()))  # type: ignore[arg-type]
    hits = engine.search(asked, SearchOptions(k=100, streams=("text",), all=True))
    return [
        StreamHit(hit.video_id, hit.start, hit.end, hit.streams["text"].score, hit.level, hit.peak)
        for hit in hits
        if allowed is None or hit.video_id in allowed
    ]


def test_a_line_is_found_by_its_words_and_more_of_them_are_better(tmp_path: Path) -> None:
    on = _library(
        tmp_path,
        {"a.mp4": [(4, 8, "Sunday market")], "b.mp4": [(8, 12, "Market Street")], "c.mp4": [(0, 4, "Hotel Bristol")]},
    )
    found = search_text(on, "sunday markets", only_text=True)
    assert [(hit.video, hit.start, hit.end, hit.level) for hit in found] == [(1, 4, 8, "strong"), (2, 8, 12, "weak")]
    assert found[0].peak == 6
    assert search_text(on, "the of", only_text=True) == []
    assert search_text(on, "sunday", [2, 3]) == []


def test_lines_at_one_time_are_read_together(tmp_path: Path) -> None:
    on = _library(
        tmp_path, {"a.mp4": [(0, 20, "Annual report"), (8, 12, "Revenue and costs")], "b.mp4": [(0, 4, "Annual leave")]}
    )
    best, *_ = search_text(on, "annual revenue", only_text=True)
    assert (best.video, round(best.start), best.end, best.level) == (1, 8, 12, "strong")


def test_one_wrong_letter_is_found_but_sure_only_where_writing_was_asked_for(tmp_path: Path) -> None:
    on = _library(tmp_path, {"a.mp4": [(4, 8, "Central Stat1on")], "b.mp4": [(0, 4, "Stallion")]})
    assert [(hit.video, hit.level) for hit in search_text(on, "station", only_text=True)] == [(1, "fair")]
    assert search_text(on, "station") == []
    assert [(hit.video, hit.level) for hit in search_text(on, "central")] == [(1, "fair")]
    assert search_text(on, "central heating pipes") == []  # a stray word says nothing about the picture
    assert search_text(on, "hall", only_text=True) == []
    exact = search_text(on, "central", only_text=True)[0]
    wrong = search_text(on, "cehtral", only_text=True)[0]
    assert exact.score > wrong.score


def test_a_query_for_writing_finds_no_speech_and_the_other_way_round(tmp_path: Path) -> None:
    on = _library(
        tmp_path, {"a.mp4": [(4, 8, "platform nine")], "b.mp4": []}, {"b.mp4": [Cue(10, 12, "from platform nine")]}
    )
    (written,) = _ask(on, tmp_path, 'text:"platform nine"')
    assert (written.name, list(written.streams), written.said) == ("a.mp4", ["text"], ())
    assert [(line.text, line.box) for line in written.written] == [("platform nine", BOX)]
    (said,) = _ask(on, tmp_path, 'said:"platform nine"')
    assert (said.name, list(said.streams), said.written) == ("b.mp4", ["speech"], ())
    both = _ask(on, tmp_path, "platform nine", streams=("speech", "text"))
    assert {hit.name: list(hit.streams) for hit in both} == {"a.mp4": ["text"], "b.mp4": ["speech"]}
    assert {hit.name for hit in _ask(on, tmp_path, "platform nine", streams=("text",))} == {"a.mp4"}
    shown = table(both, Query.parse("platform nine"))
    assert "written #1" in shown
    assert "said #1" in shown


def test_what_must_not_be_written_is_left_out(tmp_path: Path) -> None:
    on = _library(tmp_path, {"a.mp4": [(4, 8, "Exit north")], "b.mp4": [(4, 8, "Exit south")]})
    assert [hit.name for hit in _ask(on, tmp_path, "text:exit -text:north")] == ["b.mp4"]


def test_writing_and_picture_of_one_moment_are_one_hit(tmp_path: Path) -> None:
    shown = np.concatenate([nothing(8, 1), film([("lighthouse", 6)], seed=3), nothing(10, 2)])
    films = {"a.mp4": shown, **{f"o{i}.mp4": nothing(24, 10 + i) for i in range(12)}}
    on = fill(tmp_path, films)
    _write(on, 1, [(12.0, 21.0, "The lighthouse"), (30.0, 34.0, "End")])
    first, *_ = _ask(on, tmp_path, "lighthouse")
    assert set(first.streams) == {"vision", "text"}
    assert (first.name, first.level) == ("a.mp4", "strong")


def test_a_library_that_nobody_has_read_answers_as_before(tmp_path: Path) -> None:
    on = fill(tmp_path, {"a.mp4": nothing(24, 1)})
    assert list(_ask(on, tmp_path, "text:exit")) == []


def test_a_word_about_the_picture_does_not_hide_what_is_written(tmp_path: Path) -> None:
    written = {
        "chrome.mp4": [(0.0, 3.0, "Google Chrome"), (6.0, 9.0, "Downloads")],
        "other.mp4": [(0.0, 3.0, f"line {i} of nothing") for i in range(9)],
    }
    catalog = _library(tmp_path, written)
    for asked in ("google chrome logo", "the google chrome icon in blue", "a sign that says google chrome"):
        hits = _ask(catalog, tmp_path, asked, streams=("text",))
        assert [hit.name for hit in hits] == ["chrome.mp4"], asked
    assert not _ask(catalog, tmp_path, "a chrome bumper", streams=("text",)), "one word of two is no proof"
    assert not _ask(catalog, tmp_path, 'text:"google maps"', streams=("text",), all=False)


def _rows(*texts: tuple[int, float, float, float]) -> TextRows:
    """Texts by video, BM25, start and end."""
    video, bm25, start, end = np.array(texts, np.float64).T
    table = np.stack([np.arange(len(texts)), video, bm25, start, end, (start + end) / 2, np.zeros(len(texts))])
    return TextRows(table, np.zeros((len(texts), 0), bool), [""] * len(texts))


def test_cues_are_joined_with_those_that_follow_closely_and_add_words() -> None:
    rows = _rows(
        (1, 3, 0, 2), (1, 1, 3, 5), (1, 2, 6, 8), (1, 1, 12, 14), (2, 1, 0, 1), (2, 1, 16, 17), (2, 1, 2, 15.5)
    )
    red, car = [1.0, 0.0], [0.0, 1.0]
    values = np.array([red, car, red, car, red, car, car])
    order, begins = join_cues(rows, values)
    assert order.tolist() == [0, 1, 2, 3, 4, 6, 5]
    assert begins.tolist() == [0, 2, 3, 4, 5, 6], "the third adds no word, the fourth is late, the last one too long"
    hits = judge_texts("cues", rows, values, np.array([1.0, 3.0]), only_here=True)
    assert [(hit.video, hit.start, hit.end, hit.level) for hit in hits[:2]] == [
        (1, 0.0, 5.0, "strong"), (1, 12.0, 14.0, "fair"),
    ]  # fmt: skip
    assert hits[0].score == 4.0 + 3 / 4


def test_lines_are_joined_while_they_are_on_screen_together() -> None:
    rows = _rows((2, 1, 0, 4), (1, 1, 0, 9), (1, 2, 2, 5), (1, 1, 7, 9), (1, 1, 20, 30))
    red, car = [1.0, 0.0], [0.0, 1.0]
    values = np.array([red, red, car, car, car])
    order, begins = join_lines(rows, values)
    groups = [sorted(group.tolist()) for group in np.split(order, begins[1:])]
    assert sorted(groups) == [[0], [1, 2], [3], [4]], "the group of the first two ends before the fourth begins"
    best, *others = judge_texts("lines", rows, values, np.array([1.0, 1.0]), only_here=False)
    assert (best.video, best.start, best.end, best.level, best.peak) == (1, 2.0, 5.0, "strong", 4.5)
    assert others == [], "one of two words is weak"
    assert judge_texts("captions", rows, values, np.ones(2), only_here=True)[0].level == "fair"
