"""A model that sees colours behind a real HTTP server, and films of colours for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from colour_model import ColourModel, serve_colour_model

from momentseek import Judgements
from momentseek.benchmarks.asking.endpoint import EndpointSettings
from momentseek.recognition.chat import KEY_VARIABLES

RED, GREEN, BLUE = (200, 20, 20), (20, 200, 20), (20, 20, 200)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ColourModel]:
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with serve_colour_model() as served:
        yield served


@pytest.fixture
def settings(model: ColourModel) -> EndpointSettings:
    return EndpointSettings(model.url, "eye-1", timeout=20, jobs=2, price=(1.0, 10.0))


@pytest.fixture
def media(tmp_path: Path, make_video: Callable[..., Path]) -> Path:
    """Two films: red, green, red; and blue alone."""
    folder = tmp_path / "media"
    folder.mkdir()
    make_video(folder / "park.mp4", [(4.0, RED), (4.0, GREEN), (4.0, (190, 20, 20))], rate=5, size=(160, 96))
    make_video(folder / "sea.mp4", [(6.0, BLUE)], rate=5, size=(96, 160))
    return folder


@pytest.fixture
def truth() -> Judgements:
    """Green is in the park from 4 to 8 s, and nowhere in the sea."""
    return Judgements.from_groups(
        ["g", "b", "none"], [1, 1, 1], ["park", "sea.mp4", "sea.mp4"], [4, 0, 0], [8, 6, 6], [1, 1, 0],
        queries=["a green lawn", "the blue sea", "a green lawn"],
    )  # fmt: skip
