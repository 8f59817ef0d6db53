"""What is said, over HTTP: read by everybody, corrected where a machine heard it and the server allows changes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import replace_cues
from momentseek.library.paths import hold_lock
from momentseek.library.tracks.speech import Transcript, finish_transcript, spoken_cues
from momentseek.media.subtitles.cues import SpokenWord
from momentseek.recognition.speech.transcript import spoken_cue

Serve = Callable[..., TestClient]


def test_cues(client: TestClient) -> None:
    cues = client.get("/api/v1/videos/1/cues").json()["cues"]
    assert [(c["start"], c["end"], c["text"], c["edited"]) for c in cues] == [
        (1.0, 3.0, "The dogs were running.", False),
        (7.0, 9.0, "It is green.", False),
    ]


@pytest.fixture
def heard(light: None, place: Path) -> int:
    """The id of a video in which a recogniser heard two words."""
    words = tuple(SpokenWord(1.0 + i, 1.5 + i, text) for i, text in enumerate((" green", " glass")))
    with Library.open(place) as library:
        catalog = library.store.catalog
        (silent,) = [video.id for video in library.videos() if not video.cues]
        found = Transcript(silent, "whisper-base", "en", (spoken_cue(words),), fingerprint="print")
        replace_cues(library.store, silent, spoken_cues(found), lambda: finish_transcript(catalog, found, 3.0))
    return silent


def correction(**more: Any) -> dict[str, Any]:
    return {"start": 1.0, "end": 2.5, "was": "green glass", "text": "green grass", **more}


def test_recognised_words_are_marked_and_timed(serve: Serve, place: Path, heard: int) -> None:
    subtitled = serve(library=place).get("/api/v1/videos/1/cues").json()
    assert (subtitled["heard_by"], subtitled["cues"][0]["words"]) == (None, [])
    answer = serve(library=place).get(f"/api/v1/videos/{heard}/cues").json()
    assert answer["heard_by"] == "whisper-base"
    (cue,) = answer["cues"]
    assert (cue["text"], [w["text"] for w in cue["words"]]) == ("green glass", [" green", " glass"])
    assert cue["words"][1]["start"] == 2.0


def test_a_corrected_cue_keeps_its_times_and_is_found(serve: Serve, place: Path, heard: int) -> None:
    client = serve(library=place)
    answer = client.put(f"/api/v1/videos/{heard}/cues", json=correction())
    assert answer.status_code == 200
    (cue,) = answer.json()["cues"]
    assert (cue["start"], cue["end"], cue["text"], cue["edited"]) == (1.0, 2.5, "green grass", True)
    assert [w["start"] for w in cue["words"]] == [1.0, 1.5]  # the new word gets the time after the one that was heard
    assert client.get(f"/api/v1/videos/{heard}/cues").json() == answer.json()
    found = client.get("/api/v1/search", params={"q": 'said:"green grass"'}).json()["hits"]
    assert (found[0]["video_id"], found[0]["level"]) == (heard, "strong")
    empty = client.put(f"/api/v1/videos/{heard}/cues", json=correction(was="green grass", text="")).json()
    assert empty["cues"] == []
    with closing(Catalog(place)) as catalog:
        assert catalog.videos([heard])[0].cues == 0


def test_what_cannot_be_corrected_is_refused(serve: Serve, place: Path, heard: int) -> None:
    client = serve(library=place)
    subtitles = client.put("/api/v1/videos/1/cues", json=correction(end=3.0, was="The dogs were running."))
    assert (subtitles.status_code, "subtitles" in subtitles.json()["error"]["message"]) == (409, True)
    late = client.put(f"/api/v1/videos/{heard}/cues", json=correction(was="green gloss"))
    assert (late.status_code, "changed meanwhile" in late.json()["error"]["message"]) == (409, True)
    assert client.put("/api/v1/videos/999/cues", json=correction()).status_code == 404
    assert client.put(f"/api/v1/videos/{heard}/cues", json=correction(text="x" * 2001)).status_code == 422
    closed = serve(place, allow_changes=False).put(f"/api/v1/videos/{heard}/cues", json=correction())
    assert (closed.status_code, "--changes" in closed.json()["error"]["message"]) == (403, True)
    assert client.get(f"/api/v1/videos/{heard}/cues").json()["cues"][0]["text"] == "green glass"


def test_while_videos_are_added_a_correction_is_asked_for_again(serve: Serve, place: Path, heard: int) -> None:
    client = serve(library=place)
    with hold_lock(place):
        busy = client.put(f"/api/v1/videos/{heard}/cues", json=correction())
    assert (busy.status_code, busy.json()["error"]["code"], busy.headers["retry-after"]) == (503, "busy", "2")
    assert client.put(f"/api/v1/videos/{heard}/cues", json=correction()).status_code == 200
