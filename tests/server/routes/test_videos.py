from __future__ import annotations

from fastapi.testclient import TestClient

from momentseek import __version__


def test_status(client: TestClient) -> None:
    status = client.get("/api/v1/status").json()
    assert status["version"] == __version__
    assert status["library"]["videos"] == 2
    assert status["library"]["failures"] == 1
    assert status["library"]["encoder"]["spec"] == "colours"
    assert status["localiser"] in status["localisers"]
    assert status["streams"] == ["vision", "speech", "name"]
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


def test_cues(client: TestClient) -> None:
    cues = client.get("/api/v1/videos/1/cues").json()["cues"]
    assert [(c["start"], c["end"], c["text"]) for c in cues] == [
        (1.0, 3.0, "The dogs were running."),
        (7.0, 9.0, "It is green."),
    ]


def test_what_is_not_there(client: TestClient) -> None:
    for path in ("", "/cues", "/curve?q=x", "/media", "/thumbnail"):
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
