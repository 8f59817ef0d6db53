"""Ask a vision model for the moments of a truth's queries, each in the query's video, and store its prose answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.benchmarks.asking.endpoint import (
    AnswerJournal,
    EndpointRequest,
    EndpointSettings,
    EndpointUsage,
    Messages,
    ask_all,
    count_usage,
)
from momentseek.benchmarks.asking.frames import FrameBudget, find_video, picture_parts
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.judgements import Judgements
from momentseek.core.progress import ShowCount
from momentseek.measuring.answers.reading import AnswerReport, report_answers
from momentseek.measuring.formats.prose_answers import read_prose
from momentseek.media.sandbox.calls import probe

PROMPTS = {
    "json": (
        "These frames are from one video of {duration:.1f} seconds, each with its time. Find every moment in which "
        "this happens: {query}\nAnswer with a JSON list and nothing else, the best moment first: "
        '[{{"start": seconds, "end": seconds, "confidence": 0 to 1}}]. Answer [] if it does not happen in the video.'
    ),
    "seconds": (
        "These frames are from one video of {duration:.1f} seconds, each with its time. When does this happen: "
        "{query}\nAnswer in one line: from START to END seconds. If it does not happen, answer: not in the video."
    ),
}
"""Name → prompt; a custom prompt file uses {query} and {duration} in the same way."""


@dataclass(frozen=True)
class AskedAnswers:
    """The file of answers, a report on them, and what they cost."""

    path: Path
    report: AnswerReport
    usage: EndpointUsage


@dataclass(frozen=True)
class GroundingOptions:
    """What to send with each query."""

    budget: FrameBudget = field(default_factory=FrameBudget)
    prompt: str = "json"
    limit: int | None = None
    """Ask only about the first N queries."""

    def question(self) -> str:
        """Return the text of the prompt: a built-in one by name, or that of a file."""
        if self.prompt in PROMPTS:
            return PROMPTS[self.prompt]
        try:
            text = Path(self.prompt).read_text("utf-8")
            text.format(query="q", duration=1.0)
        except (OSError, UnicodeDecodeError) as e:
            raise MomentseekError(
                f"{self.prompt}: no prompt of that name ({', '.join(PROMPTS)}) and no readable file ({e})"
            ) from None
        except (KeyError, IndexError, ValueError) as e:
            raise MomentseekError(
                f"{self.prompt}: write braces only as {{query}} and {{duration}}, others twice ({e})"
            ) from None
        if "{query" not in text:
            raise MomentseekError(f"{self.prompt}: has no place for the query; write {{query}}")
        return text


def ask_moments(
    truth: Judgements,
    media: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: EndpointSettings,
    options: GroundingOptions | None = None,
    *,
    progress: ShowCount | None = None,
) -> AskedAnswers:
    """Ask about every query of a truth in its video, and write the answers to ``out`` as JSON Lines.

    The video is that of the query's most relevant judged moment (even of relevance 0), or the first of its pool.
    Answers are kept in ``OUT.partial.jsonl`` until all have arrived, so that the same call continues after a stop.
    """
    options = options or GroundingOptions()
    if not truth.queries or not any(truth.queries):
        raise MomentseekError(f"{truth.source}: its queries have no words to ask about")
    videos = query_videos(truth)
    wanted = truth.query_ids[: options.limit]
    question, folder = options.question(), Path(media)

    @cache
    def facts(video: str) -> tuple[Path, float, float]:
        path = find_video(folder, video)
        found = probe(path)
        return path, found.duration, float(found.rate)

    def request(query: str) -> EndpointRequest:
        path, duration, _ = facts(videos[query])
        text = question.format(query=truth.text(query), duration=duration)
        identity = json.dumps(
            [settings.model, settings.max_tokens, text, path.name, path.stat().st_size, repr(options.budget)]
        )
        return EndpointRequest(query, identity, partial(_messages, path, duration, text, options.budget))

    path = Path(out)
    journal = AnswerJournal(path.with_name(f"{path.name}.partial.jsonl"), settings.model)
    found = ask_all([request(query) for query in wanted], settings, journal, progress)
    rows = [_row(truth, query, videos[query], facts(videos[query]), found[query]) for query in wanted]
    write_bytes(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace"))
    usage = count_usage(rows, settings)
    if not usage.failed:
        journal.path.unlink(missing_ok=True)
    read = read_prose(str(path))
    return AskedAnswers(path, report_answers(read.texts, read.parsed, str(path)), usage)


def query_videos(truth: Judgements) -> dict[str, str]:
    """Return query → the video to ask about."""
    order = np.lexsort((-truth.relevance.astype(np.int64), truth.row_query))
    found = {}
    for i, query in enumerate(truth.query_ids):
        if truth.counts[i]:
            found[query] = truth.videos[truth.video[order[truth.offsets[i]]]]
        elif truth.pools is not None and truth.pools.offsets[i] < truth.pools.offsets[i + 1]:
            found[query] = truth.videos[truth.pools.video[truth.pools.offsets[i]]]
        else:
            raise MomentseekError(
                f"{truth.source}: query {query} names no video to ask about; judge a moment of one, with relevance 0 "
                f"if it does not answer the query ({parameter('truth')})"
            )
    return found


def _messages(path: Path, duration: float, text: str, budget: FrameBudget) -> Messages:
    return [{"role": "user", "content": [*picture_parts(path, 0.0, duration, budget), {"type": "text", "text": text}]}]


def _row(
    truth: Judgements, query: str, video: str, facts: tuple[Path, float, float], record: Mapping[str, Any]
) -> dict[str, Any]:
    row = {"query_id": query, "query": truth.text(query), "video": video, "duration": facts[1], "fps": facts[2]}
    return row | {key: value for key, value in record.items() if key != "id"}
