"""Re-annotations of Charades-STA and ActivityNet test queries by five people, with times in percent of the video."""

from __future__ import annotations

from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.measuring.formats import checked
from momentseek.measuring.formats.document import Document, header_of, rows_of
from momentseek.measuring.formats.registry import Reading, register

COLUMNS = ("HITId", "video_id", "description", "start", "end")
PERCENT_NOTE = "times in percent: every video counts as 100 s long"


def claims_truth(document: Document) -> bool:
    """Whether a file is a CSV with the columns of the re-annotations."""
    return set(COLUMNS) <= set(header_of(document))


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read one query per HIT and one row of relevance 1 per annotator, in seconds if a corpus is given.

    Without durations, times stay in percent, as if each video were 100 s long; the variant says so.
    """
    rows = []
    for line, row in rows_of(document, *COLUMNS):
        try:
            rows.append((row["HITId"], row["video_id"], row["description"], float(row["start"]), float(row["end"])))
        except ValueError:
            checked.wrong(document, f"line {line:,}", [row["start"], row["end"]], "a start and an end in percent")
    hits: dict[str, list[tuple[str, str, str, float, float]]] = {}
    for entry in rows:
        hits.setdefault(entry[0], []).append(entry)
    ordered = checked.flatten(hits.values())
    videos = [_name(entry[1], reading.corpus) for entry in ordered]
    if reading.corpus:
        reading.corpus.require(videos, str(document.path))
    seconds = checked.with_corpus({}, reading) if reading.corpus else dict.fromkeys(videos, 100.0)
    return Judgements.from_groups(
        list(hits),
        map(len, hits.values()),
        videos,
        [e[3] / 100 * seconds[v] for v, e in zip(videos, ordered, strict=True)],
        [e[4] / 100 * seconds[v] for v, e in zip(videos, ordered, strict=True)],
        durations=seconds,
        queries=[annotators[0][2] for annotators in hits.values()],
        columns={"annotator": checked.flatten(range(len(annotators)) for annotators in hits.values())},
        variant=None if reading.corpus else PERCENT_NOTE,
        invalid=reading.invalid,
        source=str(document.path),
    )


def _name(video: str, corpus: Corpus | None) -> str:
    """Return a video's name without ``.mp4``, and with ActivityNet's ``v_`` if the corpus has that."""
    name = video.removesuffix(".mp4")
    return f"v_{name}" if corpus and name not in corpus.videos and f"v_{name}" in corpus.videos else name


register("hidden-challenges", claims_truth, read_truth)
