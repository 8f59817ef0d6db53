"""Client for OpenAI-compatible chat endpoints.

Server and network errors are retried with growing pauses and then reported in one sentence. An answer that is not
complete within the timeout is abandoned, even if it is still arriving. The key comes from the environment, is sent only
to the given host (redirects are refused) and is never shown.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.workers import BackgroundIterator

KEY_VARIABLES = ("MOMENTSEEK_CHAT_KEY", "OPENAI_API_KEY")
RETRIABLE_STATUS = {408, 409, 425, 429, 500, 502, 503, 504}
"""HTTP status codes after which a retry may succeed."""
MAX_ANSWER_BYTES = 4 << 20
MAX_WAIT_SECONDS = 60.0
"""Longest wait that a server may request."""


def key_in_environment() -> str:
    """Return the key from the environment, or ""; refuse characters that a header cannot contain."""
    for name in KEY_VARIABLES:
        if key := os.environ.get(name, "").strip():
            if not re.fullmatch(r"[!-~]+", key):
                raise MomentseekError(f"{name} holds a character that cannot be sent in a key; set it again")
            return key
    return ""


@dataclass(frozen=True)
class ChatAnswer:
    """A server's answer: the HTTP status, the headers and (the beginning of) the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Completion:
    """A model's answer and its token counts as reported by the server; 0 if not reported."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finished: str = ""
    """Why it stopped: ``stop``, ``length`` (it was cut off), ``content_filter``."""


@dataclass(frozen=True)
class ChatCompletions:
    """A chat endpoint, its model, and the settings for timeouts and retries."""

    base_url: str
    """Address of the endpoint, without user and password."""
    model: str
    timeout: float = 60.0
    """Seconds after which a request without a complete answer is abandoned."""
    attempts: int = 5
    pause: float = 1.0
    """Seconds before the second attempt; doubled each time."""
    sleep: Callable[[float], None] = time.sleep
    key: str = field(default_factory=key_in_environment, repr=False)
    login: str = field(default="", repr=False)
    """``user:password``, sent instead of a key."""

    def complete(self, messages: Sequence[Mapping[str, Any]], temperature: float = 0.0, **more: Any) -> str:
        """Send messages and return the model's text; ``more`` are further settings, such as ``max_tokens``."""
        return self.ask(messages, temperature, **more).text

    def ask(self, messages: Sequence[Mapping[str, Any]], temperature: float = 0.0, **more: Any) -> Completion:
        """Send messages and return the model's answer with its number of tokens."""
        import httpx  # it also loads its own command line, which takes a tenth of the time of a search

        body = {"model": self.model, "temperature": temperature, "messages": list(messages), **more}
        data = json.dumps(body).encode()
        problem, wanted = "", 0.0
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(max(wanted, self.pause * 2 ** (attempt - 1)))
            wanted = 0.0
            try:
                answer = _run_within(self.timeout, lambda: self._post(data))
                if 200 <= answer.status < 300:
                    return _completion(answer.body)
                problem = f"answered HTTP {answer.status}{self._error_message(answer.body)}"
                wanted = _wait(answer.headers.get("Retry-After", ""))
                if answer.status not in RETRIABLE_STATUS:
                    raise MomentseekError(f"{self.base_url}: {problem}; {_advice(answer)}")
            except (TimeoutError, httpx.TimeoutException):
                problem = f"gave no answer within {self.timeout:g} s"
            except httpx.RemoteProtocolError as e:
                problem = f"broke off its answer ({e})"
            except httpx.TransportError as e:
                problem = f"cannot be reached ({e})"
            except (ValueError, LookupError, TypeError):
                problem = "answered with something that is no chat completion"
        raise MomentseekError(
            f"{self.base_url}: {problem}, {self.attempts} times; check {parameter('base_url')} and "
            f"{parameter('model')}, then run the same "
            "command to continue where it stopped"
        )

    def _post(self, body: bytes) -> ChatAnswer:
        import httpx

        headers = {"Content-Type": "application/json", "User-Agent": "momentseek", "Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        elif self.login:
            headers["Authorization"] = f"Basic {_basic_credentials(self.login)}"
        deadline = time.monotonic() + self.timeout
        url = f"{self.base_url.rstrip('/')}/chat/completions"
        with httpx.stream("POST", url, content=body, headers=headers, timeout=self.timeout) as answer:
            data = b""
            for chunk in answer.iter_raw():
                data += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError
                if len(data) > MAX_ANSWER_BYTES:
                    break
            return ChatAnswer(answer.status_code, answer.headers, data[:MAX_ANSWER_BYTES])

    def _error_message(self, body: bytes) -> str:
        """Return the server's error message, shortened and without any secret that it was sent."""
        try:
            message = json.loads(body)["error"]["message"]
        except (ValueError, LookupError, TypeError):
            return ""
        words = "".join(c for c in " ".join(str(message).split()) if c.isprintable())
        password = self.login.partition(":")[2]
        for secret in filter(None, (self.key, self.login, self.login and _basic_credentials(self.login), password)):
            words = words.replace(secret, "…")
        return f" ({words[:200]})"


def checked_address(base_url: str | None, model: str | None) -> tuple[str, str, str, str]:
    """Return the address without user and password, the model, the key and ``user:password``; refuse invalid ones.

    >>> checked_address("ftp://x", "m")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: `base_url` is 'ftp://x', not a web address; give one like https://host/v1
    >>> checked_address("https://me:secret@host/v1", "m")[0]
    'https://host/v1'
    """
    if not base_url or not model:
        raise MomentseekError(
            f"a chat endpoint needs an address ({parameter('base_url')}, https://host/v1) and the name of a model "
            f"({parameter('model')})"
        )
    parts = _parse_address(base_url)
    if parts is None:
        raise MomentseekError(
            f"{parameter('base_url')} is {mask_login(base_url)!r}, not a web address; give one like https://host/v1"
        )
    login, _, host = parts.netloc.rpartition("@")
    key = key_in_environment()
    if login and key:
        raise MomentseekError(
            f"{parameter('base_url')} has a user and {' or '.join(k for k in KEY_VARIABLES if os.environ.get(k))} a "
            "key, "
            "but only one can be sent; remove one"
        )
    return parts._replace(netloc=host).geturl(), model, key, unquote(login)


def mask_login(url: str) -> str:
    """Hide the user and password in an address.

    >>> mask_login("http://me:secret@host:x/v1"), mask_login("http://host/v1")
    ('http://…@host:x/v1', 'http://host/v1')
    """
    before, at, after = url.rpartition("@")
    scheme = match[0] if (match := re.match(r"https?://", before)) else ""
    return f"{scheme}…@{after}" if at else url


def _wait(header: str) -> float:
    """Return the seconds of a Retry-After header; an invalid or absurd one is ignored."""
    return min(float(header), MAX_WAIT_SECONDS) if header.isascii() and header.isdigit() and len(header) < 9 else 0.0


def _completion(data: bytes) -> Completion:
    answer: Any = json.loads(data)
    choice = answer["choices"][0]
    content = choice["message"].get("content")
    if content is None:  # some servers send a refusal in a separate field
        content = choice["message"]["refusal"]
    if not isinstance(content, str):
        raise TypeError
    usage = answer.get("usage") or {}
    prompt, said = (_whole(usage.get(key)) for key in ("prompt_tokens", "completion_tokens"))
    return Completion(content, prompt, said, str(choice.get("finish_reason") or ""))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _parse_address(url: str) -> SplitResult | None:
    """Return the parts of a usable web address, or None."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if ":" in host:
            ipaddress.IPv6Address(host)
    except ValueError:
        return None
    named = ":" in host or re.fullmatch(r"([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?", host)
    whole = re.fullmatch(r"[!-~]+", url) and not re.search(r"[\[\]<>\"\\^`{|}]", parts.path)
    fits = parts.scheme in ("http", "https") and port != 0 and not parts.query and not parts.fragment
    return parts if named and whole and fits else None


def _run_within(seconds: float, work: Callable[[], ChatAnswer]) -> ChatAnswer:
    """Run ``work``; raise TimeoutError if it takes longer, even during a name lookup or slow headers."""
    answers = BackgroundIterator(work() for _ in range(1)).take(wait=seconds)
    if not answers:
        raise TimeoutError
    return answers[0]


def _basic_credentials(login: str) -> str:
    return base64.b64encode(login.encode()).decode()


def _advice(refusal: ChatAnswer) -> str:
    if 300 <= refusal.status < 400:
        place = refusal.headers.get("Location", "")
        where = f" to {mask_login(place)[:200]!r}" if place else ""
        return f"redirects{where} are not followed, so give the address itself as {parameter('base_url')}"
    if refusal.status in (401, 403):
        return f"set {KEY_VARIABLES[0]} (or {KEY_VARIABLES[1]}) to a valid key"
    return f"check {parameter('base_url')} and {parameter('model')}"
