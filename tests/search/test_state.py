"""What searches remember of a library stays within bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from momentseek.library.video import VideoCard
from momentseek.search import state
from momentseek.search.state import LibraryState


class Noting:
    """A catalog that notes which videos it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def videos(self, ids: list[int]) -> list[Any]:
        self.asked.append(list(ids))
        return [SimpleNamespace(id=id, duration=float(id), hash=f"h{id}") for id in ids if id < 100]

    def video_cards(self, ids: list[int]) -> list[VideoCard]:
        self.asked.append(list(ids))
        return [VideoCard(id, float(id), f"h{id}") for id in sorted(ids) if id < 100]


def test_videos_are_remembered_and_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_KNOWN_VIDEOS", 3)
    catalog = Noting()
    known = LibraryState(catalog, *[SimpleNamespace()] * 3)  # type: ignore[arg-type]
    assert list(known.videos([1, 2, 200])) == [1, 2]
    assert list(known.videos([2, 1])) == [2, 1]
    assert list(known.videos([2, 3, 4])) == [2, 3, 4]
    assert list(known.videos([1])) == [1]
    assert catalog.asked == [[1, 2, 200], [3, 4], [1]]
    assert len(known.known_videos) <= 3


def test_cards_are_read_once() -> None:
    catalog = Noting()
    known = LibraryState(catalog, *[SimpleNamespace()] * 3)  # type: ignore[arg-type]
    known.video_cards([7])
    assert known.video_cards([9, 7, 300]) == {9: (9, 9.0, "h9", (), 0), 7: (7, 7.0, "h7", (), 0)}
    assert catalog.asked == [[7], [9, 300]]
