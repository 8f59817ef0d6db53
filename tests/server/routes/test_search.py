from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.media.subtitles.cues import Cue
from momentseek.search.hit import Hit, StreamRank
from momentseek.search.query import Query
from momentseek.server.hits import hits_out


def test_hits_are_those_of_the_library(client: TestClient, shared: Path) -> None:
    with Library.open(shared / "library") as library:
        found = library.search("green", 20)
    answer = client.get("/api/v1/search", params={"q": "green"}).json()
    assert [(h["video_id"], h["start"], h["end"], h["level"]) for h in answer["hits"]] == [
        (h.video_id, h.start, h.end, h.level) for h in found
    ]
    assert answer["hidden"] == found.hidden
    assert answer["total"] == len(found)
    assert answer["query"] == "green"
    first = answer["hits"][0]
    assert client.get(first["thumbnail"]).status_code == client.get(first["media"]).status_code == 200


def test_get_and_post_answer_alike(client: TestClient) -> None:
    asked = {"q": "dogs running", "k": 3, "offset": 1, "group": "clip", "localiser": "watershed", "all": True}
    got = client.get("/api/v1/search", params={**asked, "streams": "speech,vision"}).json()
    posted = client.post("/api/v1/search", json={**asked, "streams": ["vision", "speech"]}).json()
    for answer in (got, posted):
        assert 0 < answer.pop("took") == 1000 * answer.pop("took_seconds")
    assert got == posted


def test_pages_make_up_the_whole(client: TestClient) -> None:
    def page(**more: int) -> dict[str, list[dict[str, object]]]:
        answer: dict[str, list[dict[str, object]]] = client.get(
            "/api/v1/search", params={"q": "red", "all": True, **more}
        ).json()
        return answer

    whole = page()
    assert len(whole["hits"]) > 1
    assert not whole["more"]
    parts = [page(k=1, offset=at) for at in range(len(whole["hits"]) + 1)]
    assert [hit for part in parts for hit in part["hits"]] == whole["hits"]
    assert parts[0]["more"]
    assert not parts[-1]["more"]


def test_words_that_are_said_are_marked(client: TestClient) -> None:
    hit = client.get("/api/v1/search", params={"q": "running dog", "localiser": "scenes"}).json()["hits"][0]
    [said] = hit["said"]
    assert [said["text"][a:b] for a, b in said["marks"]] == ["dogs", "running"]


def test_streams_and_groups_are_chosen(client: TestClient) -> None:
    heard = client.get("/api/v1/search", params={"q": "running dog", "streams": "speech"}).json()["hits"]
    assert {name for hit in heard for name in hit["streams"]} == {"speech"}
    each = client.get("/api/v1/search", params={"q": "red", "group": "video", "all": True}).json()["hits"]
    assert len({hit["video_id"] for hit in each}) == len(each)


def test_the_fusion_is_chosen(client: TestClient, shared: Path) -> None:
    params = {"q": "green dogs", "fusion": "scores", "all": True}
    found = client.get("/api/v1/search", params=params).json()
    assert client.post("/api/v1/search", json=params).json()["hits"] == found["hits"]
    with Library.open(shared / "library", create=False) as library:
        assert [h["score"] for h in found["hits"]] == [h.score for h in library.search(
            "green dogs", 20, all=True, fusion="scores")]  # fmt: skip
    usual = client.get("/api/v1/search", params={**params, "fusion": "rrf"}).json()
    assert usual["hits"] != found["hits"]
    curve = f"/api/v1/videos/{found['hits'][0]['video_id']}/curve"
    for path in ("/api/v1/search", curve):
        refused = client.get(path, params={"q": "green", "fusion": "score"})
        assert (refused.status_code, "did you mean 'scores'" in refused.text) == (400, True)
    spans = client.get(curve, params={"q": "green dogs", "fusion": "scores"}).json()["spans"]
    assert found["hits"][0]["start"] in {span["start"] for span in spans}


def test_explanations_are_given_when_asked(client: TestClient) -> None:
    hit = client.get("/api/v1/search", params={"q": "green", "explain": True}).json()["hits"][0]
    assert len(hit["curve"]) == 8


@pytest.mark.parametrize(("params", "status"), [
    ({"q": ""}, 400), ({"q": "-dog"}, 400), ({"q": 'a "'}, 400), ({"q": "x", "localiser": "nope"}, 400), ({}, 422),
    ({"q": "x" * 2001}, 422), ({"q": "x", "k": 0}, 422), ({"q": "x", "k": 501}, 422), ({"q": "x", "offset": -1}, 422),
    ({"q": "x", "streams": "vision,smell"}, 422), ({"q": "x", "streams": ""}, 422), ({"q": "x", "group": "a"}, 422),
    ({"q": "x", "locliser": "merge"}, 422),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_sentence(
    client: TestClient, params: dict[str, object], status: int
) -> None:
    answer = client.get("/api/v1/search", params=params)  # type: ignore[arg-type]
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert answer.headers["cache-control"] == "no-store"


def test_an_empty_library_says_so(serve: Callable[..., TestClient], tmp_path: Path) -> None:
    Library.open(tmp_path / "new", create=True, encoder="colours").close()
    answer = serve(tmp_path / "new").get("/api/v1/search", params={"q": "dog"}).json()
    assert answer["hits"] == []
    assert "empty" in answer["note"]


def test_a_curve_has_a_value_for_every_clip(client: TestClient) -> None:
    answer = client.get("/api/v1/videos/1/curve", params={"q": "green", "localiser": "scenes"}).json()
    assert answer["edges"][0] == 0.0
    assert answer["edges"][-1] == 12.0
    seen, heard = answer["streams"]["vision"], answer["streams"]["speech"]
    assert len(seen) == len(heard) == len(answer["edges"]) - 1 == 8
    assert min(seen[4:]) > max(seen[:4])
    assert heard[4] == 1.0
    best = answer["spans"][0]
    assert 6.0 <= best["start"] < best["end"] <= 12.0
    assert [span["rank"] for span in answer["spans"]] == list(range(1, len(answer["spans"]) + 1))


def test_a_curve_keeps_to_the_chosen_streams(client: TestClient) -> None:
    def curve(streams: str, status: int = 200) -> Any:
        answer = client.get("/api/v1/videos/1/curve", params={"q": "green", "streams": streams})
        assert answer.status_code == status, streams
        return answer.json()

    seen, heard = curve("vision"), curve("name, speech")
    assert (list(seen["streams"]), list(heard["streams"])) == (["vision"], ["speech"])
    assert seen["spans"] != heard["spans"]
    for nonsense in ("smell", "vision,", "", "visionspeech"):
        assert "streams" in curve(nonsense, 422)["error"]["message"]


def test_the_curve_of_a_video_with_an_odd_name(client: TestClient, ids: dict[str, int]) -> None:
    [two] = [id for name, id in ids.items() if name.startswith("inner")]
    answer = client.get(f"/api/v1/videos/{two}/curve", params={"q": "blue"}).json()
    assert answer["spans"]
    assert answer["spans"][0]["start"] == 0.0
    assert "speech" not in answer["streams"]


def test_question_about_speech_is_not_answered_by_pictures(client: TestClient) -> None:
    seen = client.get("/api/v1/search", params={"q": "red"}).json()
    assert "vision" in seen["hits"][0]["streams"]
    asked = client.get("/api/v1/search", params={"q": "what did they say about red?", "all": True}).json()
    assert asked["query"] == "said:red"
    assert asked["note"].startswith("read as a question about what is said: red")
    assert not any("vision" in hit["streams"] for hit in asked["hits"])
    dogs = client.get("/api/v1/search", params={"q": "what is said about the dogs?"}).json()["hits"]
    assert dogs[0]["said"][0]["text"] == "The dogs were running."


def test_a_hit_says_what_was_heard() -> None:
    bark = Cue(1.0, 2.5, "dog barking", score=0.9)
    hit = Hit(path=Path("a.mp4"), name="a.mp4", start=1, end=3, streams={"sound": StreamRank(1, 1.9)}, heard=(bark,))
    (out,) = hits_out([hit], Query.parse("a dog barks"))
    assert [sound.model_dump() for sound in out.heard] == [
        {"start": 1.0, "end": 2.5, "label": "dog barking", "score": 0.9}
    ]
