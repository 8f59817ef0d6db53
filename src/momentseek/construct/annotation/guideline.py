"""What annotators read: five levels of relevance (after TVR-Ranking, appendix B.1, in our own words)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelevanceLevel:
    """A level of relevance, its name, and when to choose it."""

    value: int
    name: str
    meaning: str


RELEVANCE_LEVELS = (
    RelevanceLevel(
        4, "perfect", "All the query's actions happen, in plain view, and the moment holds them whole and little else."
    ),
    RelevanceLevel(
        3, "good", "The actions happen, but a detail of the query is missing or different, or there is extra footage."
    ),
    RelevanceLevel(2, "partial", "Only part of what the query says happens, or much of it is out of view or cut off."),
    RelevanceLevel(1, "slight", "Some people, things or side actions fit, but the main action is another."),
    RelevanceLevel(0, "unrelated", "Nothing the query says happens; that there is a person in both does not count."),
)
"""Best first, as the labelling page lists them."""

INSTRUCTIONS = (
    "Watch the moment and judge by what you see: does the action fit, is it in view, is it there from start to end? "
    "Do not guess what happens before or after."
)
EXAMPLE_JUDGEMENTS = (
    "For “a woman takes off her coat and hangs it up”: 4 if one or more women do just that; 3 if they do, among other "
    "things; 2 if a coat is only hung up; 1 if there are a woman and a coat, and she does something else with it; 0 if "
    "people do something else altogether."
)
