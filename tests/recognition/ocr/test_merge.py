"""Lines of neighbouring frames become lines with times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, merge_lines

LEFT, RIGHT = Box(0.1, 0.1, 0.3, 0.05), Box(0.6, 0.7, 0.3, 0.05)


def _frames(*read: list[tuple[str, Box, float]] | None) -> list[OcrFrame]:
    return [
        OcrFrame(4.0 * i, 4.0 * i + 4, 4.0 * i + 2, None if some is None else tuple(OcrLine(*line) for line in some))
        for i, some in enumerate(read)
    ]


def _spans(*read: list[tuple[str, Box, float]] | None) -> list[tuple[str, float, float]]:
    return [(line.text, line.start, line.end) for line in merge_lines(_frames(*read))]


def test_line_lasts_from_first_to_last_appearance() -> None:
    title = [("Chapter One", LEFT, 0.9)]
    assert _spans([], title, title, []) == [("Chapter One", 4.0, 12.0)]


def test_unchanged_frame_extends_its_lines() -> None:
    assert _spans([("Chapter One", LEFT, 0.9)], None, None, []) == [("Chapter One", 0.0, 12.0)]


def test_line_missed_once_is_one_line() -> None:
    title = [("Chapter One", LEFT, 0.9)]
    assert _spans(title, [], title) == [("Chapter One", 0.0, 12.0)]
    assert _spans(title, [], [], title) == [("Chapter One", 0.0, 4.0), ("Chapter One", 12.0, 16.0)]


def test_most_frequent_reading_wins() -> None:
    read = [[(text, LEFT, 0.9)] for text in ("Chapter One", "Chapter Onc", "Chapter One")]
    assert _spans(*read) == [("Chapter One", 0.0, 12.0)]


def test_similar_lines_in_other_places_are_separate() -> None:
    assert _spans([("Platform 1", LEFT, 0.9)], [("Platform 2", RIGHT, 0.9)]) == [
        ("Platform 1", 0.0, 4.0),
        ("Platform 2", 4.0, 8.0),
    ]


def test_line_keeps_its_best_frame_and_box() -> None:
    moved = Box(0.2, 0.1, 0.3, 0.05)
    (line,) = merge_lines(_frames([("EXIT", LEFT, 0.85)], [("Exit", moved, 0.99)]))
    assert (line.at, line.box, line.score, line.text) == (6.0, moved, 0.99, "Exit")


words = st.sampled_from(["alpha", "alpna", "beta", "gamma rays"])
lines = st.builds(OcrLine, words, st.sampled_from([LEFT, RIGHT]), st.floats(0.8, 1.0))


@given(st.lists(st.none() | st.lists(lines, max_size=3), max_size=8))
def test_no_line_is_lost_or_invented(read: list[list[OcrLine] | None]) -> None:
    frames = [
        OcrFrame(i, i + 1.0, i + 0.5, None if some is None else tuple(some)) for i, some in enumerate(map(_copy, read))
    ]
    merged = merge_lines(frames)
    seen = [line for frame in frames for line in frame.lines or ()]
    assert len(merged) <= len(seen)
    assert {line.text for line in merged} <= {line.text for line in seen}
    for frame in frames:
        for line in frame.lines or ():  # every sight lies in a line that could be it
            assert any(one.start <= frame.start and frame.end <= one.end for one in merged), line
    assert all(line.start <= line.at <= line.end for line in merged)


def _copy(some: list[OcrLine] | None) -> list[OcrLine] | None:
    return None if some is None else list(some)
