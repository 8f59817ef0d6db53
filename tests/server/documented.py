"""Requests that schemathesis makes from the OpenAPI document, and what every answer must keep to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings

ENDLESS = "/api/v1/jobs/events"
"""Stays open until the server stops; test_jobs.py has it."""


def operations(client: TestClient) -> Iterator[Any]:
    """All that the document of a server offers and that ends."""
    schemathesis = pytest.importorskip("schemathesis")
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", client.app, headers={"Host": "localhost"})
    return (found for result in schema.get_all_operations() if (found := result.ok()).path != ENDLESS)


def attempt(
    operation: Any,
    mode: str = "positive",
    fixed: dict[str, Any] | None = None,
    changed: Callable[[Any], None] = lambda case: None,
) -> None:
    """Make requests, right ones or wrong ones; ``changed`` may alter each before it is sent.

    An operation is asked with an eighth as many requests as other properties have examples.
    """
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis.specs.openapi import checks

    every = [
        schemathesis.checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
        *([checks.negative_data_rejection] if mode == "negative" else []),
    ]

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode), **(fixed or {})))
    @settings(
        max_examples=settings().max_examples // 8,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case: Any) -> None:
        changed(case)
        response = case.call(base_url="http://localhost", headers={"Host": "localhost"})
        refused = response.status_code == 413  # too large a body is refused unread, which schemathesis does not know
        known = [check for check in every if not (refused and check is checks.negative_data_rejection)]
        case.validate_response(response, checks=known)

    one()
