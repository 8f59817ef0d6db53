"""No path from a request reaches the disk: every parameter of every operation is tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

PATHS = [
    "../../../../etc/passwd",
    "/etc/passwd",
    "..\\..\\secret.txt",
    "file:///etc/passwd",
    "....//....//etc/passwd",
    "~/x",
]


def _spellings(path: str) -> list[str]:
    once = quote(path, safe="")
    return [path, once, quote(once, safe=""), path.replace("../", "%2e%2e%2f"), path.replace("../", "..%252f"),
            path.replace("../", "%c0%ae%c0%ae/"), path + "%00.mp4"]  # fmt: skip


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("the secret of the owner")
    return tmp_path / "secret.txt"


def _leaks(text: str) -> bool:
    return "root:" in text or "the secret of the owner" in text


@pytest.mark.slow
@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.figures)])
def test_every_parameter(share: int, client: TestClient, secret: Path) -> None:
    """Every operation gets every fourth spelling, each another first one; `make test-all` tries all with all."""
    document = client.get("/api/v1/openapi.json").json()
    tried = 0
    plain = [*PATHS, str(secret)]
    spellings = list(dict.fromkeys([*_spellings(PATHS[0]), *plain]))
    operations = [(path, *one) for path, methods in document["paths"].items() for one in methods.items()]
    for number, (path, method, operation) in enumerate(operations):
        for spelling in spellings[number % share :: share]:
            for answer in _attempts(client, document, path, method, operation, spelling, spelling in plain):
                tried += 1
                assert answer.status_code < 500
                assert not _leaks(answer.text)
    assert tried > 500 / share


def _attempts(
    client: TestClient, document: Any, path: str, method: str, operation: Any, attempt: str, plain: bool
) -> list[Any]:
    """One request for each place where a value can stand; in a body, where nothing is decoded, plain values only."""
    answers = []
    here = path.replace("{id}", "1")
    if "{id}" in path:
        answers.append(client.request(method, path.replace("{id}", attempt), json=_json(method, {})))
    names = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
    needed = {name: value for name, value in {"q": "x", "kind": "csv"}.items() if name in names}
    for name in names:
        rest = "".join(f"&{k}={v}" for k, v in needed.items() if k != name)
        answers.append(client.request(method, f"{here}?{name}={attempt}{rest}"))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if plain and "$ref" in body:
        shape = document["components"]["schemas"][body["$ref"].rsplit("/", 1)[-1]]
        for name in shape["properties"]:
            answers.append(client.request(method, here, json={name: attempt}))
    return answers


def _json(method: str, value: Any) -> Any:
    return None if method in ("get", "head") else value


@pytest.mark.parametrize("attempt", [*PATHS, "../app.py", "../../pyproject.toml", "__init__.py", "%2e%2e/app.py"])
def test_the_page_has_only_its_own_files(client: TestClient, attempt: str) -> None:
    for prefix in ("/", "/static/", "/js/", "/static/js/../../"):
        for spelling in _spellings(attempt):
            answer = client.get(f"{prefix}{spelling}")
            assert answer.status_code == 404
            assert "import" not in answer.text


def test_folders_are_only_those_that_were_listed(serve: Callable[..., TestClient], place: Path, shared: Path) -> None:
    client = serve(place, folders=(shared / "films",))
    for attempt in [*PATHS, str(shared / "more"), "films", "0" * 24]:
        for spelling in _spellings(attempt):
            assert client.get(f"/api/v1/folders/{quote(spelling, safe='')}").status_code in (404, 422)
            answer = client.post(
                "/api/v1/jobs",
                content=json.dumps({"folder": spelling[:64]}),
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code == 404
    assert client.get("/api/v1/jobs").json() == {"jobs": []}
