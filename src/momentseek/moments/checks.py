"""What to do with moments that break the rules, and the record of what was done.

Real annotation files do break them: Charades-STA ends run past the video, ActivityNet has start >= end.
A reader never repairs silently: every finding is in the table's report, with what was done about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import BoolArray, FloatArray

Policy = Literal["error", "drop", "clip", "keep"]
"""``error`` refuses; ``drop`` removes a judged moment and voids a prediction (it keeps its rank and matches
nothing); ``clip`` moves times into the video and drops what is then empty; ``keep`` leaves times as they
are, which is what the official evaluators do."""

POLICIES: tuple[str, ...] = get_args(Policy)
MAX_EXAMPLES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DataFinding:
    """One kind of broken rule: how many moments, which (the first few in words), what was done."""

    problem: str
    count: int
    action: str
    examples: tuple[str, ...]

    def __str__(self) -> str:
        some = ", ".join(self.examples) + (", …" if self.count > len(self.examples) else "")
        return f"{self.count:,} moment{'s' * (self.count != 1)} with {self.problem} {self.action} ({some})"


@dataclass(frozen=True, slots=True)
class CheckedTimes:
    """Times after the policy was applied, which rows are void, and the findings."""

    start: FloatArray
    end: FloatArray
    void: BoolArray
    findings: tuple[DataFinding, ...]


def check_policy(policy: str) -> None:
    """Refuse a policy that does not exist.

    >>> check_policy("ignore")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no policy 'ignore' for invalid moments; choose error, drop, clip or keep
    """
    if policy not in POLICIES:
        choices = f"{', '.join(POLICIES[:-1])} or {POLICIES[-1]}"
        raise MomentseekError(f"there is no policy {policy!r} for invalid moments; choose {choices}")


def check_scores(
    scores: FloatArray, policy: Policy, describe: Callable[[int], str], where: str, what: str = "score"
) -> tuple[DataFinding, ...]:
    """Refuse scores that are not finite, by which nothing can be ranked; ``keep`` leaves and reports them."""
    rows = np.flatnonzero(~np.isfinite(scores))
    if not len(rows):
        return ()
    if policy != "keep":
        raise MomentseekError(
            f"{where}: {describe(int(rows[0]))} has the {what} {scores[rows[0]]}; "
            f'{what}s must be finite numbers (invalid="keep" takes them as they are)'
        )
    examples = tuple(describe(int(r)) for r in rows[:MAX_EXAMPLES_SHOWN])
    return (DataFinding(f"a {what} that is not a finite number", len(rows), "kept as is", examples),)


def check_durations(durations: Mapping[str, float], where: str) -> None:
    """Refuse videos that last no time or for ever; NaN means that the duration is not known."""
    for video, seconds in durations.items():
        if seconds <= 0 or seconds == np.inf:
            raise MomentseekError(f"{where}: the duration of video {video} is {seconds:g} s; expected more than 0 s")


def check_times(
    start: FloatArray,
    end: FloatArray,
    limit: FloatArray | None,
    policy: Policy,
    describe: Callable[[int], str],
    where: str,
) -> CheckedTimes:
    """Apply ``policy`` to rows whose times break ``0 <= start < end`` (and ``end <= limit`` where known).

    An end beyond the video is only clipped or reported, never refused: too many published files have it.
    """
    start, end = start.copy(), end.copy()
    void = np.zeros(len(start), dtype=bool)
    findings: list[DataFinding] = []

    def note(rows: BoolArray, problem: str, action: str) -> None:
        first = np.flatnonzero(rows)[:MAX_EXAMPLES_SHOWN]
        findings.append(DataFinding(problem, int(rows.sum()), action, tuple(describe(int(r)) for r in first)))

    def settle(rows: BoolArray, problem: str, clip: Callable[[], None] | None) -> None:
        if not rows.any():
            return
        if policy == "error" or (policy == "keep" and problem.startswith("times that")):
            note(rows, problem, "found")
            raise MomentseekError(
                f"{where}: {findings[-1]}; correct the file, or choose what to do with such moments "
                '(invalid="drop", "clip" or "keep")'
            )
        if policy == "keep":
            note(rows, problem, "kept as is")
        elif policy == "clip" and clip is not None:
            note(rows, problem, "clipped")
            clip()
        else:
            note(rows, problem, "dropped")
            void[rows] = True

    settle(~(np.isfinite(start) & np.isfinite(end)), "times that are not finite numbers", None)
    negative = ~void & (start < 0)
    settle(negative, "a negative start", lambda: np.copyto(start, 0.0, where=negative))
    if limit is not None:
        beyond = ~void & (end > limit)
        if beyond.any():
            note(beyond, "an end beyond the video", "clipped" if policy == "clip" else "kept as is")
            if policy == "clip":
                np.copyto(end, limit, where=beyond)
    settle(~void & (start >= end), "start >= end", None)
    return CheckedTimes(start, end, void, tuple(findings))
