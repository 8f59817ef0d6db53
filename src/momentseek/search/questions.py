"""Questions: rules that turn a question into the query that it means.

"What did he say about the door?" asks for speech, and a door in the picture does not answer it. "When does the dog
jump?" asks for a dog that jumps, and the question words are noise. "A beach without people" avoids people, whereas an
image encoder would look for them. English only; a query that no rule matches stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from momentseek.search.query import Part, Query

_ASKS = r"(?:what|when|where|who|why|which|how often|how many times|did|does|do|has|have|is|was)\b"
_SAY = r"(?:say|says|said|saying|mention(?:s|ed|ing)?|discuss(?:es|ed|ing)?|explain(?:s|ed|ing)?)"
_TALK = r"(?:talk(?:s|ed|ing)?|speak(?:s|ing)?|spoke|spoken|tell(?:s|ing)?|told)"
_HELPS = r"(?:does|do|did|is|are|was|were|has|have|can (?:i|we|you) see|will)"
_SCENES = r"(?:(?:all |every |the |a )*(?:moment|scene|clip|part|place|video)s? (?:when|where|with|of|in which) )?"
_SAID_RULES = tuple(
    re.compile(rule, re.IGNORECASE)
    for rule in (
        rf"{_ASKS}.*?\b{_SAY}(?: anything| something)?(?: (?:about|of|that|the words?))? (?P<topic>.+)",
        rf"{_ASKS}.*?\b{_TALK}\b(?: \w+){{0,3}}? (?:about|of) (?P<topic>.+)",
        r"(?:is|are|was|were) (?P<topic>.+?) (?:ever )?(?:mentioned|discussed|explained|talked about)",
    )
)
"""Questions about what is said."""
_SEEN_RULES = tuple(
    (re.compile(rule, re.IGNORECASE), note)
    for rule, note in (
        (rf"how (?:many times|often) {_HELPS} (?P<topic>.+)", "count"),
        (r"how many (?P<topic>.+?) (?:are|were|is|was) there\b.*", "count"),
        (rf"why {_HELPS} (?P<topic>.+)", "reason"),
        (rf"(?:when|where|at what time|in (?:which|what) (?:video|clip|film|scene)s?) {_HELPS} (?P<topic>.+)", ""),
        (r"(?:is|are|was|were) there (?:any |an? )?(?P<topic>.+)", ""),
        (rf"(?:show|find|give) me {_SCENES}(?P<topic>.+)", ""),
        (r"what happens (?:when |after |before |as )?(?P<topic>.+)", ""),
        (r"what (?:does|did|do) (?P<topic>(?!he\b|she\b|they\b|it\b|we\b|you\b|i\b).+?) say", ""),
        (r"what (?:is|are|was|were) (?:there )?(?P<topic>.+)", ""),
        (r"who (?:is |are |was |were )?(?P<topic>.+)", ""),
    )
)
"""Other questions, each with the key of a note on what a search cannot answer."""
_ENDINGS = re.compile(r"(?: (?:happen|happens|happened|occur|occurs|appear|appears|come up))?[ ?!.]*$", re.IGNORECASE)
_PLACES = r"(?:at|by|during|from|in|near|on|under)"
_WITHOUT = re.compile(
    r"(?P<seen>.+?),? (?:without|with no|but no) (?:any |an? |the )?"
    rf"(?P<avoided>\w+(?: \w+)??)(?P<place> {_PLACES} .+)?",
    re.IGNORECASE,
)
NOTES = {
    "said": "read as a question about what is said",
    "": "read as a question about",
    "count": "asks how often: these are the moments found, not a count; read as",
    "reason": "asks for a reason, which a search does not know; read as",
}


class ReadQuestion(NamedTuple):
    """A query as it is searched, and a note on how it was read; empty if it is not a question."""

    query: Query
    note: str = ""


def read_question(query: Query) -> ReadQuestion:
    """Turn a question into the query that it means; filters and things to avoid stay.

    >>> read_question(Query.parse("what did he say about the door? in:film*")).query
    Query(text='', parts=(), ..., said=('the door',), ..., within=('film*',), ...)
    >>> str(read_question(Query.parse("When does the dog jump?")).query)
    'the dog jump'
    >>> read_question(Query.parse("a beach without people at sunset")).note
    'read as: a beach at sunset -people'
    >>> read_question(Query.parse("a street with no cars")).note
    'read as: a street -cars'
    >>> read_question(Query.parse("a man who says hello")).note
    ''
    """
    if query.parts or query.phrases or query.said or query.written or query.described or query.names:
        return ReadQuestion(query)
    text = _ENDINGS.sub("", query.text)
    for rule in _SAID_RULES:
        if found := rule.fullmatch(text):
            topic = found["topic"].strip()
            return ReadQuestion(replace(query, text="", said=(topic,)), f"{NOTES['said']}: {topic}")
    for rule, kind in _SEEN_RULES:
        if found := rule.fullmatch(text):
            topic = found["topic"].strip()
            return ReadQuestion(replace(query, text=topic), f"{NOTES[kind]}: {topic}")
    if found := _WITHOUT.fullmatch(query.text):
        plain = replace(
            query, text=found["seen"] + (found["place"] or ""), avoid=(*query.avoid, Part(found["avoided"]))
        )
        return ReadQuestion(plain, f"read as: {plain}")
    return ReadQuestion(query)
