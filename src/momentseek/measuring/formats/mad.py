"""MAD's annotations: sentences of audio descriptions in whole films, ``{id: {movie, timestamps, sentence, …}}``."""

from __future__ import annotations

from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, register

KEYS = ("movie", "timestamps", "sentence")


def claims_mad(document: Document) -> bool:
    """Whether a file is an object whose entries have a film, a sentence and its times."""
    return checked.has_keys(checked.first_value(document), *KEYS)


def read_mad(document: Document, reading: Reading) -> Judgements:
    """Read one moment per sentence; the id is the entry's key."""
    by_id = checked.mapping(document)
    document.reject_repeats("sentence", len(by_id))
    entries = list(by_id.values())
    times = checked.matrix(checked.column(entries, "timestamps", document), 2, document, "timestamps")
    films = checked.strings(entries, "movie", document)
    lengths = ((film, entry.get("movie_duration")) for film, entry in zip(films, entries, strict=True))
    return Judgements.from_groups(
        list(by_id),
        [1] * len(entries),
        films,
        times[:, 0],
        times[:, 1],
        durations=checked.with_corpus(checked.durations_of(lengths, document), reading),
        queries=checked.strings(entries, "sentence", document),
        invalid=reading.invalid,
        source=str(document.path),
    )


def write_mad(truth: Judgements, _: Writing) -> bytes:
    """Write one entry per query, in order."""
    writers.require_ungraded(truth, "mad")
    writers.require_one_annotator(truth, "mad")
    writers.require_one_moment(truth, "mad")
    seconds = writers.require_durations(truth, "mad")
    rows = zip(truth.query_ids, truth.video.tolist(), writers.spans(truth), writers.texts(truth), strict=True)
    return writers.dump(
        {
            query: {
                "movie": truth.videos[video],
                "sentence": text,
                "timestamps": span,
                "movie_duration": seconds[video],
            }
            for query, video, span, text in rows
        }
    )


register("mad", claims_mad, read_mad, write_mad)
