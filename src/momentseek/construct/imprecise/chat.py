"""Rewriting queries by a language model behind any OpenAI-compatible chat endpoint.

Queries go in batches of numbered lines and come back as such (TVR-Ranking, appendix A, describes the task; the wording
here is our own). The answer is read strictly: a line counts only under a number that was sent; missing lines are asked
for again one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from momentseek.chat import KEY_VARIABLES as KEY_VARIABLES
from momentseek.chat import ChatCompletions, checked_address

NUMBERED_LINE = re.compile(r"^\s*\(?(\d+)\s*[.:)]\s*(.*\S)\s*$")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
CHAT_INSTRUCTIONS = """\
You make search queries less precise. Each numbered line describes a moment of a TV show and may name characters.
Write every line again without any character's name:
- put general words in their place: a man, a woman, a person, another woman, two people, some people, a doctor;
- choose man or woman by what the name or the line's pronouns tell, and person where they tell nothing;
- keep everything else as it is: the same actions, objects, order and meaning; add nothing and leave nothing out;
- copy a line that names nobody unchanged.
Answer with the same number of lines, each with the number it was given, and nothing else."""


@dataclass(frozen=True)
class ChatEndpoint(ChatCompletions):
    """A chat endpoint that rewrites queries."""

    def rewrite(self, queries: Sequence[str], temperature: float = 0.0) -> list[str | None]:
        """Ask the model for the queries without names; None where it gave no usable line even when asked alone."""
        answers = parse_answer(self.ask(number_lines(queries), temperature), len(queries))
        for i in [i for i, answer in enumerate(answers) if answer is None] if len(queries) > 1 else []:
            answers[i] = parse_answer(self.ask(number_lines([queries[i]]), temperature), 1)[0]
        return answers

    def ask(self, text: str, temperature: float) -> str:
        """Send one message and return the model's answer."""
        system = {"role": "system", "content": CHAT_INSTRUCTIONS}
        return self.complete([system, {"role": "user", "content": text}], temperature)


def open_endpoint(base_url: str | None, model: str | None, timeout: float = 60.0) -> ChatEndpoint:
    """Check an address and make an endpoint of it; a user and password in it are sent, but not kept in the address."""
    address, name, key, login = checked_address(base_url, model)
    return ChatEndpoint(address, name, timeout, key=key, login=login)


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
