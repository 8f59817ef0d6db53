"""Which models take a window."""

from __future__ import annotations

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.export.checkpoints import check_window
from momentseek.models.features.data import Dims
from momentseek.models.registry import build

SMALL = {"hidden": 16, "max_clips": 8, "longest": 8}


@pytest.mark.parametrize("name", ["xml", "reloclnet", "cet"])
def test_a_window_is_refused_where_it_would_change_nothing(name: str) -> None:
    model = build(name, {**SMALL, "heads": 4, "modalities": "video"}, Dims(6, 5, None))
    with pytest.raises(MomentseekError, match=rf"{name} reads .* 8 clips .*`window` changes nothing; leave it out"):
        check_window(model, name)


@pytest.mark.parametrize("name", ["tan2d", "mmn"])
def test_a_model_that_stretches_videos_takes_one(name: str) -> None:
    check_window(build(name, {**SMALL, "map_layers": 1, "kernel": 3}, Dims(6, 5, None)), name)
