"""What the file is called: people type a file's name into a search, and expect that file."""

from __future__ import annotations

import json
from dataclasses import dataclass

from momentseek.library.catalog import Catalog
from momentseek.library.names import name_text
from momentseek.search.hit import Level
from momentseek.search.streams.sights import Ids
from momentseek.search.words import Matcher, any_of, content, words

LIMIT = 100


@dataclass(frozen=True)
class Named:
    """A video whose name has words of the query."""

    video: int
    score: float
    level: Level


def named(catalog: Catalog, text: str, allowed: Ids | None = None) -> list[Named]:
    """Videos by how much of the query is in their names, best first.

    A name that is the query is a sure hit, one that has all its words a fair one.
    """
    terms = content(name_text(text))
    if not terms:
        return []
    sql = """SELECT videos.id, videos.name, -bm25(name_words) FROM name_words
             JOIN videos ON videos.id = name_words.rowid
             WHERE name_words MATCH ?1 AND (?2 IS NULL OR videos.id IN (SELECT value FROM json_each(?2)))
             ORDER BY bm25(name_words), videos.id LIMIT ?3"""
    listed = None if allowed is None else json.dumps(allowed.tolist())
    rows = catalog.rows(sql, (any_of(terms), listed, LIMIT))
    if not rows:
        return []
    has = Matcher([name_text(name) for _, name, _ in rows]).found(terms)
    out = []
    for (id, name, bm25), found in zip(rows, has, strict=True):
        share = float(found.mean())
        own = words(name_text(text))
        same = own in (words(name_text(name)), words(name_text(name.rsplit("/", 1)[-1])))
        level: Level = "strong" if same else "fair" if share == 1 else "weak"
        out.append(Named(id, same + share + bm25 / (1 + bm25) / 100, level))
    return sorted(out, key=lambda n: (-n.score, n.video))
