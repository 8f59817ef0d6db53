"""Label Studio, the annotation tool that TVR-Ranking used: its tasks, its labelling page, and its exports.

A task is one query and one moment. The video's address carries the moment as a media fragment, ``#t=start,end``,
which browsers play from start to end. Captions are not shown: annotators judge what they see (appendix B.5). An export
is the tool's JSON: tasks with ``annotations``, each with who made it (``completed_by``) and a ``result`` list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from momentseek.construct.candidates import Candidate
from momentseek.construct.guideline import EXAMPLE, INSTRUCTIONS, LEVELS
from momentseek.errors import MomentseekError
from momentseek.moments import MAX_RELEVANCE

CONTROL = "relevance"
"""The name of the question on the labelling page, and of its answers in an export."""


def tasks(candidates: Iterable[Candidate], base_url: str, suffix: str = ".mp4") -> list[dict[str, Any]]:
    """One task per pair, in the given order.

    >>> pair = Candidate("q1/7", "q1", "a dog runs", "my park", 2.5, 5.0, 0.8, 1, 1, "hidden")
    >>> tasks([pair], "https://example.org/videos")[0]["data"]["video"]
    'https://example.org/videos/my%20park.mp4#t=2.5,5'
    """
    base = base_url.rstrip("/")
    result = []
    for c in candidates:
        address = f"{base}/{quote(c.video)}{suffix}#t={_seconds(c.start)},{_seconds(c.end)}"
        about = {"pair_id": c.pair_id, "query_id": c.query_id, "video": c.video, "start": c.start, "end": c.end}
        # Some versions of the tool drop meta on import, so the pair's id is in the data as well.
        data = {"query": c.query, "video": address, "moment": _clock(c), "pair_id": c.pair_id}
        result.append({"data": data, "meta": {**about, "rank": c.rank, "batch": c.batch}})
    return result


def labelling_page() -> str:
    """The labelling configuration (XML): the query, the video, the guideline, and five choices with hotkeys.

    Choices, not stars: Label Studio's rating begins at 1, and 0 is a level.
    """
    guide = "".join(
        f"\n    <Text name={quoteattr(f'level{v.value}')} value={quoteattr(f'{v.value} {v.name}: {v.meaning}')}/>"
        for v in LEVELS
    )
    choices = "".join(
        f'\n    <Choice value={quoteattr(f"{v.value} {v.name}")} alias="{v.value}" hotkey="{v.value}"/>' for v in LEVELS
    )
    return f"""<View>
  <Header value="$query" size="3"/>
  <Text name="moment" value="$moment"/>
  <Video name="video" value="$video"/>
  <Choices name="{CONTROL}" toName="video" choice="single-radio" required="true">{choices}
  </Choices>
  <View style="margin-top: 2em">
    <Header value="How to judge" size="5"/>
    <Text name="instructions" value={quoteattr(INSTRUCTIONS)}/>{guide}
    <Text name="example" value={quoteattr(EXAMPLE)}/>
  </View>
</View>
"""


@dataclass(frozen=True)
class Export:
    """Labels in the order in which they were given, and what else was in the file."""

    labels: tuple[tuple[str, str, int], ...]
    tasks: int
    missing: tuple[str, ...]
    """Pairs that nobody has judged yet."""
    cancelled: int
    """Annotations their authors skipped."""
    empty: int
    """Annotations without an answer."""
    replaced: int
    """Earlier annotations of the same pair by the same person."""


def read_export(exported: Any, source: str = "(memory)") -> Export:
    """The labels of an export; a person's last answer about a pair counts."""
    if not isinstance(exported, list):
        raise MomentseekError(f"{source}: not a Label Studio export; export the project as JSON, a list of tasks")
    found: list[tuple[str, str, str, int]] = []
    missing: list[str] = []
    cancelled = empty = 0
    for number, task in enumerate(exported, 1):
        where = f"{source}: task {number:,}"
        pair = _pair(task, where)
        answers = 0
        for annotation in _list(task, "annotations", where):
            if not isinstance(annotation, dict):
                raise MomentseekError(f"{where} has an annotation that is no object; export the project as JSON again")
            if annotation.get("was_cancelled"):
                cancelled += 1
            elif (level := _level(_list(annotation, "result", where), f"{where} (pair {pair})")) is None:
                empty += 1
            else:
                answers += 1
                when = str(annotation.get("created_at") or "")
                found.append((pair, _person(annotation.get("completed_by"), where), when, level))
        if not answers:
            missing.append(pair)
    last = {(pair, worker): (when, level) for pair, worker, when, level in sorted(found, key=lambda f: f[2])}
    ordered = sorted(last, key=lambda key: last[key][0])  # stable: by time where the export has it
    labels = tuple((pair, worker, last[pair, worker][1]) for pair, worker in ordered)
    return Export(labels, len(exported), tuple(missing), cancelled, empty, len(found) - len(labels))


def _pair(task: Any, where: str) -> str:
    for part in ("data", "meta"):
        inside = task.get(part) if isinstance(task, dict) else None
        if isinstance(inside, Mapping) and "pair_id" in inside:
            return str(inside["pair_id"])
    raise MomentseekError(
        f"{where} has no pair_id in its data or meta; read exports of what `momentseek data label-studio write` made"
    )


def _list(holder: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MomentseekError(f"{where}: {key!r} is no list; export the project as JSON, not as JSON-MIN or CSV")
    return value


def _level(result: list[Any], where: str) -> int | None:
    """The answer of one annotation: a choice that begins with its level, or a rating."""
    for answer in result:
        value = answer.get("value") if isinstance(answer, dict) else None
        if not isinstance(value, Mapping) or answer.get("from_name", CONTROL) != CONTROL:
            continue
        given = value.get("choices", value.get("rating"))
        if given is None or given == []:
            continue
        if isinstance(given, list) and len(given) > 1:
            raise MomentseekError(f"{where} has {len(given)} answers at once; the question has one answer")
        text = str(given[0] if isinstance(given, list) else given).strip()
        level, _, _ = text.partition(" ")
        level = level.removesuffix(".0")
        if level not in map(str, range(MAX_RELEVANCE + 1)):
            raise MomentseekError(
                f"{where} has the answer {text!r}; answers are levels from 0 to {MAX_RELEVANCE}, as on the labelling "
                "page that `momentseek data label-studio write` makes"
            )
        return int(level)
    return None


def _person(completed_by: Any, where: str) -> str:
    """A number in plain exports, an object with id and e-mail in others; the id names nobody."""
    who = completed_by.get("id", completed_by.get("email")) if isinstance(completed_by, Mapping) else completed_by
    if who is None:
        raise MomentseekError(f"{where} has an annotation without completed_by; export it with annotators")
    return str(who)


def _seconds(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _clock(c: Candidate) -> str:
    return f"{_seconds(c.start)} to {_seconds(c.end)} s"
