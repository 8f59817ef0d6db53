"""What the file is called: people type a file's name into a search, and expect that file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from momentseek.library.video import name_text
from momentseek.library.words import WordMatcher, content_words, words
from momentseek.search.hit import Level
from momentseek.search.streams.timed_text import TextMatch


@dataclass(frozen=True)
class NameHit:
    """A video whose name has words of the query; where in the video the moment lies, its name does not say."""

    video: int
    score: float
    """The stream's own score, which cannot be compared with another stream's."""
    level: Level


def name_terms(text: str) -> list[str]:
    """The words of a text that are looked for in names."""
    return content_words(name_text(text))


def judge_names(matches: Sequence[TextMatch], text: str) -> list[NameHit]:
    """Videos by how much of a text is in their names, best first.

    A name that is the query is a sure hit, one that has all its words a fair one.
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
