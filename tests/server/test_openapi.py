"""The OpenAPI document against the server: schemathesis makes requests, right and wrong, from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from fastapi.testclient import TestClient


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_answer_is_a_documented_one(
    serve: Callable[..., TestClient], place: Path, shared: Path, documented: ModuleType, mode: str
) -> None:
    client = serve(place, folders=(shared / "more",))
    tried = set()
    for operation in documented.operations(client):
        takes = operation.path_parameters or operation.query or operation.body
        if mode == "negative" and not takes:
            continue
        tried.add(operation.label)
        documented.attempt(operation, mode)
        if operation.label.startswith("DELETE /api/v1/videos"):
            continue  # the others need the video; test_encoders.py removes one
        if mode == "positive" and operation.path.startswith("/api/v1/videos/{id}"):
            documented.attempt(operation, mode, {"path_parameters": {"id": 1}})
        if mode == "positive" and operation.path == "/api/v1/moments/{id}":
            documented.attempt(operation, mode, {"path_parameters": {"id": "1:0.000-3.500"}})
    assert len(tried) > 15
