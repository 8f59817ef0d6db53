from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.server.app import create_app
from momentseek.server.settings import ServerSettings

COMPARE = "/api/v1/compare"
JUDGING = "/api/v1/judging"


@pytest.fixture
def both(serve: Callable[..., TestClient], place: Path, other: Path) -> TestClient:
    return serve(place, compare_with=(other,))


def test_encoders_and_fusions_are_listed(both: TestClient, client: TestClient) -> None:
    status = both.get("/api/v1/status").json()
    assert status["encoders"] == ["colours", "colours-2"]
    assert (status["fusions"], status["fusion"]) == (["rrf", "scores"], "rrf")
    assert client.get("/api/v1/status").json()["encoders"] == ["colours"]


def test_hits_of_a_compared_library_are_hits_of_the_served_one(both: TestClient, other: Path) -> None:
    ids = {video["name"]: video["id"] for video in both.get("/api/v1/videos").json()["videos"]}
    params = {"q": "green", "a": "", "b": "encoder=colours-2", "k": 4}
    found = both.get(COMPARE, params=params).json()
    a, b = found["a"], found["b"]
    assert b["settings"].endswith(";encoder=colours-2")
    assert {hit["video_id"]: hit["name"] for hit in b["hits"]}.items() <= {v: k for k, v in ids.items()}.items()
    assert [hit["rank"] for hit in b["hits"]] == list(range(1, len(b["hits"]) + 1))
    assert (a["left_out"], b["left_out"] > 0) == (0, True)  # three.mp4 is green, and only there
    with Library.open(other, create=False) as library:
        there = [h for h in library.search("green", 50, all=True) if h.name != "three.mp4"]
    assert [(h["name"], h["start"], h["end"]) for h in b["hits"]] == [(h.name, h.start, h.end) for h in there][:4]
    assert {hit["name"] for hit in a["hits"]} == {hit["name"] for hit in b["hits"]}
    assert any(hit["other"] for hit in a["hits"])
    assert both.get(b["hits"][0]["media"]).status_code == 200
    assert [c["text"] for h in b["hits"] for c in h["said"] if h["start"] < 7 < h["end"]][-1:] == ["It is green."]


def test_a_copy_of_a_video_is_the_same_moment(both: TestClient, place: Path, shared: Path, tmp_path: Path) -> None:
    """The served library shows one of two copies, and the one beside it may be brought to the other."""
    with Library.open(place) as library:
        copy = tmp_path / "again" / "aaa.mp4"
        copy.parent.mkdir()
        shutil.copy(shared / "films" / "one.mp4", copy)
        library.add(copy)
    found = both.get(COMPARE, params={"q": "aaa red", "a": "", "b": "encoder=colours-2"}).json()
    top = found["a"]["hits"][0]
    assert top["name"] == "aaa.mp4"
    assert top["other"] is not None


def test_ones_own_encoder_may_be_named(both: TestClient) -> None:
    found = both.get(COMPARE, params={"q": "red", "a": "", "b": "encoder=colours"}).json()
    assert [h["moment"] for h in found["a"]["hits"]] == [h["moment"] for h in found["b"]["hits"]]


@pytest.mark.parametrize(
    ("path", "params"),
    [
        (COMPARE, {"q": "red", "a": "", "b": "encoder=clip"}),
        (f"{JUDGING}/compare", {"a": "encoder=clip", "b": ""}),
        (f"{JUDGING}/evaluation", {"encoder": "clip"}),
    ],
)
def test_unknown_encoder_is_reported_with_the_known_ones(both: TestClient, path: str, params: dict[str, str]) -> None:
    _judge(both)
    answer = both.get(path, params=params)
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert "'clip'" in message
    assert "there are colours, colours-2" in message
    assert "--compare-with" in message


def test_figures_honour_encoder_and_fusion(both: TestClient) -> None:
    pooled = _judge(both)
    usual = both.get(f"{JUDGING}/evaluation").json()
    beside = both.get(f"{JUDGING}/evaluation", params={"encoder": "colours-2", "fusion": "scores"}).json()
    assert beside["settings"].endswith(";fusion=scores;encoder=colours-2")
    assert 0 < beside["value"] <= 1
    assert any("left out" in note for note in beside["notes"])
    assert usual["notes"] == []
    assert beside["judged"] == 1  # its moments were in the pool
    compared = both.get(f"{JUDGING}/compare", params={"a": "", "b": "fusion=scores;encoder=colours-2"}).json()
    assert (compared["a"]["value"], compared["b"]["value"]) == (usual["value"], beside["value"])
    run = both.get(f"{JUDGING}/export", params={"kind": "run", "encoder": "colours-2"}).json()
    assert {m["video_name"] for m in run[str(pooled)]} == {"one.mp4", "inner/two <b>&\"'.webm"}


def test_the_same_encoder_twice_and_a_missing_library_are_refused(place: Path, other: Path, tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="has the encoder 'colours', like "):
        create_app(place, ServerSettings(compare_with=(place,)))
    with pytest.raises(MomentseekError, match="has the encoder 'colours-2', like "):
        create_app(place, ServerSettings(compare_with=(other, other)))
    with pytest.raises(MomentseekError, match="has no library"):
        create_app(place, ServerSettings(compare_with=(tmp_path / "none",)))


def _judge(client: TestClient) -> int:
    """One query, every moment of its pool judged by two people."""
    query: dict[str, Any] = client.post(f"{JUDGING}/queries", json={"text": "green"}).json()
    for who in ("ann", "bob"):
        while True:
            asked = client.get(f"{JUDGING}/queries/{query['id']}/next", params={"annotator": who}).json()
            if (moment := asked["candidate"]) is None:
                break
            body = {"query": query["id"], "candidate": moment["id"], "annotator": who, "relevance": moment["id"] % 5}
            assert client.put(f"{JUDGING}/judgements", json=body).status_code == 200
    return int(query["id"])
