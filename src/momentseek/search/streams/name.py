"""The name stream: finds videos by their file names."""

from __future__ import annotations

from dataclasses import dataclass

from momentseek.library.video import name_text
from momentseek.library.word_counts import TextRows
from momentseek.library.words import content_words, words
from momentseek.search.hit import Level


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


def judge_names(found: TextRows, text: str) -> list[NameHit]:
    """Rank videos by the share of a text's words in their names, best first.

    A name that equals the query is a strong hit, one that contains all its words a fair hit.
    """
    own = words(name_text(text))
    out = []
    columns = (found.videos, found.table[2].tolist(), found.holds.mean(axis=1).tolist(), found.texts)
    for video, bm25, share, name in zip(*columns, strict=True):
        same = own in (words(name_text(name)), words(name_text(name.rsplit("/", 1)[-1])))
        level: Level = "strong" if same else "fair" if share == 1 else "weak"
        out.append(NameHit(video, same + share + bm25 / (1 + bm25) / 100, level))
    return sorted(out, key=lambda n: (-n.score, n.video))
