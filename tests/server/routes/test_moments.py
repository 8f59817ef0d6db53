from __future__ import annotations

import pytest
from fastapi.testclient import TestClient


def test_every_hit_names_a_moment_that_can_be_looked_up(client: TestClient) -> None:
    hits = client.get("/api/v1/search", params={"q": "green dogs", "all": True}).json()["hits"]
    assert hits
    for hit in hits:
        found = client.get(hit["url"]).json()
        assert (found["id"], found["url"]) == (hit["moment"], hit["url"])
        for key in ("video_id", "name", "duration", "rate"):
            assert found[key] == hit[key]
        assert found["start"] == pytest.approx(hit["start"], abs=0.0005)
        assert found["end"] == pytest.approx(hit["end"], abs=0.0005)
        assert [cue["text"] for cue in found["said"]] == [cue["text"] for cue in hit["said"]]
        assert client.get(found["thumbnail"]).headers["content-type"] == "image/webp"


def test_links_lead_to_the_moment(client: TestClient, ids: dict[str, int]) -> None:
    one = ids["one.mp4"]
    found = client.get(f"/api/v1/moments/{one}:1.000-7.500").json()
    assert found["media"] == f"/api/v1/videos/{one}/media#t=1.000,7.500"
    assert found["page"] == f"/#v={one}&t=1.000,7.500"
    assert [cue["text"] for cue in found["said"]] == ["The dogs were running.", "It is green."]


@pytest.mark.parametrize(
    ("id", "status"),
    [
        ("99:1.000-2.000", 404), ("1:1.000-1.000", 404), ("1:3.000-2.000", 404), ("1:9000.000-9001.000", 404),
        ("1:1.000-9000.000", 404), ("1:1-2", 422), ("one", 422), ("0:1.000-2.000", 422), ("1:-1.000-2.000", 422),
        ("1:1.000-2.000x", 422), ("1:١.000-2.000", 422),
    ],
)  # fmt: skip
def test_what_names_no_moment(client: TestClient, id: str, status: int) -> None:
    answer = client.get(f"/api/v1/moments/{id}")
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
