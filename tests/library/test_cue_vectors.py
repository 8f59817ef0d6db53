"""Passages of what is said get vectors with a video, and with the next add in a library made before there were any."""

from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.library import cue_vectors
from momentseek.library.cue_vectors import PASSAGES_SETTING, vector_texts
from momentseek.library.database import SPEECH
from momentseek.library.store import LibraryStore

SUBTITLES = """1
00:00:00,200 --> 00:00:00,900
The sky is clear.

2
00:00:01,000 --> 00:00:02,000
Nobody speaks for hours.
"""


@pytest.fixture
def talk(films: Path) -> Path:
    (films / "b.srt").write_text(SUBTITLES)
    return films


def rows(library: LibraryStore) -> list[int]:
    return [segment.rows for segment in library.snapshot().speech]


def test_an_added_video_has_vectors_of_cues_and_passages(library: LibraryStore, talk: Path) -> None:
    library.add(talk)
    assert rows(library) == [3]
    assert vector_texts(library.catalog.own_cues(2, SPEECH)) == [
        "The sky is clear.", "Nobody speaks for hours.", "The sky is clear. Nobody speaks for hours.",
    ]  # fmt: skip
    assert library.catalog.get(PASSAGES_SETTING) is True
    assert library.verify().clean


def test_an_older_library_is_sound_and_gets_passages_with_the_next_add(
    library: LibraryStore, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(cue_vectors, "vector_texts", lambda cues: [cue.text for cue in cues])
        library.add(talk)
        with library.catalog.changes() as database:
            database.execute("DELETE FROM settings WHERE key = ?", (PASSAGES_SETTING,))
    assert rows(library) == [2]
    assert library.verify().clean
    library.add(talk)
    assert rows(library) == [3]
    assert library.verify().clean


def test_too_many_rows_are_a_fault(library: LibraryStore, talk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as wrong:
        wrong.setattr(cue_vectors, "vector_texts", lambda cues: [cue.text for cue in cues] * 2)
        library.add(talk)
    assert "has 4 rows for 2 cues" in library.verify().problems[0]
