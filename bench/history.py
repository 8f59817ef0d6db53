"""What clients did and saw while things failed, and a checker of it.

Each video and each judgement has one client that changes it, one change after another, so that what may be true of it
at any time follows from its own changes: after one that was acknowledged, only that; after one whose answer was lost,
that too. A search is checked against everything that may have been true from a little before it began until it ended.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Outcome = Literal["ok", "unknown"]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """A change of one video (its value afterwards: whether it is there) or judgement (the level), and its answer."""

    key: Key
    value: Any
    begun: float
    ended: float
    outcome: Outcome
    said: str = ""


@dataclass(frozen=True)
class Look:
    """What a search showed: all videos, unless it says itself that it is incomplete or old."""

    videos: frozenset[str]
    begun: float
    ended: float
    marked: bool


class History:
    """All changes by their keys, in the order of each key.

    ``lingering`` changes whose answer was lost may still happen at any later time: others go on with them.
    """

    def __init__(self, changes: Iterable[Change], *, lingering: bool = False) -> None:
        self.changes: dict[Key, list[Change]] = defaultdict(list)
        for one in sorted(changes, key=lambda change: change.begun):
            late = lingering and one.outcome == "unknown"
            self.changes[one.key].append(replace(one, ended=math.inf) if late else one)

    def possible(self, key: Key, begin: float, end: float, initial: Any) -> set[Any]:
        """What may have been true of a key at some time between two."""
        found = {initial}
        for one in self.changes.get(key, ()):
            if one.begun >= end:
                break
            if one.ended <= begin and one.outcome == "ok":
                late = {early.value for early in self.changes[key] if early.begun < one.begun and early.ended > begin}
                found = {one.value} | late
            else:
                found.add(one.value)
        return found


def check_looks(history: History, looks: Iterable[Look], fresh: float) -> list[str]:
    """Searches that show what was never there, or lack what was there, without saying that they may.

    ``fresh`` is how many seconds old an answer may be that does not say so.
    """
    wrong = []
    keys = [key for key in history.changes if key[0] == "video"]
    for look in looks:
        known = {name for _, name in keys}
        wrong += [f"a search shows {name}, which nobody added" for name in sorted(look.videos - known)]
        for key in keys:
            begin = 0.0 if look.marked else look.begun - fresh
            allowed = history.possible(key, begin, look.ended, False)
            if look.marked:
                allowed.add(False)
            if (key[1] in look.videos) not in allowed:
                shown = "shows" if key[1] in look.videos else "lacks"
                wrong.append(f"a search from {look.begun:.1f} to {look.ended:.1f} s {shown} {key[1]}")
    return wrong


def check_end(history: History, videos: Collection[str], judgements: Mapping[Key, Any]) -> list[str]:
    """Acknowledged changes that are lost at the end, and what is there that nobody made."""
    wrong = []
    for key in history.changes:
        found = key[1] in videos if key[0] == "video" else judgements.get(key)
        allowed = history.possible(key, math.inf, math.inf, False if key[0] == "video" else None)
        if found not in allowed:
            wrong.append(f"{key} is {found} at the end, and may only be {sorted(map(str, allowed))}")
    wrong += [f"{name} is there, which nobody added" for name in videos if ("video", name) not in history.changes]
    wrong += [f"{key} is there, which nobody judged" for key in judgements if key not in history.changes]
    return wrong


def check_log(changes: Iterable[Change], log: Mapping[Key, Sequence[Any]]) -> list[str]:
    """Acknowledged judgements that are not in the history that the server keeps."""
    return [
        f"{one.key} = {one.value} was acknowledged, and is not in the history"
        for one in changes
        if one.key[0] == "judgement" and one.outcome == "ok" and one.value not in log.get(one.key, ())
    ]
