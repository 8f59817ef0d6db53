from __future__ import annotations

from fastapi.testclient import TestClient

PICTURE = "/api/v1/videos/1/thumbnail"


def test_a_picture_may_be_kept_forever(client: TestClient) -> None:
    answer = client.get(PICTURE, params={"t": 2})
    assert answer.headers["content-type"] == "image/webp"
    assert answer.content[:4] == b"RIFF"
    assert "immutable" in answer.headers["cache-control"]
    again = client.get(PICTURE, params={"t": 2}, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_other_times_and_widths_are_other_pictures(client: TestClient) -> None:
    tags = {client.get(PICTURE, params=p).headers["etag"] for p in ({"t": 2}, {"t": 8}, {"t": 2, "w": 640})}
    assert len(tags) == 3


def test_a_time_past_the_end_gives_the_last_picture(client: TestClient) -> None:
    assert client.get(PICTURE, params={"t": 9999}).content == client.get(PICTURE, params={"t": 12}).content


def test_what_is_out_of_bounds_is_refused(client: TestClient) -> None:
    for params in ({"t": -1}, {"t": "nan"}, {"t": "inf"}, {"w": 0}, {"w": 100_000}, {"path": "/etc/passwd"}):
        assert client.get(PICTURE, params=params).status_code == 422
    assert client.get("/api/v1/videos/77/thumbnail").status_code == 404
