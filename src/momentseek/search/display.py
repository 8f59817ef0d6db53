"""Results as text for a terminal: a table of hits, what was said in each, and why it was found."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from momentseek.core.reports import text_table, width
from momentseek.library.catalog import MIN_FUZZY_LETTERS
from momentseek.library.words import WordMatcher, content_words, is_one_letter_off, plain_words, words
from momentseek.recognition.encoders.protocol import Understanding
from momentseek.search.hit import Hit, heard_labels, hidden_text
from momentseek.search.query import Query

MIN_SAID_COLUMNS, MAX_SAID_COLUMNS = 16, 60
"""Smallest and largest width of the column for what was said."""
MAX_NAME_COLUMNS = 36


def table(hits: Sequence[Hit], query: Query, *, columns: int = 120, bold: bool = False, explain: bool = False) -> str:
    """Render hits as a table: rank, level, times, video, what was said, and why each was found."""
    header = ["#", "level", "when", "video", "why"]
    rows = [[str(h.rank), h.level, time_range(h), _shown_name(h), reason(h)] for h in hits]
    room = _said_columns(hits, columns)
    for name, texts in (
        ("heard", heard_lines(hits, query, room)),
        ("described by a model", described_lines(hits, query, room)),
        ("written", written_lines(hits, query, room)),
        ("said", said_lines(hits, query, room)),
    ):
        if any(texts):
            header.insert(4, name)
            for row, text in zip(rows, texts, strict=True):
                row.insert(4, text)
    lines = text_table(header, rows, align="rlrl").split("\n")
    out = [lines[0]]
    for line, hit in zip(lines[1:], hits, strict=True):
        out.append(line)
        out += _below(hit, query, explain)
    return _apply_bold("\n".join(out), bold)


def _below(hit: Hit, query: Query, explain: bool) -> list[str]:
    """The lines below a hit: copies of its file and, with ``explain``, the reasons for its rank."""
    why = (details(hit), said_reason(hit, query), *sparkline(hit).split("\n")) if explain else ()
    return [*(f"   also: {tidy(other)}" for other in hit.also), *(f"   {text}" for text in why if text)]


def card(hit: Hit, query: Query, *, columns: int = 80, bold: bool = False, explain: bool = False) -> str:
    """Render one hit in a few lines, to print below its picture."""
    lines = [f"{hit.rank}  {hit.level}  {time_range(hit)}  {_shown_name(hit)}  {reason(hit)}"]
    for find, room, shape in (
        (said_lines, 3, "   “{}”"),
        (written_lines, 12, "   written: {}"),
        (described_lines, 25, "   described by a model: {}"),
        (heard_lines, 10, "   heard: {}"),
    ):
        (text,) = find([hit], query, columns - room)
        lines += [shape.format(text)] if text else []
    return _apply_bold("\n".join([*lines, *_below(hit, query, explain)]), bold)


def remarks(hidden: int, note: str) -> str:
    """One line about the hits that are not shown, and the note; empty if there is nothing to say."""
    parts = [note] if note else []
    if hidden:
        parts.append(f"{hidden_text(hidden)} hidden; show {'it' if hidden == 1 else 'them'}: --all")
    return "; ".join(parts)


def time_range(hit: Hit) -> str:
    """Start and end of a hit, as ``0:12.0–0:18.5``."""
    return f"{clock(hit.start)}–{clock(hit.end)}"


def clock(seconds: float) -> str:
    """A time in minutes and seconds, with hours if necessary.

    >>> clock(59.96), clock(125.04), clock(3661.5)
    ('1:00.0', '2:05.0', '1:01:01.5')
    """
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{start}:{rest // 10:02d}.{rest % 10}"


def _shown_name(hit: Hit) -> str:
    name = tidy(hit.name)
    if width(name) > MAX_NAME_COLUMNS:
        while width(name) > MAX_NAME_COLUMNS - 1:
            name = name[1:]
        name = f"…{name}"
    return name if hit.path.is_file() else f"{name} (file missing)"


def _said_columns(hits: Sequence[Hit], columns: int) -> int:
    taken = max((width(_shown_name(h)) + len(time_range(h)) + len(reason(h)) for h in hits), default=0) + 20
    return min(MAX_SAID_COLUMNS, max(MIN_SAID_COLUMNS, columns - taken))


def _apply_bold(text: str, bold: bool) -> str:
    return text.replace(BOLD_ON, "\x1b[1m" if bold else "").replace(BOLD_OFF, "\x1b[22m" if bold else "")


# the reasons for a hit's rank

CURVE_BARS = "▁▂▃▄▅▆▇█"
STREAM_VERBS = {
    "vision": "seen",
    "speech": "said",
    "text": "written",
    "described": "described",
    "sound": "heard",
    "name": "named",
}


def reason(hit: Hit) -> str:
    """The streams that found a hit, with its rank in each, in a few words.

    >>> from momentseek.search.hit import StreamRank
    >>> from pathlib import Path
    >>> streams = {"speech": StreamRank(2, 3.1), "vision": StreamRank(1, 0.3)}
    >>> reason(Hit(path=Path("a"), name="a", start=0, end=1, streams=streams))
    'seen #1, said #2'
    """
    if hit.first is not None:
        return f"re-ranked; its video was #{hit.first.rank}"
    return ", ".join(f"{verb} #{hit.streams[name].rank}" for name, verb in STREAM_VERBS.items() if name in hit.streams)


def recognition_text(understood: Understanding) -> str:
    """What the image encoders recognised in a query, in the terms of the JSON output; empty without an encoder.

    >>> recognition_text(Understanding(("things", "clip"), labels=("dog",), words=("dog", "runs"), unknown=("qwz",)))
    'recognised by things, clip: labels dog; words dog, runs; unknown qwz'
    """
    kinds = {name: getattr(understood, name) for name in ("labels", "words", "guessed", "unknown")}
    parts = [f"{name} {', '.join(map(tidy, words))}" for name, words in kinds.items() if words]
    named = "; ".join(parts) or "nothing"
    return f"recognised by {', '.join(understood.encoders)}: {named}" if understood.encoders else ""


def details(hit: Hit) -> str:
    """A hit's rank and score in each stream, and the fused score; for a re-ranked hit, the scores before and after."""
    if hit.first is not None:
        before = f"before, its video had rank {hit.first.rank}, fused {hit.first.score:.5f}"
        return f"{hit.model} score {hit.score:.3f}; {before}"
    parts = [f"{name} rank {s.rank}, score {s.score:.3f}" for name, s in sorted(hit.streams.items())]
    parts += [f"{name} {z:+.1f} spreads" for name, z in hit.encoders.items()]
    return "; ".join([*parts, f"fused {hit.score:.5f}"])


def said_reason(hit: Hit, query: Query) -> str:
    """The words of a query that are said in a hit, and its cosine by meaning; empty if speech did not find it."""
    if "speech" not in hit.streams:
        return ""
    terms = sought_words(query)
    has = WordMatcher([cue.text for cue in hit.said]).matches(terms)
    found = [term for at, term in enumerate(terms) if has[:, at].any()]
    parts = [f"words {', '.join(map(tidy, found))}"] if found else []
    if hit.meant is not None:
        start, end, cosine = hit.meant
        parts.append(f"meaning {cosine:.2f} at {clock(start)}–{clock(end)}")
    return f"said: {'; '.join(parts)}" if parts else ""


def sparkline(hit: Hit, width: int = 60) -> str:
    """The curve of a hit's video as bars, with a line below the moment; empty without a curve.

    >>> from pathlib import Path
    >>> hit = Hit(path=Path("a"), name="a", start=2, end=4, duration=8, curve=(0.1, 0.3, 0.2, 0.1))
    >>> print(sparkline(hit))
    ▁█▅▁
     ━
    """
    if not hit.curve:
        return ""
    values = _pool_maxima(hit.curve, width)
    low, high = min(values), max(values)
    steps = (len(CURVE_BARS) - 1) / (high - low) if high > low else 0.0
    bars = "".join(CURVE_BARS[int((v - low) * steps + 0.5)] for v in values)
    first, last = (round(t / hit.duration * len(values)) for t in (hit.start, hit.end))
    first = min(first, len(values) - 1)
    return f"{bars}\n{' ' * first}{'━' * max(1, last - first)}"


def _pool_maxima(curve: Sequence[float], width: int) -> list[float]:
    """At most ``width`` values, each the highest of its stretch, so that a short moment in a long video stays visible.

    >>> _pool_maxima([1, 5, 2, 3], 2)
    [5, 3]
    """
    count = min(width, len(curve))
    return [max(curve[i * len(curve) // count : (i + 1) * len(curve) // count]) for i in range(count)]


# what was said in a hit

BOLD_ON, BOLD_OFF = "\u2061", "\u2062"
"""Marks around a matched word, later replaced by bold: invisible characters without width, so that tables align."""
WORD_JOINERS = "\u200c\u200d"
"""Invisible characters that some scripts need inside words."""


def sought_words(query: Query) -> list[str]:
    """The words of a query to look for in what is said.

    >>> sought_words(Query.parse('a dog "sit down" said:good'))
    ['good', 'sit', 'down']
    """
    spoken = [] if query.phrases and not query.said else content_words(query.speech_text)
    return list(dict.fromkeys([*spoken, *(word for text in query.phrases for word in words(text))]))


def said_lines(hits: Sequence[Hit], query: Query, columns: int) -> list[str]:
    """The cue of each hit with the most words of the query, cut to ``columns`` characters around the first of them.

    If several have as many, a cue that matches the query by meaning is preferred.
    """
    said = [sorted(hit.said, key=lambda cue: hit.meaning(cue) is None) for hit in hits]
    return _best_texts([[cue.text for cue in some] for some in said], sought_words(query), columns)


def written_lines(hits: Sequence[Hit], query: Query, columns: int) -> list[str]:
    """The line on screen with the most words of the query, for each hit that the text stream found."""
    texts = [[line.text for line in hit.written] if "text" in hit.streams else [] for hit in hits]
    return _best_texts(texts, sought_spellings(query, [text for some in texts for text in some]), columns)


def heard_lines(hits: Sequence[Hit], query: Query, columns: int) -> list[str]:
    """The sound that matches the query, for each hit that the sound stream found."""
    texts = [heard_labels(hit)[:1] if "sound" in hit.streams else [] for hit in hits]
    return _best_texts(texts, [word for part in query.picture_parts for word in content_words(part.text)], columns)


def described_lines(hits: Sequence[Hit], query: Query, columns: int) -> list[str]:
    """The caption with the most words of the query, for each hit that the described stream found."""
    texts = [[caption.text for caption in hit.described] if "described" in hit.streams else [] for hit in hits]
    return _best_texts(texts, content_words(query.described_text), columns)


def sought_spellings(query: Query, texts: Sequence[str]) -> list[str]:
    """The words of a query to look for on screen; for ``text:`` also words of the texts that differ in one letter.

    >>> sought_spellings(Query.parse("text:station"), ["Main Stat1on", "Stallion"])
    ['station', 'stat1on']
    """
    terms = content_words(query.written_text)
    read = dict.fromkeys(word for text in plain_words(texts) for word in text.split())
    long = [term for term in terms if query.written and len(term) >= MIN_FUZZY_LETTERS]
    return [*terms, *(word for word in read if any(is_one_letter_off(term, word) for term in long))]


def _best_texts(texts: Sequence[Sequence[str]], terms: Sequence[str], columns: int) -> list[str]:
    """The text of each hit that contains the most of some words, cut to ``columns`` characters."""
    listed = [(at, tidy(text)) for at, some in enumerate(texts) for text in some]
    out = [""] * len(texts)
    most = [-1] * len(texts)
    if not listed:
        return out
    for (at, _), text in zip(listed, WordMatcher([t for _, t in listed]).mark(terms, BOLD_ON, BOLD_OFF), strict=True):
        found = text.count(BOLD_ON)
        if found > most[at]:
            most[at], out[at] = found, shorten(text, columns)
    return out


def shorten(text: str, columns: int) -> str:
    """Cut a marked text to ``columns``, keeping its first marked word visible.

    >>> shorten("what a very good dog", 10)
    'what a ve…'
    >>> shorten(f"what a very good {BOLD_ON}dog{BOLD_OFF}", 11).replace(BOLD_ON, "[").replace(BOLD_OFF, "]")
    '…y good [dog]'
    """
    letters: list[tuple[str, bool]] = []
    bold = False
    for c in text:
        if c in (BOLD_ON, BOLD_OFF):
            bold = c == BOLD_ON
        else:
            letters.append((c, bold))
    plain = "".join(c for c, _ in letters)
    if width(plain) <= columns:
        return text
    first = next((i for i, (_, b) in enumerate(letters) if b), 0)
    last = next((i for i in range(first, len(letters)) if not letters[i][1]), len(letters))
    start = 0
    if width(plain[:last]) + 1 > columns:
        start = last
        while start > 0 and width(plain[start - 1 : last]) + 1 + (last < len(plain)) <= columns:
            start -= 1
        start = min(start, first)
    end = len(plain)
    while end > start and (start > 0) + width(plain[start:end]) + (end < len(plain)) > columns:
        end -= 1
    out = "…" * (start > 0)
    bold = False
    for c, b in letters[start:end]:
        out += (BOLD_ON if b else BOLD_OFF) * (b != bold) + c
        bold = b
    return out + BOLD_OFF * bold + "…" * (end < len(plain))


def tidy(text: str) -> str:
    r"""Make a text one line, without characters that could control a terminal.

    >>> tidy("a\n\x1b[31mred  \u202eword")
    'a [31mred word'
    """
    kept = (c if c in WORD_JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co") else " " for c in text)
    return " ".join("".join(kept).split())
