from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from fastapi.testclient import TestClient

from momentseek import __version__
from momentseek.library.catalog import Catalog
from momentseek.library.database import CAPTIONS, OCR
from momentseek.library.timed_text import Maker, finish_track
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.ocr.lines import Box, OcrFrame, OcrLine, merge_lines


def test_status(client: TestClient) -> None:
    status = client.get("/api/v1/status").json()
    assert status["version"] == __version__
    assert status["library"]["videos"] == 2
    assert status["library"]["failures"] == 1
    assert status["library"]["encoder"]["spec"] == "colours"
    assert status["localiser"] in status["localisers"]
    assert status["streams"] == ["vision", "speech", "text", "described", "name"]
    assert status["busy"] is False


def test_videos_by_page_and_name(client: TestClient) -> None:
    both = client.get("/api/v1/videos").json()
    assert (both["total"], [v["name"] for v in both["videos"]]) == (2, ["inner/two <b>&\"'.webm", "one.mp4"])
    second = client.get("/api/v1/videos", params={"offset": 1, "limit": 1}).json()
    assert (second["total"], second["videos"]) == (2, both["videos"][1:])
    assert client.get("/api/v1/videos", params={"name": "ONE"}).json()["videos"] == both["videos"][1:]
    assert client.get("/api/v1/videos", params={"name": "*"}).json()["total"] == 0


def test_one_video(client: TestClient) -> None:
    video = client.get("/api/v1/videos/1").json()
    assert (video["name"], video["duration"], video["rate"], video["clips"]) == ("one.mp4", 12.0, "10/1", 8)
    assert video["available"]
    assert "path" not in video
    assert isinstance(video["shots"], list)


def test_ocr_text_is_marked_boxed_and_kept_apart_from_speech(serve: Callable[..., TestClient], place: Path) -> None:
    assert serve(library=place).get("/api/v1/videos/1/lines").json() == {"lines": [], "read_by": None}
    box = Box(0.1, 0.2, 0.5, 0.1)
    frames = (OcrFrame(0.0, 4.0, 2.0, (OcrLine("Exit to the st\x02ation", box, 0.9),)),)
    with closing(Catalog(place)) as catalog, catalog.changes():
        finish_track(catalog, OCR, 1, Maker("ppocr-small", "print"), 12.0, merge_lines(frames))
    client = serve(library=place)
    line = {"start": 0.0, "end": 4.0, "text": "Exit to the st ation", "marks": [], "at": 2.0, "box": list(box)}
    assert client.get("/api/v1/videos/1/lines").json() == {"lines": [line], "read_by": "ppocr-small"}
    (hit,) = client.get("/api/v1/search", params={"q": "text:exlt"}).json()["hits"]
    assert (hit["streams"].keys(), hit["written"], hit["peak"]) == ({"text"}, [line | {"marks": [[0, 4]]}], 2.0)
    assert [cue["text"] for cue in hit["said"]] == ["The dogs were running."]
    assert client.get(hit["url"]).json()["written"] == [line]
    curve = client.get("/api/v1/videos/1/curve", params={"q": "text:exit"}).json()
    assert curve["streams"] == {"text": [1, 1, 1, 0, 0, 0, 0, 0]}
    held = client.get("/api/v1/status").json()["library"]
    assert (held["read"], held["lines"], held["heard"]) == (1, 1, 0)
    exported = client.get("/api/v1/export", params={"q": "text:exit", "kind": "json"}).json()
    assert exported["hits"][0]["written"][0]["box"] == list(box)


def test_scene_descriptions_are_marked_and_kept_apart_from_speech(
    serve: Callable[..., TestClient], place: Path
) -> None:
    captions = [Cue(0.0, 4.0, "A kite\x02 over a hill"), Cue(4.0, 12.0, "An empty road")]
    with closing(Catalog(place)) as catalog, catalog.changes():
        finish_track(catalog, CAPTIONS, 1, Maker("eye", "print"), 12.0, captions)
    client = serve(library=place)
    scene = {"start": 0.0, "end": 4.0, "text": "A kite  over a hill", "marks": [], "described_by": "eye"}
    (hit,) = client.get("/api/v1/search", params={"q": "described:kites"}).json()["hits"]
    assert (hit["streams"].keys(), hit["described"], hit["level"]) == (
        {"described"}, [scene | {"marks": [[2, 6]]}], "fair",
    )  # fmt: skip
    assert [cue["text"] for cue in hit["said"]] == ["The dogs were running."]
    assert client.get(hit["url"]).json()["described"] == [scene]
    curve = client.get("/api/v1/videos/1/curve", params={"q": "described:kite"}).json()
    assert curve["streams"] == {"described": [1, 1, 1, 0, 0, 0, 0, 0]}
    told = client.get("/api/v1/videos/1/described").json()
    assert (told["scenes"][0], len(told["scenes"]), told["described_by"]) == (scene, 2, "eye")
    assert client.get("/api/v1/videos/2/described").json() == {"scenes": [], "described_by": None}
    held = client.get("/api/v1/status").json()["library"]
    assert (held["described"], held["captions"], held["heard"]) == (1, 2, 0)
    exported = client.get("/api/v1/export", params={"q": "described:kite", "kind": "json"}).json()
    assert exported["hits"][0]["described"][0]["described_by"] == "eye"
    for kind in ("srt", "html"):
        text = client.get("/api/v1/export", params={"q": "described:kite", "kind": kind}).text
        assert "described by a model: " in text


def test_what_is_not_there(client: TestClient) -> None:
    for path in ("", "/cues", "/lines", "/described", "/curve?q=x", "/media", "/thumbnail"):
        answer = client.get(f"/api/v1/videos/999{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert client.get(f"/api/v1/videos/{10**30}").status_code == 422
    assert client.get("/api/v1/nothing").json()["error"]["code"] == "not_found"
    assert client.put("/api/v1/status", json={}).status_code == 405


def test_failures_have_names_not_paths(client: TestClient, shared: object) -> None:
    answer = client.get("/api/v1/failures")
    [failure] = answer.json()["failures"]
    assert (failure["name"], failure["tries"]) == ("broken.mp4", 1)
    assert "no video" in failure["reason"]
    assert str(shared) not in answer.text
