"""Rewriting queries by a language model behind any OpenAI-compatible chat endpoint, over plain HTTP.

Queries go in batches of numbered lines and come back as such (TVR-Ranking, appendix A, describes the task; the wording
here is our own). The answer is read strictly: a line counts only under a number that was asked; lines that are missing
are asked again alone. Errors of the server and of the network are retried with growing pauses, and then said in one
sentence. The key comes from the environment and is never shown.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from momentseek.errors import MomentseekError

KEYS = ("MOMENTSEEK_CHAT_KEY", "OPENAI_API_KEY")
LINE = re.compile(r"^\s*\(?(\d+)\s*[.:)]\s*(.*\S)\s*$")
PASSING = {408, 409, 425, 429, 500, 502, 503, 504}
"""HTTP answers after which the same request may succeed."""
LONGEST_ANSWER = 4 << 20

TASK = """\
You make search queries less precise. Each numbered line describes a moment of a TV show and may name characters.
Write every line again without any character's name:
- put general words in their place: a man, a woman, a person, another woman, two people, some people, a doctor;
- choose man or woman by what the name or the line's pronouns tell, and person where they tell nothing;
- keep everything else as it is: the same actions, objects, order and meaning; add nothing and leave nothing out;
- copy a line that names nobody unchanged.
Answer with the same number of lines, each with the number it was given, and nothing else."""


@dataclass(frozen=True)
class Chat:
    """An endpoint and how patiently to ask it."""

    base_url: str
    model: str
    timeout: float = 60.0
    """Seconds without an answer after which a request is given up."""
    attempts: int = 5
    pause: float = 1.0
    """Seconds before the second attempt; doubled each time."""
    sleep: Callable[[float], None] = time.sleep

    def rewrite(self, queries: Sequence[str], temperature: float = 0.0) -> list[str | None]:
        """The queries without names, in their order; None where the model gave no usable line even when asked alone."""
        answers = parse(self.ask(numbered(queries), temperature), len(queries))
        for i in [i for i, answer in enumerate(answers) if answer is None] if len(queries) > 1 else []:
            answers[i] = parse(self.ask(numbered([queries[i]]), temperature), 1)[0]
        return answers

    def ask(self, text: str, temperature: float) -> str:
        """The model's answer to one message."""
        body = {
            "model": self.model,
            "temperature": temperature,
            "messages": [{"role": "system", "content": TASK}, {"role": "user", "content": text}],
        }
        problem = ""
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(self.pause * 2 ** (attempt - 1))
            try:
                return _content(self._post(json.dumps(body).encode()))
            except urllib.error.HTTPError as e:
                with e:
                    said = _said(e)
                problem = f"answered HTTP {e.code}{said}"
                if e.code not in PASSING:
                    raise MomentseekError(f"{self.base_url}: {problem}; {_advice(e.code)}") from None
            except TimeoutError:
                problem = f"gave no answer within {self.timeout:g} s"
            except (OSError, urllib.error.URLError) as e:
                reason = getattr(e, "reason", e)
                slow = isinstance(reason, TimeoutError)
                problem = f"gave no answer within {self.timeout:g} s" if slow else f"cannot be reached ({reason})"
            except (ValueError, LookupError, TypeError):
                problem = "answered with something that is no chat completion"
        raise MomentseekError(
            f"{self.base_url}: {problem}, {self.attempts} times; check --base-url and --model, then run the same "
            "command to go on where it stopped"
        )

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "User-Agent": "momentseek"}
        if key := next((os.environ[k] for k in KEYS if os.environ.get(k)), None):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{self.base_url.rstrip('/')}/chat/completions", body, headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as answer:
            data: bytes = answer.read(LONGEST_ANSWER)
        return data


def chat_at(base_url: str | None, model: str | None, timeout: float = 60.0) -> Chat:
    """A checked endpoint.

    >>> chat_at("ftp://x", "m")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: --base-url 'ftp://x' is not a web address; give one like https://host/v1
    """
    if not base_url or not model:
        raise MomentseekError("--backend chat needs --base-url (https://host/v1) and --model")
    if not re.match(r"https?://[^/\s]", base_url):
        raise MomentseekError(f"--base-url {base_url!r} is not a web address; give one like https://host/v1")
    return Chat(base_url, model, timeout)


def numbered(queries: Sequence[str]) -> str:
    """One line per query, with its number.

    >>> numbered(["a dog", " two\\nlines "])
    '1. a dog\\n2. two lines'
    """
    return "\n".join(f"{i}. {' '.join(q.split())}" for i, q in enumerate(queries, 1))


def parse(answer: str, count: int) -> list[str | None]:
    """The lines of an answer by their numbers; None for a number that is missing or stands twice.

    >>> parse("Sure!\\n2. a man sits\\n1) a dog\\n4. what?\\n3: x\\n3: y", 3)
    ['a dog', 'a man sits', None]
    """
    lines: dict[int, str | None] = {}
    for line in answer.splitlines():
        if match := LINE.match(line):
            number = int(match[1]) if len(match[1]) < 9 else 0
            lines[number] = None if number in lines else match[2]
    return [lines.get(i) for i in range(1, count + 1)]


def _content(data: bytes) -> str:
    answer: Any = json.loads(data)
    content = answer["choices"][0]["message"]["content"]
    if not isinstance(content, str):
        raise TypeError
    return content


def _said(error: urllib.error.HTTPError) -> str:
    """What a server says about its refusal, cut short."""
    try:
        message = json.loads(error.read(10_000))["error"]["message"]
        words = " ".join(str(message).split())
    except (ValueError, LookupError, TypeError, OSError):
        return ""
    for key in KEYS:
        if secret := os.environ.get(key):
            words = words.replace(secret, "…")
    return f" ({words[:200]})"


def _advice(code: int) -> str:
    if code in (401, 403):
        return f"set {KEYS[0]} (or {KEYS[1]}) to a valid key"
    return "check --base-url and --model"
