"""The OpenAPI document against the server: schemathesis makes requests, right and wrong, from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_answer_is_a_documented_one(
    serve: Callable[..., TestClient], place: Path, shared: Path, mode: str
) -> None:
    client = serve(place, folders=(shared / "more",))
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", client.app, headers={"Host": "localhost"})
    tried = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        takes = operation.path_parameters or operation.query or operation.body
        if mode == "negative" and not takes:
            continue
        tried.add(operation.label)
        _try(operation, mode, {})
        if mode == "positive" and operation.path.startswith("/api/v1/videos/{id}"):
            _try(operation, mode, {"path_parameters": {"id": 1}})
    assert len(tried) > 15


def _try(operation: Any, mode: str, fixed: dict[str, Any]) -> None:
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode), **fixed))
    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case: Any) -> None:
        response = case.call(base_url="http://localhost", headers={"Host": "localhost"})
        case.validate_response(response, checks=CHECKS)

    one()
