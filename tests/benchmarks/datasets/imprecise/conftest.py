"""The names in TVR's descriptions, found once for all tests that read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.benchmarks.datasets.imprecise.names import Gazetteer, build_gazetteer
from momentseek.benchmarks.datasets.imprecise.query_files import read_query_file


@pytest.fixture(scope="session")
def tvr_cast(data: Path) -> Gazetteer:
    """Of all descriptions of the validation set, whatever their type."""
    return build_gazetteer(read_query_file(data / "tvr/tvr_val_release.jsonl", "v").everything)
