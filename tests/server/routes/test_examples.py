"""Searching by a moment or a picture over HTTP."""

from __future__ import annotations

import base64
import io

import pytest
from fastapi.testclient import TestClient
from PIL import Image

LIKE, PICTURE = "/api/v1/search/like", "/api/v1/search/picture"


def encoded(colour: tuple[int, int, int]) -> str:
    out = io.BytesIO()
    Image.new("RGB", (32, 24), colour).save(out, "JPEG")
    return base64.b64encode(out.getvalue()).decode()


def test_what_looks_like_a_moment(client: TestClient, ids: dict[str, int]) -> None:
    moment = f"{ids['one.mp4']}:0.000-6.000"
    answer = client.get(LIKE, params={"moment": moment, "all": True}).json()
    first = answer["hits"][0]
    assert first["name"].startswith("inner/two")
    assert first["end"] > 4.5
    assert not any(hit["name"] == "one.mp4" and hit["start"] < 6 for hit in answer["hits"])
    pages = [client.get(LIKE, params={"moment": moment, "all": True, "k": 1, "offset": at}).json() for at in range(2)]
    assert [hit for page in pages for hit in page["hits"]] == answer["hits"][:2]
    assert client.get(LIKE, params={"moment": "99:0.000-6.000"}).status_code == 404
    assert client.get(LIKE, params={"moment": f"{ids['one.mp4']}:90.000-96.000"}).status_code == 404
    assert client.get(LIKE, params={"moment": "red"}).status_code == 422
    words = client.get(LIKE, params={"moment": moment, "where": "a dog"})
    assert (words.status_code, "takes no words" in words.json()["error"]["message"]) == (400, True)


def test_what_looks_like_a_picture(client: TestClient) -> None:
    answer = client.post(PICTURE, json={"picture": encoded((20, 20, 220)), "all": True})
    assert answer.status_code == 200, answer.text
    assert answer.json()["hits"][0]["name"].startswith("inner/two")
    assert answer.json()["hits"][0]["start"] == 0


@pytest.mark.parametrize("picture", ["####", base64.b64encode(b"no picture").decode(), "A" * 60_001])
def test_what_is_no_picture(client: TestClient, picture: str) -> None:
    answer = client.post(PICTURE, json={"picture": picture})
    assert answer.status_code in (400, 422)
    assert "picture" in answer.json()["error"]["message"]
