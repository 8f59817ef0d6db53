"""Rewriting queries by a language model behind any OpenAI-compatible chat endpoint, over plain HTTP.

Queries go in batches of numbered lines and come back as such (TVR-Ranking, appendix A, describes the task; the wording
here is our own). The answer is read strictly: a line counts only under a number that was sent; missing lines are asked
for again one by one. Errors of the server and of the network are retried with growing pauses and then reported in one
sentence; an answer that is not complete within the time-out is given up, however slowly it still arrives. The key comes
from the environment, goes to the given host only (redirects are refused) and is never shown.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from momentseek.errors import MomentseekError

KEY_VARIABLES = ("MOMENTSEEK_CHAT_KEY", "OPENAI_API_KEY")
NUMBERED_LINE = re.compile(r"^\s*\(?(\d+)\s*[.:)]\s*(.*\S)\s*$")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
RETRIABLE_STATUS = {408, 409, 425, 429, 500, 502, 503, 504}
"""HTTP answers after which the same request may succeed."""
MAX_ANSWER_BYTES = 4 << 20
CHUNK_BYTES = 1 << 16

CHAT_INSTRUCTIONS = """\
You make search queries less precise. Each numbered line describes a moment of a TV show and may name characters.
Write every line again without any character's name:
- put general words in their place: a man, a woman, a person, another woman, two people, some people, a doctor;
- choose man or woman by what the name or the line's pronouns tell, and person where they tell nothing;
- keep everything else as it is: the same actions, objects, order and meaning; add nothing and leave nothing out;
- copy a line that names nobody unchanged.
Answer with the same number of lines, each with the number it was given, and nothing else."""


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

    def __init__(self, code: int, message: str, place: str) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.place = place
        """Where a redirect leads."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an error like others, so that the key goes nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Return None: the redirect is not followed."""


@dataclass(frozen=True)
class ChatEndpoint:
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

    def rewrite(self, queries: Sequence[str], temperature: float = 0.0) -> list[str | None]:
        """Ask the model for the queries without names; None where it gave no usable line even when asked alone."""
        answers = parse_answer(self.ask(number_lines(queries), temperature), len(queries))
        for i in [i for i, answer in enumerate(answers) if answer is None] if len(queries) > 1 else []:
            answers[i] = parse_answer(self.ask(number_lines([queries[i]]), temperature), 1)[0]
        return answers

    def ask(self, text: str, temperature: float) -> str:
        """Send one message and return the model's answer."""
        body = {
            "model": self.model,
            "temperature": temperature,
            "messages": [{"role": "system", "content": CHAT_INSTRUCTIONS}, {"role": "user", "content": text}],
        }
        data = json.dumps(body).encode()
        problem = ""
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(self.pause * 2 ** (attempt - 1))
            try:
                return _answer_text(_run_within(self.timeout, lambda: self._post(data)))
            except RequestRefused as e:
                problem = f"answered HTTP {e.code}{e.message}"
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
                raise RequestRefused(e.code, self._error_message(e, deadline), e.headers.get("Location", "")) from None

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


def open_endpoint(base_url: str | None, model: str | None, timeout: float = 60.0) -> ChatEndpoint:
    """Check an address and make an endpoint of it; a user and password in it are sent, but not kept in the address.

    >>> open_endpoint("ftp://x", "m")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: `base_url` is 'ftp://x', not a web address; give one like https://host/v1
    >>> open_endpoint("https://me:secret@host/v1", "m").base_url
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
    return ChatEndpoint(parts._replace(netloc=host).geturl(), model, timeout, key=key, login=unquote(login))


def mask_login(url: str) -> str:
    """Hide the user and password that an address may hold.

    >>> mask_login("http://me:secret@host:x/v1"), mask_login("http://host/v1")
    ('http://…@host:x/v1', 'http://host/v1')
    """
    before, at, after = url.rpartition("@")
    scheme = match[0] if (match := re.match(r"https?://", before)) else ""
    return f"{scheme}…@{after}" if at else url


def number_lines(queries: Sequence[str]) -> str:
    """Write one line per query, with its number.

    >>> number_lines(["a dog", " two\\nlines "])
    '1. a dog\\n2. two lines'
    """
    return "\n".join(f"{i}. {' '.join(q.split())}" for i, q in enumerate(queries, 1))


def parse_answer(answer: str, count: int) -> list[str | None]:
    """Read the lines of an answer by their numbers; None for a number that is missing or occurs twice.

    A line with half a character (a lone surrogate), which no file can hold, counts as missing.

    >>> parse_answer("Sure!\\n2. a man sits\\n1) a dog\\n4. what?\\n3: x\\n3: y", 3)
    ['a dog', 'a man sits', None]
    """
    lines: dict[int, str | None] = {}
    for line in answer.splitlines():
        if match := NUMBERED_LINE.match(line):
            number = int(match[1]) if len(match[1]) < 9 else 0
            lines[number] = None if number in lines or LONE_SURROGATE.search(line) else match[2]
    return [lines.get(i) for i in range(1, count + 1)]


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
