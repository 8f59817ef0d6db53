"""A vision model as a judge of relevance from 0 to 4, by the same guideline as for people.

Its labels have a worker whose name begins with ``model:``, and a truth made from them names the model for every moment
(the column ``judge``), so that nobody mistakes them for people's. Calibration shows how far the model can be trusted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from momentseek.benchmarks.asking.endpoint import (
    AnswerJournal,
    EndpointRequest,
    EndpointSettings,
    Messages,
    ask_all,
    count_usage,
)
from momentseek.benchmarks.asking.frames import FrameBudget, find_video, picture_parts
from momentseek.benchmarks.datasets.annotation.candidates import AnnotationCandidate, build_truth, read_candidates
from momentseek.benchmarks.datasets.annotation.label_studio import EXAMPLE_JUDGEMENTS, RELEVANCE_LEVELS
from momentseek.benchmarks.datasets.annotation.labels import MODEL_WORKER, write_labels
from momentseek.benchmarks.datasets.common import BuiltDataset, Decision, ShowProgress, as_json_lines, no_progress
from momentseek.core.moments.judgements import MAX_RELEVANCE
from momentseek.core.reports import count, text_table
from momentseek.measuring.formats import FORMATS

JUDGE_PROMPT = (
    "These frames, in order, are one moment of a video, from {start:.1f} to {end:.1f} s. How relevant is it to this "
    "query: {query}\nLevels:\n{levels}\n{example}\nJudge by what you see, and do not guess what happens before or "
    'after. Answer with JSON and nothing else: {{"relevance": 0 to 4}}'
)
_SAID = re.compile(
    r"(?:relevance|grade|level|score|rating)\W{0,6}(?:is\W{1,3}|of\W{1,3})?(\d+(?:\.\d+)?)", re.IGNORECASE
)


def judge_prompt(candidate: AnnotationCandidate) -> str:
    """Return the question about one pair, with the guideline of the labelling page."""
    levels = "\n".join(f"{level.value} {level.name}: {level.meaning}" for level in RELEVANCE_LEVELS)
    return JUDGE_PROMPT.format(
        start=candidate.start, end=candidate.end, query=candidate.query, levels=levels, example=EXAMPLE_JUDGEMENTS
    )


def parse_level(answer: str) -> int | None:
    """Return the level in an answer; None if it has none or several.

    >>> [parse_level(a) for a in ('{"relevance": 3}', "Relevance: 2/4", "4", "I'd say 2 or 3", "relevance: 7", "3.5")]
    [3, 2, 4, None, None, None]
    """
    said = re.sub(r"<think>.*?</think>", " ", answer, flags=re.DOTALL)
    found = set(_SAID.findall(said)) or set(re.findall(r"(?<![\d.])\d+(?:\.\d+)?(?!\s*/\s*\d)", said))
    values = {float(text) for text in found}
    value = values.pop() if len(values) == 1 else None
    return int(value) if value is not None and value.is_integer() and 0 <= value <= MAX_RELEVANCE else None


def build_judgements(
    candidates: str,
    media: str,
    out: str,
    settings: EndpointSettings,
    *,
    truth: str | None = None,
    report: str | None = None,
    budget: FrameBudget | None = None,
    progress: ShowProgress = no_progress,
) -> BuiltDataset:
    """Let a model judge the pairs of a file; ``out`` gets its labels, ``truth`` the judged moments as ground truth."""
    pairs = read_candidates(candidates)
    budget, folder = budget or FrameBudget(frames=8), Path(media)
    journal = AnswerJournal(Path(f"{out}.partial.jsonl"), settings.model)
    requests = [_request(pair, folder, settings, budget) for pair in pairs]
    with progress(f"asking {settings.model}") as show:
        records = ask_all(requests, settings, journal, show)
    judge = MODEL_WORKER + settings.model
    decisions = [_decision(pair.pair_id, records[pair.pair_id]) for pair in pairs]
    levels = {d.subject: d.evidence["level"] for d in decisions if d.outcome == "judged"}
    files: dict[Any, bytes] = {out: write_labels((pair, judge, level) for pair, level in levels.items())}
    if report:
        files[report] = as_json_lines(decisions)
    if truth:
        built = build_truth(pairs, levels)
        marked = replace(built, columns={**built.columns, "judge": (judge,) * len(built.video)})
        files[truth] = FORMATS["native"].to_bytes(marked)
    usage = count_usage(list(records.values()), settings)
    unjudged = Counter(d.reason for d in decisions if d.outcome != "judged")
    given = Counter(levels.values())
    return BuiltDataset(
        files=files,
        summary={
            "judge": judge,
            "pairs": len(pairs),
            "judged": len(levels),
            "unjudged": dict(unjudged),
            "levels": {str(level): given[level] for level in range(MAX_RELEVANCE + 1)},
            "usage": asdict(usage),
        },
        text=_text(judge, pairs, given, unjudged) + f"\n\n{usage}",
        notes=[f"{count(n, 'pair')} not judged ({why})" for why, n in unjudged.items()],
        work_file=None if usage.failed else journal.path,
    )


def _text(judge: str, pairs: Sequence[Any], given: Counter[int], unjudged: Counter[str]) -> str:
    rows = [[str(level.value), level.name, f"{given[level.value]:,}"] for level in RELEVANCE_LEVELS]
    rows.append(["", "not judged", f"{sum(unjudged.values()):,}"])
    return f"{count(len(pairs), 'pair')}, judged by {judge}\n\n" + text_table(["level", "", "pairs"], rows, align="llr")


def _request(
    pair: AnnotationCandidate, folder: Path, settings: EndpointSettings, budget: FrameBudget
) -> EndpointRequest:
    path, text = find_video(folder, pair.video), judge_prompt(pair)
    identity = json.dumps([settings.model, text, path.name, path.stat().st_size, repr(budget)])
    return EndpointRequest(pair.pair_id, identity, partial(_messages, path, pair, text, budget))


def _messages(path: Path, pair: AnnotationCandidate, text: str, budget: FrameBudget) -> Messages:
    pictures = picture_parts(path, pair.start, pair.end, budget)
    return [{"role": "user", "content": [*pictures, {"type": "text", "text": text}]}]


def _decision(pair: str, record: dict[str, Any]) -> Decision:
    answer = record.get("answer")
    if answer is None:
        return Decision(pair, "not judged", "the request failed", {"error": record.get("error")})
    level = parse_level(answer)
    if level is None:
        return Decision(pair, "not judged", "no level in the answer", {"answer": answer[:500]})
    return Decision(pair, "judged", "by the model", {"level": level, "answer": answer[:500]})
