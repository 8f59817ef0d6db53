"""Correcting what a recogniser heard, in the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from momentseek.api.library import Library
from momentseek.library.cue_vectors import replace_cues
from momentseek.library.tracks.speech import Transcript, finish_transcript, spoken_cues
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.speech.transcript import cues_from_words


def test_a_line_that_was_heard_is_corrected(
    serving: Callable[..., Any], demo: Path, open_page: Callable[..., Any], tmp_path: Path
) -> None:
    shutil.copytree(demo / "library", tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        video = next(video for video in library.videos() if video.name == "workshop.mp4")
        words = [SpokenWord(1.0 + i / 2, 1.5 + i / 2, text) for i, text in enumerate((" Keep", " the", " tribal."))]
        heard = Transcript(video.id, "whisper-base", "en", tuple(cues_from_words(words)), fingerprint="print")
        replace_cues(
            library.store,
            video.id,
            spoken_cues(heard),
            lambda: finish_transcript(library.store.catalog, heard, video.duration),
        )
    page = open_page(serving(tmp_path / "library").address + f"#v={video.id}&t=0,5")
    page.get_by_role("button", name="Correct the line at 0:01").click()
    field = page.get_by_role("textbox", name="What is said at 0:01")
    field.fill("never mind")
    field.press("Escape")
    page.get_by_text("Keep the tribal.").wait_for()
    page.get_by_role("button", name="Correct the line at 0:01").click()
    field.fill("Keep the tripod.")
    field.press("Enter")
    page.locator(".line", has_text="Keep the tripod.").get_by_text("corrected").wait_for()
    with Library.open(tmp_path / "library") as library:
        assert [cue.text for cue in library.store.catalog.cues(video.id)] == ["Keep the tripod."]
