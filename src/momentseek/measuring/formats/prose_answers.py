"""Prose answers of multimodal language models, one JSON object per query.

``{"query_id": "q1", "video": "a", "duration": 60.0, "answer": "It happens from 12s to 20s."}``

``fps`` and ``units`` say how to read numbers if the model counts frames or fractions of the video. A query whose answer
names no moment stays in the run with an empty list, and the findings count such queries by reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from momentseek.core.moments.run import Run
from momentseek.core.moments.table import MAX_EXAMPLES_SHOWN, DataFinding
from momentseek.measuring.answers.reading import REASONS, ParsedAnswer, parse_answer
from momentseek.measuring.answers.times import UNITS, Clip, Units
from momentseek.measuring.formats import checked
from momentseek.measuring.formats.document import Document, open_document
from momentseek.measuring.formats.registry import Reading, Runs, register

ID_KEYS = ("query_id", "qid", "id")
VIDEO_KEYS = ("video", "vid", "video_id")
ANSWER_KEYS = ("answer", "response", "output", "prediction")


@dataclass(frozen=True)
class ProseAnswers:
    """The answers of a file, as text and parsed."""

    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    videos: tuple[str, ...]
    texts: tuple[str, ...]
    parsed: tuple[ParsedAnswer, ...]
    source: str

    def to_run(self) -> Run:
        """Return the moments of all answers; the score of a span without a confidence is 1 / rank."""
        spans = [answer.spans for answer in self.parsed]
        flat = [(span, rank) for some in spans for rank, span in enumerate(some, 1)]
        run = Run.from_groups(
            self.query_ids,
            map(len, spans),
            checked.flatten([video] * len(some) for video, some in zip(self.videos, spans, strict=True)),
            np.array([span.start for span, _ in flat]),
            np.array([span.end for span, _ in flat]),
            [1 / rank if math.isnan(span.confidence) else span.confidence for span, rank in flat],
            queries=self.queries if any(self.queries) else None,
            task="SVMR",
            source=self.source,
        )
        return replace(run, findings=(*run.findings, *self.findings()))

    def findings(self) -> tuple[DataFinding, ...]:
        """Count the answers without a moment, by reason, and those with a span that was cut or left out."""
        unanswered = [reason for reason in REASONS if reason != "answered"]
        groups = {f"no moment ({r})": [a.reason == r for a in self.parsed] for r in unanswered}
        for note in dict.fromkeys(note for answer in self.parsed for note in answer.notes):
            groups[note] = [note in answer.notes for answer in self.parsed]
        found = []
        for problem, marks in groups.items():
            ids = [query for query, mark in zip(self.query_ids, marks, strict=True) if mark]
            action = "left empty" if problem.startswith("no moment") else "found"
            if ids:
                found.append(DataFinding(problem, len(ids), action, tuple(ids[:MAX_EXAMPLES_SHOWN]), "answer"))
        return tuple(found)


def claims_answers(document: Document) -> bool:
    """Whether a file has one object per query with its video and a text as its answer, and no times."""
    first = document.first_record
    keys = [_key(first, names) for names in (ID_KEYS, VIDEO_KEYS, ANSWER_KEYS)] if isinstance(first, dict) else [None]
    return (
        None not in keys
        and isinstance(first[keys[2]], str | None)
        and not {"start", "timestamp", "caption"} & set(first)
    )


def parse_records(
    document: Document, reading: Reading, *, units: Units | None = None, fps: float | None = None
) -> ProseAnswers:
    """Parse the answers of a document; ``units`` and ``fps`` apply to records that do not have them."""
    rows = checked.records(document)
    first = rows[0] if rows else {}
    names = [_key(first, keys) or keys[0] for keys in (ID_KEYS, VIDEO_KEYS, ANSWER_KEYS)]
    ids = checked.ids(rows, names[0], document)
    videos = checked.strings(rows, names[1], document)
    answers = checked.column(rows, names[2], document)
    checked.check_types(answers, {str, type(None)}, document, names[2], "text")
    own = checked.durations_of(((v, r.get("duration")) for v, r in zip(videos, rows, strict=True)), document)
    durations = checked.with_corpus(own, reading)
    rates = _positive(rows, "fps", document)
    kinds = [row.get("units") or units or "seconds" for row in rows]
    for kind in kinds:
        if kind not in UNITS:
            checked.wrong(document, "units", kind, f"one of {', '.join(UNITS)}")
    parsed = []
    for row, video, answer, rate, kind in zip(rows, videos, answers, rates, kinds, strict=True):
        clip = Clip(durations.get(video), rate or fps, cast(Units, kind))
        failed = answer is None or row.get("error")
        parsed.append(ParsedAnswer((), "failed") if failed else parse_answer(answer, clip))
    texts = checked.texts(rows, document, "query")
    said = tuple(answer or "" for answer in answers)
    return ProseAnswers(tuple(map(str, ids)), tuple(texts), tuple(videos), said, tuple(parsed), str(document.path))


def read_prose(
    path: str, reading: Reading | None = None, *, units: Units | None = None, fps: float | None = None
) -> ProseAnswers:
    """Read and parse a file of prose answers."""
    return parse_records(open_document(path), reading or Reading(), units=units, fps=fps)


def read_answers(document: Document, reading: Reading) -> Runs:
    """Read one run with the moments that each answer names, best first."""
    return (parse_records(document, reading).to_run(),)


def _key(record: Any, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in record), None)


def _positive(rows: Sequence[dict[str, Any]], key: str, document: Document) -> list[float | None]:
    values = checked.optional(rows, key)
    for value in values:
        if value is not None and not (checked.is_number(value) and 0 < value < math.inf):
            checked.wrong(document, key, value, "a number above 0")
    return values


register("prose-answers", claims_answers, read_answers)
