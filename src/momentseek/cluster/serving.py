"""A web application as replicas of Ray Serve, which begins more of them while many requests wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from momentseek.optional import optional_module

WAITING_REQUESTS = 8
"""Requests that a replica has under way before another is wanted."""


def serve_replicas(build: Callable[[], Any], *, least: int = 1, most: int = 1, name: str = "momentseek") -> Any:
    """What ``serve run`` runs: ``least`` to ``most`` replicas, each with the application that ``build`` makes there."""
    serve = optional_module("ray.serve", "ray-serve")
    scaling = {"min_replicas": least, "max_replicas": most, "target_ongoing_requests": WAITING_REQUESTS}
    made = serve.deployment(name=name, autoscaling_config=scaling, max_ongoing_requests=10 * WAITING_REQUESTS)

    def build_there() -> Any:  # Ray Serve takes a partial for the application itself
        return build()

    return made(serve.ingress(build_there)()).bind()
