"""When the words of a phrase are spoken, where a recogniser heard them: bounds that are closer than a cue's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from momentseek.library.catalog import Catalog
from momentseek.library.transcripts import transcribed_videos, transcript
from momentseek.library.words import plain_words
from momentseek.search.hit import StreamHit
from momentseek.transcription import SpokenCue, SpokenWord

WORD_MARGIN_SECONDS = 0.1
"""Time before the first and after the last word of a phrase that its moment takes in (docs/transcribing.md)."""
MAX_BOUNDED_HITS = 200
"""Hits that are bounded by their words; nobody looks at more."""

TimedToken = tuple[str, float, float]


def bound_by_words(catalog: Catalog, hits: Sequence[StreamHit], phrases: Sequence[str]) -> list[StreamHit]:
    """The same hits, with the times of the phrases' words where these are known, else as they are."""
    heard = transcribed_videos(catalog) if hits else frozenset()
    cues: dict[int, tuple[SpokenCue, ...]] = {}
    out = []
    for hit in hits[:MAX_BOUNDED_HITS]:
        if hit.video in heard:
            if hit.video not in cues:
                found = transcript(catalog, hit.video)
                cues[hit.video] = found.cues if found is not None else ()
            said = [cue for cue in cues[hit.video] if hit.start <= cue.start and cue.end <= hit.end]
            bounds = phrase_bounds([token for cue in said for token in timed_tokens(cue.words)], phrases)
            if bounds is not None:
                start, end = bounds
                hit = replace(hit, start=max(0.0, start - WORD_MARGIN_SECONDS), end=end + WORD_MARGIN_SECONDS)
        out.append(hit)
    return [*out, *hits[MAX_BOUNDED_HITS:]]


def phrase_bounds(said: Sequence[TimedToken], phrases: Sequence[str]) -> tuple[float, float] | None:
    """From the first word of the phrases to their last, where they are nearest; None if one of them is not said.

    >>> said = [("a", 0.0, 0.1), ("red", 0.1, 0.4), ("a", 0.5, 0.6), ("blue", 0.6, 0.9), ("day", 1.0, 1.3)]
    >>> phrase_bounds(said, ["a blue"]), phrase_bounds(said, ["red", "Day!"]), phrase_bounds(said, ["green"])
    ((0.5, 0.9), (0.1, 1.3), None)
    """
    bounds: tuple[float, float] | None = None
    for phrase in phrases:
        sought = plain_words([phrase])[0].split()
        places = list(_places(said, sought)) if sought else []
        if not places:
            return None
        first = bounds or places[0]
        joined = [(min(first[0], start), max(first[1], end)) for start, end in places]
        bounds = min(joined, key=lambda both: both[1] - both[0])
    return bounds


def _places(said: Sequence[TimedToken], sought: Sequence[str]) -> Iterator[tuple[float, float]]:
    texts = [text for text, _, _ in said]
    for at in range(len(texts) - len(sought) + 1):
        if texts[at : at + len(sought)] == list(sought):
            yield said[at][1], said[at + len(sought) - 1][2]


def timed_tokens(words: Sequence[SpokenWord]) -> list[TimedToken]:
    """The words as searches compare them, each with the times of the pieces in which it was heard.

    >>> pieces = [" It's", " self", "-made", "!"]
    >>> timed_tokens([SpokenWord(at, at + 1, text) for at, text in enumerate(pieces)])
    [('it', 0, 1), ('s', 0, 1), ('self', 1, 2), ('made', 2, 3)]
    """
    out: list[TimedToken] = []
    for word, plain in zip(words, plain_words(list(accumulate(word.text for word in words))), strict=True):
        tokens = plain.split()
        if out and len(tokens) >= len(out) and tokens[len(out) - 1] != out[-1][0]:  # a piece goes on with a word
            out[-1] = (tokens[len(out) - 1], out[-1][1], word.end)
        out += [(token, word.start, word.end) for token in tokens[len(out) :]]
    return out
