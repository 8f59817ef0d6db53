"""Label Studio, the annotation tool that TVR-Ranking used: write tasks and a labelling page, and read exports.

A task is one query and one moment. The video's address has the moment as a media fragment, ``#t=start,end``, which
browsers play from start to end. Captions are not shown: annotators judge what they see (appendix B.5). An export is
the tool's JSON: tasks with ``annotations``, each with its author (``completed_by``) and a ``result`` list.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from momentseek.benchmarks.datasets.annotation.candidates import AnnotationCandidate, read_candidates
from momentseek.benchmarks.datasets.annotation.consensus import find_consensus
from momentseek.benchmarks.datasets.annotation.labels import read_labels, write_labels
from momentseek.benchmarks.datasets.common import BuiltDataset, Decision, as_json_lines, tally
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import MAX_RELEVANCE
from momentseek.core.reports import count
from momentseek.measuring.formats.document import open_document


@dataclass(frozen=True, slots=True)
class RelevanceLevel:
    """A level of relevance, its name, and when to choose it."""

    value: int
    name: str
    meaning: str


RELEVANCE_LEVELS = (
    RelevanceLevel(
        4, "perfect", "All the query's actions happen, in plain view, and the moment holds them whole and little else."
    ),
    RelevanceLevel(
        3, "good", "The actions happen, but a detail of the query is missing or different, or there is extra footage."
    ),
    RelevanceLevel(2, "partial", "Only part of what the query says happens, or much of it is out of view or cut off."),
    RelevanceLevel(1, "slight", "Some people, things or side actions fit, but the main action is another."),
    RelevanceLevel(0, "unrelated", "Nothing the query says happens; that there is a person in both does not count."),
)
"""Best first, as the labelling page lists them."""

INSTRUCTIONS = (
    "Watch the moment and judge by what you see: does the action fit, is it in view, is it there from start to end? "
    "Do not guess what happens before or after."
)
EXAMPLE_JUDGEMENTS = (
    "For “a woman takes off her coat and hangs it up”: 4 if one or more women do just that; 3 if they do, among other "
    "things; 2 if a coat is only hung up; 1 if there are a woman and a coat, and she does something else with it; 0 if "
    "people do something else altogether."
)


RELEVANCE_CONTROL = "relevance"
"""The name of the question on the labelling page, and of its answers in an export."""
URL_SCHEMES = ("http", "https", "file")


def build_tasks(candidates: Iterable[AnnotationCandidate], base_url: str, suffix: str = ".mp4") -> list[dict[str, Any]]:
    """Build one Label Studio task per pair, in the given order.

    >>> pair = AnnotationCandidate("q1/7", "q1", "a dog runs", "my park", 2.5, 5.0, 0.8, 1, 1, "hidden")
    >>> build_tasks([pair], "https://example.org/videos")[0]["data"]["video"]
    'https://example.org/videos/my%20park.mp4#t=2.5,5'
    """
    check_address(base_url)
    base = base_url.rstrip("/")
    result = []
    for c in candidates:
        address = f"{base}/{quote(c.video)}{suffix}#t={_seconds(c.start)},{_seconds(c.end)}"
        about = {"pair_id": c.pair_id, "query_id": c.query_id, "video": c.video, "start": c.start, "end": c.end}
        # Some versions of the tool drop meta on import, so the pair's id is in the data as well.
        data = {
            "query": c.query,
            "video": address,
            "moment": f"{_seconds(c.start)} to {_seconds(c.end)} s",
            "pair_id": c.pair_id,
        }
        result.append({"data": data, "meta": {**about, "rank": c.rank, "batch": c.batch}})
    return result


def labelling_page() -> str:
    """Return the labelling configuration (XML): the query, the video, the guideline, and five choices with hotkeys.

    It uses choices instead of stars, because Label Studio's rating begins at 1 and 0 is a level.
    """
    guide = "".join(
        f"\n    <Text name={quoteattr(f'level{v.value}')} value={quoteattr(f'{v.value} {v.name}: {v.meaning}')}/>"
        for v in RELEVANCE_LEVELS
    )
    choices = "".join(
        f'\n    <Choice value={quoteattr(f"{v.value} {v.name}")} alias="{v.value}" hotkey="{v.value}"/>'
        for v in RELEVANCE_LEVELS
    )
    return f"""<View>
  <Header value="$query" size="3"/>
  <Text name="moment" value="$moment"/>
  <Video name="video" value="$video"/>
  <Choices name="{RELEVANCE_CONTROL}" toName="video" choice="single-radio" required="true">{choices}
  </Choices>
  <View style="margin-top: 2em">
    <Header value="How to judge" size="5"/>
    <Text name="instructions" value={quoteattr(INSTRUCTIONS)}/>{guide}
    <Text name="example" value={quoteattr(EXAMPLE_JUDGEMENTS)}/>
  </View>
</View>
"""


SKIPPED, NO_ANSWER = "skipped by its annotator", "no answer"
REPLACED = "replaced by a later one of the same annotator"
REPEATED = "the same annotation stands again later"


@dataclass(frozen=True)
class LabelStudioExport:
    """The content of Label Studio exports: labels in the order in which they were given, and counts of the rest."""

    labels: tuple[tuple[str, str, int], ...]
    tasks: int
    missing: tuple[str, ...]
    """Pairs that nobody has judged yet."""
    cancelled: int
    """Number of annotations that their annotators skipped."""
    empty: int
    """Number of annotations without an answer."""
    replaced: int
    """Number of earlier annotations of the same pair by the same person."""
    repeated: int = 0
    """Number of annotations that were also in an earlier export; only their last state counts."""
    decisions: tuple[Decision, ...] = ()
    """The decision about every annotation, and about every pair without any."""


@dataclass(frozen=True, slots=True)
class _Annotation:
    pair: str
    worker: str
    when: str
    level: int | None
    cancelled: bool
    source: str

    def decision(self, outcome: str, reason: str) -> Decision:
        evidence = {"worker": self.worker, "level": self.level, "created_at": self.when or None, "source": self.source}
        return Decision(self.pair, outcome, reason, evidence)


def read_exports(exports: Iterable[tuple[Any, str]]) -> LabelStudioExport:
    """Read the labels of several exports, each with its source, as if they were one.

    A later export of a project contains the annotations of the earlier one: annotations with the same pair, annotator
    and id are one, as in the last export. If a person annotates a pair several times, the last annotation counts.

    >>> answer = {"id": 7, "completed_by": 1, "result": [{"value": {"choices": ["3"]}}]}
    >>> task = {"id": 1, "data": {"pair_id": "p"}, "annotations": [answer]}
    >>> found = read_exports([([task], "monday.json"), ([task], "friday.json")])
    >>> found.labels, found.tasks, found.repeated
    ((('p', '1', 3),), 1, 1)
    """
    states: dict[tuple[Any, ...], _Annotation] = {}
    asked: dict[tuple[Any, ...], str] = {}
    decisions: list[Decision] = []
    for place, (exported, source) in enumerate(exports):
        if not isinstance(exported, list):
            raise MomentseekError(f"{source}: not a Label Studio export; export the project as JSON, a list of tasks")
        for number, task in enumerate(exported, 1):
            where = f"{source}: task {number:,}"
            pair = _pair(task, where)
            asked[_identity(task, (place, number), pair)] = pair
            for nth, annotation in enumerate(_list(task, "annotations", where)):
                found = _annotation(annotation, pair, where, source)
                key = _identity(annotation, (place, number, nth), pair, found.worker)
                if (before := states.pop(key, None)) is not None:  # so that the last state takes its last position
                    decisions.append(before.decision("left out", REPEATED))
                states[key] = found
    last: dict[tuple[str, str], _Annotation] = {}
    for found in sorted(states.values(), key=lambda a: a.when):  # stable: by time, if the export has it
        if found.cancelled or found.level is None:
            decisions.append(found.decision("left out", SKIPPED if found.cancelled else NO_ANSWER))
        else:
            if (before := last.pop((found.pair, found.worker), None)) is not None:
                decisions.append(before.decision("left out", REPLACED))
            last[found.pair, found.worker] = found
    judged = {pair for pair, _ in last}
    missing = tuple(pair for pair in dict.fromkeys(asked.values()) if pair not in judged)
    decisions += [found.decision("label", "the annotator's last answer") for found in last.values()]
    decisions += [Decision(pair, "missing", "not judged yet") for pair in missing]
    labels = tuple((a.pair, a.worker, a.level) for a in last.values() if a.level is not None)
    counts = Counter(decision.reason for decision in decisions)
    return LabelStudioExport(
        labels=labels,
        tasks=len(asked),
        missing=missing,
        cancelled=counts[SKIPPED],
        empty=counts[NO_ANSWER],
        replaced=counts[REPLACED],
        repeated=counts[REPEATED],
        decisions=tuple(decisions),
    )


def _identity(thing: Mapping[str, Any], place: tuple[int, ...], *about: str) -> tuple[Any, ...]:
    """Return the key of a task or annotation: its id (with ``about``, as servers may share ids), or its position."""
    return ("id", str(thing["id"]), *about) if thing.get("id") is not None else ("place", *place)


def _annotation(annotation: Any, pair: str, where: str, source: str) -> _Annotation:
    if not isinstance(annotation, dict):
        raise MomentseekError(f"{where} has an annotation that is not an object; export the project as JSON again")
    cancelled = bool(annotation.get("was_cancelled"))
    level = None if cancelled else _level(_list(annotation, "result", where), f"{where} (pair {pair})")
    by = annotation.get("completed_by")
    worker = _person(by, where) if level is not None or by is not None else ""
    return _Annotation(pair, worker, str(annotation.get("created_at") or ""), level, cancelled, source)


def check_address(base_url: str) -> None:
    """Raise an error for an address where no browser can find videos, or that would run as a script.

    >>> for base in ("https://example.org/v", "file:///videos", "/data/local-files/?d=videos", "videos"):
    ...     check_address(base)
    >>> check_address("javascript:alert(1)")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    momentseek.core.errors.MomentseekError: 'javascript:alert(1)' is not an address of videos; give http://, ...
    """
    scheme, colon, rest = base_url.partition(":")
    named = bool(colon) and not any(c in scheme for c in "/?#")
    if (
        not base_url
        or base_url != base_url.strip()
        or not base_url.isprintable()
        or (named and (scheme.lower() not in URL_SCHEMES or not rest.startswith("//")))
        or (named and scheme.lower() != "file" and not rest.strip("/"))
    ):
        raise MomentseekError(
            f"{base_url!r} is not an address of videos; give http://, https:// or file://, or a path such as /videos"
        )


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
        raise MomentseekError(f"{where}: {key!r} is not a list; export the project as JSON, not as JSON-MIN or CSV")
    return value


def _level(result: list[Any], where: str) -> int | None:
    """Return the level of an annotation, from a choice that begins with it or a rating; None without an answer."""
    for answer in result:
        value = answer.get("value") if isinstance(answer, dict) else None
        if not isinstance(value, Mapping) or answer.get("from_name", RELEVANCE_CONTROL) != RELEVANCE_CONTROL:
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
    """Return who made an annotation: a number, or an object with id and e-mail, of which the id is anonymous."""
    who = completed_by.get("id", completed_by.get("email")) if isinstance(completed_by, Mapping) else completed_by
    if who is None:
        raise MomentseekError(f"{where} has an annotation without completed_by; export it with annotators")
    return str(who)


def _seconds(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def build_label_studio(
    candidates: str,
    out: str,
    *,
    base_url: str,
    config: str | None = None,
    suffix: str = ".mp4",
    disagreed: str | None = None,
    report: str | None = None,
) -> BuiltDataset:
    """Write the pairs of a file as tasks and a labelling page.

    With a file of labels (``disagreed``), only pairs whose two labels there differ by more than 1 become tasks.
    """
    check_address(base_url)
    pairs = read_candidates(candidates)
    reasons = dict.fromkeys((c.pair_id for c in pairs), "every pair of the file")
    wanted = set(reasons)
    if disagreed:
        found = {d.subject: d for d in find_consensus(read_labels(disagreed), incomplete="drop").decisions()}
        reasons = {pair: found[pair].reason if pair in found else "no labels" for pair in reasons}
        wanted = {p for p, d in found.items() if d.outcome == "discarded" and len(d.evidence["labels"]) == 2}
    decisions = [Decision(p, "asked" if p in wanted else "left out", why) for p, why in reasons.items()]
    pairs = [c for c in pairs if c.pair_id in wanted]
    queries = len({c.query_id for c in pairs})
    page = config or page_beside(out)
    return BuiltDataset(
        files={
            out: json.dumps(build_tasks(pairs, base_url, suffix), ensure_ascii=False, indent=1).encode(),
            page: labelling_page().encode(),
            **({report: as_json_lines(decisions)} if report else {}),
        },
        summary={"tasks": len(pairs), "queries": queries, "page": page, "decisions": tally(decisions)},
        text="",
        about={out: f"{count(len(pairs), 'task')} of {count(queries, 'query', 'queries')}", page: "the labelling page"},
    )


def page_beside(tasks: str) -> str:
    """Return the file of the labelling page next to a file of tasks.

    >>> page_beside("out/tasks.json.gz")
    'out/tasks.xml'
    """
    return str(Path(tasks.removesuffix(".gz")).with_suffix(".xml"))


def read_label_studio(exports: Sequence[str], out: str, *, report: str | None = None) -> BuiltDataset:
    """Convert exports of Label Studio to a file of labels."""
    found = read_exports((open_document(path).json, path) for path in exports)
    if not found.labels:
        raise MomentseekError(f"{', '.join(exports)}: nobody has judged anything yet; export again when they have")
    pairs, workers = ({label[i] for label in found.labels} for i in (0, 1))
    lines = [f"{count(len(found.labels), 'label')} of {count(len(pairs), 'pair')} by {count(len(workers), 'worker')}"]
    some = f"({', '.join(found.missing[:3])}{', …' if len(found.missing) > 3 else ''})"
    was, were = "annotation was", "annotations were"
    lines += [
        f"{count(number, one, many)} {rest}"
        for number, one, many, rest in (
            (len(found.missing), "pair", "pairs", f"not judged yet {some}"),
            (found.cancelled, was, were, "skipped by the annotator"),
            (found.empty, "annotation has", "annotations have", "no answer"),
            (found.replaced, was, were, "replaced by a later one of the same person"),
            (found.repeated, was, were, "in an earlier export too; each counts once, in its last state"),
        )
        if number
    ]
    return BuiltDataset(
        files={out: write_labels(found.labels), **({report: as_json_lines(found.decisions)} if report else {})},
        summary={
            "tasks": found.tasks,
            "labels": len(found.labels),
            "pairs": len(pairs),
            "workers": len(workers),
            "missing": list(found.missing),
            "cancelled": found.cancelled,
            "empty": found.empty,
            "replaced": found.replaced,
            "repeated": found.repeated,
        },
        text="\n".join(lines),
    )
