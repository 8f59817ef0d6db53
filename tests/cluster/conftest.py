"""A cluster for the tests that need a real one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.library.conftest import command, content, film, films, library, light  # noqa: F401  fixtures

if TYPE_CHECKING:
    from momentseek.cluster.connection import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster that is started here, or the one that runs at ``MOMENTSEEK_TEST_CLUSTER``."""
    for module in ("av", "ray"):
        pytest.importorskip(module)
    from momentseek.cluster.connection import join_cluster

    with join_cluster(os.environ.get("MOMENTSEEK_TEST_CLUSTER", "local")) as found:
        yield found
