"""Asking a model behind any OpenAI-compatible chat endpoint, over plain HTTP.

Errors of the server and of the network are retried with growing pauses and then reported in one sentence; an answer
that is not complete within the time-out is given up, however slowly it still arrives. The key comes from the
environment, goes to the given host only (redirects are refused) and is never shown.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import queue
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from momentseek.core.errors import MomentseekError

KEY_VARIABLES = ("MOMENTSEEK_CHAT_KEY", "OPENAI_API_KEY")
RETRIABLE_STATUS = {408, 409, 425, 429, 500, 502, 503, 504}
"""HTTP answers after which the same request may succeed."""
MAX_ANSWER_BYTES = 4 << 20
CHUNK_BYTES = 1 << 16
MAX_WAIT_SECONDS = 60.0
"""Longest wait that a server may ask for."""


def key_in_environment() -> str:
    """The key from the environment, or ""; refused if it holds a character that no header can carry."""
    for name in KEY_VARIABLES:
        if key := os.environ.get(name, "").strip():
            if not re.fullmatch(r"[!-~]+", key):
                raise MomentseekError(f"{name} holds a character that cannot be sent in a key; set it again")
            return key
    return ""


class RequestRefused(Exception):
    """Raised when the server answers with an HTTP error."""

    def __init__(self, code: int, message: str, place: str, wait: float = 0.0) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.place = place
        """Where a redirect leads."""
        self.wait = wait
        """Seconds after which the server wants to be asked again."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an error like others, so that the key goes nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Return None: the redirect is not followed."""


@dataclass(frozen=True)
class ChatCompletions:
    """A chat endpoint, its model, and how patiently to ask it."""

    base_url: str
    """Address of the endpoint, without user and password."""
    model: str
    timeout: float = 60.0
    """Seconds after which a request without a whole answer is given up."""
    attempts: int = 5
    pause: float = 1.0
    """Seconds before the second attempt; doubled each time."""
    sleep: Callable[[float], None] = time.sleep
    key: str = field(default_factory=key_in_environment, repr=False)
    login: str = field(default="", repr=False)
    """``user:password``, sent instead of a key."""

    def complete(self, messages: Sequence[Mapping[str, Any]], temperature: float = 0.0, **more: Any) -> str:
        """Send messages and return the model's answer; ``more`` are further settings, such as ``max_tokens``."""
        body = {"model": self.model, "temperature": temperature, "messages": list(messages), **more}
        data = json.dumps(body).encode()
        problem, wanted = "", 0.0
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(max(wanted, self.pause * 2 ** (attempt - 1)))
            wanted = 0.0
            try:
                return _answer_text(_run_within(self.timeout, lambda: self._post(data)))
            except RequestRefused as e:
                problem, wanted = f"answered HTTP {e.code}{e.message}", e.wait
                if e.code not in RETRIABLE_STATUS:
                    raise MomentseekError(f"{self.base_url}: {problem}; {_advice(e)}") from None
            except TimeoutError:
                problem = f"gave no answer within {self.timeout:g} s"
            except HTTPException as e:
                problem = f"broke off its answer ({type(e).__name__})"
            except OSError as e:
                reason = getattr(e, "reason", e)
                slow = isinstance(reason, TimeoutError)
                problem = f"gave no answer within {self.timeout:g} s" if slow else f"cannot be reached ({reason})"
            except (ValueError, LookupError, TypeError):
                problem = "answered with something that is no chat completion"
        raise MomentseekError(
            f"{self.base_url}: {problem}, {self.attempts} times; check `base_url` and `model`, then run the same "
            "command to continue where it stopped"
        )

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "User-Agent": "momentseek"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        elif self.login:
            headers["Authorization"] = f"Basic {_basic_credentials(self.login)}"
        request = urllib.request.Request(f"{self.base_url.rstrip('/')}/chat/completions", body, headers)
        deadline = time.monotonic() + self.timeout
        try:
            with urllib.request.build_opener(NoRedirects).open(request, timeout=self.timeout) as answer:
                return _read_answer(answer, MAX_ANSWER_BYTES, deadline)
        except urllib.error.HTTPError as e:
            with e:
                message, place = self._error_message(e, deadline), e.headers.get("Location", "")
                raise RequestRefused(e.code, message, place, _wait(e.headers.get("Retry-After", ""))) from None

    def _error_message(self, error: urllib.error.HTTPError, deadline: float) -> str:
        """What the server says about its refusal, cut short and without any secret that it was sent."""
        try:
            message = json.loads(_read_answer(error, 10_000, deadline))["error"]["message"]
        except (ValueError, LookupError, TypeError, OSError, HTTPException):
            return ""
        words = "".join(c for c in " ".join(str(message).split()) if c.isprintable())
        password = self.login.partition(":")[2]
        for secret in filter(None, (self.key, self.login, self.login and _basic_credentials(self.login), password)):
            words = words.replace(secret, "…")
        return f" ({words[:200]})"


def checked_address(base_url: str | None, model: str | None) -> tuple[str, str, str, str]:
    """An address without user and password, the model, the key and ``user:password``; refused if they make no sense.

    >>> checked_address("ftp://x", "m")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: `base_url` is 'ftp://x', not a web address; give one like https://host/v1
    >>> checked_address("https://me:secret@host/v1", "m")[0]
    'https://host/v1'
    """
    if not base_url or not model:
        raise MomentseekError(
            "a chat endpoint needs an address (`base_url`, https://host/v1) and the name of a model (`model`)"
        )
    parts = _parse_address(base_url)
    if parts is None:
        raise MomentseekError(
            f"`base_url` is {mask_login(base_url)!r}, not a web address; give one like https://host/v1"
        )
    login, _, host = parts.netloc.rpartition("@")
    key = key_in_environment()
    if login and key:
        raise MomentseekError(
            f"`base_url` has a user and {' or '.join(k for k in KEY_VARIABLES if os.environ.get(k))} a key, "
            "but only one can be sent; remove one"
        )
    return parts._replace(netloc=host).geturl(), model, key, unquote(login)


def mask_login(url: str) -> str:
    """Hide the user and password that an address may hold.

    >>> mask_login("http://me:secret@host:x/v1"), mask_login("http://host/v1")
    ('http://…@host:x/v1', 'http://host/v1')
    """
    before, at, after = url.rpartition("@")
    scheme = match[0] if (match := re.match(r"https?://", before)) else ""
    return f"{scheme}…@{after}" if at else url


def _wait(header: str) -> float:
    """The seconds of a Retry-After header; one that is no plain number, or absurd, is left to our own pauses."""
    return min(float(header), MAX_WAIT_SECONDS) if header.isascii() and header.isdigit() and len(header) < 9 else 0.0


def _answer_text(data: bytes) -> str:
    answer: Any = json.loads(data)
    content = answer["choices"][0]["message"]["content"]
    if not isinstance(content, str):
        raise TypeError
    return content


def _parse_address(url: str) -> SplitResult | None:
    """The parts of a usable web address, or None."""
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


def _run_within(seconds: float, work: Callable[[], bytes]) -> bytes:
    """Run ``work``; raise TimeoutError if it takes longer, even while a host is looked up or sends headers slowly."""
    box: queue.SimpleQueue[bytes | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            box.put(work())
        except BaseException as e:
            box.put(e)

    threading.Thread(target=run, daemon=True).start()
    try:
        result = box.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(result, BaseException):
        raise result
    return result


def _read_answer(answer: Any, most: int, deadline: float) -> bytes:
    data = b""
    while len(data) < most:
        if time.monotonic() > deadline:
            raise TimeoutError
        chunk = answer.read1(min(CHUNK_BYTES, most - len(data)))
        if not chunk:
            if getattr(answer, "length", None):
                raise IncompleteRead(data)
            break
        data += chunk
    return data


def _basic_credentials(login: str) -> str:
    return base64.b64encode(login.encode()).decode()


def _advice(refusal: RequestRefused) -> str:
    if 300 <= refusal.code < 400:
        place = f" to {mask_login(refusal.place)[:200]!r}" if refusal.place else ""
        return f"redirects{place} are not followed, so give the address itself as `base_url`"
    if refusal.code in (401, 403):
        return f"set {KEY_VARIABLES[0]} (or {KEY_VARIABLES[1]}) to a valid key"
    return "check `base_url` and `model`"
