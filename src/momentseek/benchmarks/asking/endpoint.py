"""Send many requests to one endpoint in parallel, store each answer on disk, and count tokens and costs."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.atomic import append_lines
from momentseek.core.errors import MomentseekError
from momentseek.core.progress import ShowCount
from momentseek.core.reports import count
from momentseek.recognition.chat import ChatCompletions, Completion, checked_address

Messages = list[dict[str, Any]]
GIVE_UP_FAILURES = 5
"""Number of consecutive failed requests after which no more are sent."""


@dataclass(frozen=True)
class EndpointRequest:
    """One question: its id, its identity (if that changes, it is asked again), and how to build its messages."""

    id: str
    identity: str
    messages: Callable[[], Messages]
    """Builds the messages when they are sent, because pictures of thousands of requests would not fit into memory."""

    @property
    def digest(self) -> str:
        """A short hash of the question's identity."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class EndpointSettings:
    """Where and how to ask."""

    base_url: str
    model: str
    timeout: float = 120.0
    jobs: int = 4
    """Number of parallel requests."""
    max_tokens: int = 512
    temperature: float = 0.0
    price: tuple[float, float] | None = None
    """Price of a million tokens sent and of a million received, in any currency."""

    def open(self) -> ChatCompletions:
        """Open a client; the key comes from the environment."""
        address, model, key, login = checked_address(self.base_url, self.model)
        return ChatCompletions(address, model, self.timeout, key=key, login=login)


@dataclass(frozen=True)
class EndpointUsage:
    """Tokens, time and cost of all answers, including those of earlier runs."""

    requests: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Total waiting time of all requests."""
    cost: float | None = None

    def __str__(self) -> str:
        words = (
            f"{count(self.requests, 'answer')}, {self.prompt_tokens:,} tokens sent, {self.completion_tokens:,} received"
        )
        words += f", {self.seconds:.0f} s" + (f", cost {self.cost:.4f}" if self.cost is not None else "")
        return words + (f"; {count(self.failed, 'request')} failed" if self.failed else "")


class AnswerJournal:
    """Answers on disk, one JSON object per line, each saved as soon as it arrives; damaged lines are ignored."""

    def __init__(self, path: Path, model: str) -> None:
        self.path, self.model = path, model
        self._lock = threading.Lock()

    def read(self) -> dict[str, dict[str, Any]]:
        """Return digest → record, for the answers of this model."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as e:
            raise MomentseekError(f"{self.path}: cannot be read ({e.strerror}); remove it to start again") from None
        found: dict[str, dict[str, Any]] = {}
        for line in data.splitlines():
            try:
                record = json.loads(line)
                if record["model"] == self.model and isinstance(record["answer"], str):
                    found[record["digest"]] = record
            except (ValueError, LookupError, TypeError):
                continue
        return found

    def keep(self, record: Mapping[str, Any]) -> None:
        """Append a record and wait until it is on disk."""
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", errors="replace") + b"\n"
        with self._lock:
            append_lines(self.path, line)


def ask_all(
    requests: Sequence[EndpointRequest],
    settings: EndpointSettings,
    journal: AnswerJournal,
    progress: ShowCount | None = None,
) -> dict[str, dict[str, Any]]:
    """Return id → record of every request: its answer with tokens and time, or an ``error`` if it failed.

    Answers in the journal are not requested again. Failures are not stored, so the same call retries them. Several
    consecutive failures raise an error, because then the address or the key is probably wrong.
    """
    known = journal.read()
    records = {r.id: known[r.digest] for r in requests if r.digest in known}
    todo = [r for r in requests if r.id not in records]
    client = settings.open()
    failures = 0
    with ThreadPoolExecutor(settings.jobs) as pool:
        try:
            for request, outcome in _outcomes(pool, todo, client, settings):
                records[request.id] = {"model": settings.model, "digest": request.digest, **outcome}
                failures = failures + 1 if "error" in outcome else 0
                if not failures:
                    journal.keep({"id": request.id, **records[request.id]})
                elif failures >= GIVE_UP_FAILURES:
                    raise MomentseekError(f"{failures} requests in a row failed: {outcome['error']}")
                if progress is not None:
                    progress(len(records), len(requests))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return records


def _outcomes(
    pool: ThreadPoolExecutor, todo: Sequence[EndpointRequest], client: ChatCompletions, settings: EndpointSettings
) -> Iterator[tuple[EndpointRequest, dict[str, Any]]]:
    """Yield requests with their outcomes as they finish; only ``jobs`` of them run at a time."""
    waiting: dict[Future[dict[str, Any]], EndpointRequest] = {}
    rest = iter(todo)
    while True:
        for request in rest:
            waiting[pool.submit(_ask, request, client, settings)] = request
            if len(waiting) >= settings.jobs:
                break
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), future.result()


def _ask(request: EndpointRequest, client: ChatCompletions, settings: EndpointSettings) -> dict[str, Any]:
    began = time.monotonic()
    try:
        found: Completion = client.ask(request.messages(), settings.temperature, max_tokens=settings.max_tokens)
    except MomentseekError as e:
        return {"answer": None, "error": str(e), "seconds": round(time.monotonic() - began, 3)}
    return {
        "answer": found.text,
        "finish_reason": found.finished,
        "prompt_tokens": found.prompt_tokens,
        "completion_tokens": found.completion_tokens,
        "seconds": round(time.monotonic() - began, 3),
    }


def count_usage(records: Sequence[Mapping[str, Any]], settings: EndpointSettings) -> EndpointUsage:
    """Add up the tokens, time and cost of some answers."""
    sent, received = (sum(int(r.get(key) or 0) for r in records) for key in ("prompt_tokens", "completion_tokens"))
    cost = None
    if settings.price is not None:
        cost = (sent * settings.price[0] + received * settings.price[1]) / 1e6
    failed = sum("error" in r for r in records)
    seconds = sum(float(r.get("seconds") or 0) for r in records)
    return EndpointUsage(len(records) - failed, failed, sent, received, seconds, cost)
