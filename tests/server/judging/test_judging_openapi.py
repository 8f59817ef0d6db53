"""The judging routes against the OpenAPI document, with judgements there."""

from __future__ import annotations

from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
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
]


@pytest.mark.slow
def test_every_answer_about_judgements_is_a_documented_one(judged: Any) -> None:
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", judged.client.app, headers={"Host": "localhost"})
    tried = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        if "judging" not in operation.path and not operation.path.endswith("/compare"):
            continue
        tried.add(operation.label)
        _try(operation, {"path_parameters": {"id": 1}} if operation.path_parameters else {})
    assert len(tried) == 12


def _try(operation: Any, fixed: dict[str, Any]) -> None:
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE, **fixed))
    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case: Any) -> None:
        for key in ("measure", "localiser", "streams", "base_url"):  # random ones are refused, so try without as well
            if case.query and len(str(case.query.get(key, ""))) % 2:
                case.query.pop(key)
        for key in ("a", "b"):
            if case.query and len(str(case.query.get(key, ""))) % 2:
                case.query[key] = "localiser=window;streams=vision"
        if isinstance(case.body, dict) and "relevance" in case.body:
            case.body.update(query=1, candidate=1 + case.body["relevance"])
        response = case.call(base_url="http://localhost", headers={"Host": "localhost"})
        case.validate_response(response, checks=CHECKS)

    one()
