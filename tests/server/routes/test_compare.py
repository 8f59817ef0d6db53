from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

URL = "/api/v1/compare"


def test_two_setups_side_by_side(client: TestClient) -> None:
    found = client.get(URL, params={"q": "green", "a": "", "b": "localiser=whole;streams=vision", "k": 5}).json()
    assert found["query"] == "green"
    assert found["a"]["settings"] == "localiser=height;streams=vision,speech,text,described,name"
    assert found["b"]["settings"] == "localiser=whole;streams=vision"
    assert all(hit["end"] - hit["start"] == hit["duration"] for hit in found["b"]["hits"])
    assert found["a"]["hits"][0]["thumbnail"].startswith("/api/v1/videos/")


def test_each_side_is_the_search_itself(client: TestClient) -> None:
    found = client.get(
        URL, params={"q": "green", "a": "all=false", "b": "localiser=window;fusion=scores;all=true"}
    ).json()
    for side, params in (("a", {}), ("b", {"localiser": "window", "fusion": "scores", "all": True})):
        hits = client.get("/api/v1/search", params={"q": "green", **params}).json()["hits"]
        assert [{k: v for k, v in hit.items() if k != "other"} for hit in found[side]["hits"]] == hits


def test_a_setup_beside_itself_shares_everything(client: TestClient) -> None:
    found = client.get(URL, params={"q": "red", "a": "", "b": ""}).json()
    assert [hit["other"] for hit in found["a"]["hits"]] == [hit["rank"] for hit in found["b"]["hits"]]
    assert found["shared"] == len(found["a"]["hits"]) > 1


def test_moments_that_hardly_overlap_are_not_the_same(client: TestClient) -> None:
    found = client.get(URL, params={"q": "blue", "a": "streams=vision", "b": "localiser=whole"}).json()
    for hit in found["a"]["hits"]:
        share = (hit["end"] - hit["start"]) / hit["duration"]
        assert (hit["other"] is None) == (share < 0.5)


@pytest.mark.parametrize("params", [
    {"q": "red", "a": ""}, {"a": "", "b": ""}, {"q": "red", "a": "localiser=none", "b": ""},
    {"q": "red", "a": "x=1", "b": ""}, {"q": "red", "a": "fusion=sum", "b": ""},
    {"q": "red", "a": "", "b": "streams=sound"}, {"q": "red", "a": "", "b": "", "k": "101"},
])  # fmt: skip
def test_what_cannot_be_compared(client: TestClient, params: dict[str, str]) -> None:
    answer = client.get(URL, params=params)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


def test_an_empty_query_is_refused(client: TestClient) -> None:
    assert client.get(URL, params={"q": " ", "a": "", "b": ""}).status_code == 400
