"""The name stream: finds videos by their file names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from momentseek.library.video import name_text
from momentseek.library.words import WordMatcher, content_words, words
from momentseek.search.hit import Level
from momentseek.search.streams.timed_text import TextMatch


@dataclass(frozen=True)
class NameHit:
    """A video whose name contains words of the query; a name says nothing about times."""

    video: int
    score: float
    """The stream's score, not comparable with that of another stream."""
    level: Level


def name_terms(text: str) -> list[str]:
    """The words of a text to look for in names."""
    return content_words(name_text(text))


def judge_names(matches: Sequence[TextMatch], text: str) -> list[NameHit]:
    """Rank videos by the share of a text's words in their names, best first.

    A name that equals the query is a strong hit, one that contains all its words a fair hit.
    """
    terms = name_terms(text)
    has = WordMatcher([name_text(match.text) for match in matches]).matches(terms)
    own = words(name_text(text))
    out = []
    for match, found in zip(matches, has, strict=True):
        share = float(found.mean())
        same = own in (words(name_text(match.text)), words(name_text(match.text.rsplit("/", 1)[-1])))
        level: Level = "strong" if same else "fair" if share == 1 else "weak"
        out.append(NameHit(match.video, same + share + match.bm25 / (1 + match.bm25) / 100, level))
    return sorted(out, key=lambda n: (-n.score, n.video))
