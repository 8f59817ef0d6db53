"""What searches read of a library, kept warm while the library stays as it is: indices, videos, encoded texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import passages
from momentseek.library.database import SPEECH
from momentseek.library.encoders import LibraryEncoders
from momentseek.library.reader import LibraryReader, Snapshot
from momentseek.library.tracks.sounds import sound_labels
from momentseek.library.video import Video
from momentseek.library.words import content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import Understanding, Vectors
from momentseek.recognition.encoders.text_cache import RecentTexts, encode_cached
from momentseek.recognition.exported.boundary_head import BoundaryHead
from momentseek.search.stream_index import StreamIndex

MAX_REMEMBERED_TRANSCRIPTS = 256
MAX_KNOWN_VIDEOS = 20_000
"""Videos that are remembered as the catalog describes them."""

Encode = Callable[[Sequence[str]], Vectors]
"""Turns texts into vectors, one row each."""
Evidence = Callable[[Vectors], Vectors]
"""Says how surely clips show what a query names, given their vectors: by labels, 0 to 1 for each; where two encoders
made the vectors, a row for each, with the second's margin next to that."""


class QueryEncoder:
    """Encodes texts as queries to the streams of a library, and remembers the vectors of the last ones."""

    def __init__(self, encoders: LibraryEncoders) -> None:
        self._encoders = encoders
        self._recent: dict[str, RecentTexts] = {}
        self._labels: dict[str, Vectors] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode what queries for pictures with these texts need, in one run of the encoder; it is remembered."""
        encoder = self._encoders.for_queries("vision")
        remember = getattr(getattr(encoder, "sentences", None), "remember", None)
        if remember is None:
            self.encode("vision", texts)
        else:
            remember([one for text in texts for one in encoder.query_sentences(text)])  # type: ignore[attr-defined]

    def encode(self, stream: str, texts: Sequence[str]) -> Vectors:
        """The vectors of texts for a stream (``vision``, ``speech``, or a trained model's ``spans``), a row each."""
        if stream not in self._recent:
            self._recent[stream] = RecentTexts(lambda some: self._encoders.for_queries(stream).encode(some))
        return self._recent[stream](texts)

    def blocks(self, stream: str) -> tuple[tuple[str, int], ...]:
        """Name and columns of each encoder where two make the vectors of a stream together; empty where one does."""
        parts = getattr(self._encoders.for_queries(stream), "parts", ())
        return tuple((part.name, part.dim) for part in parts)

    def label_cosines(self, text: str, labels: Sequence[str]) -> dict[str, float]:
        """How near a text is in meaning to labels, whose vectors are kept; empty if no encoder of speech is here."""
        speech = self._encoders.speech
        if speech is None or not labels or not self.knows_words("speech", [text]):
            return {}
        if new := [label for label in dict.fromkeys(labels) if label not in self._labels]:
            self._labels.update(zip(new, encode_cached(speech, new), strict=True))
        vector = self.encode("speech", [text])[0]
        return {label: float(self._labels[label] @ vector) for label in labels}

    def knows_words(self, stream: str, texts: Iterable[str]) -> bool:
        """Whether a stream's encoder knows any word of the texts; if it cannot tell, whether they have letters."""
        knows = getattr(self._encoders.for_queries(stream), "knows", None)
        return any(map(knows or _is_legible, texts))

    def evidence(self, stream: str, text: str) -> Evidence | None:
        """What a stream's encoder can tell of things that a text names; None if it knows nothing by name."""
        find = getattr(self._encoders.for_queries(stream), "evidence", None)
        found: Evidence | None = None if find is None else find(text)
        return found

    def understand(self, stream: str, texts: Sequence[str]) -> Understanding:
        """What a stream's encoder makes of the words of texts; nothing is said of words without content."""
        find = getattr(self._encoders.for_queries(stream), "understand", None)
        if find is None:
            return Understanding()
        found = reduce(Understanding.join, map(find, texts), Understanding())
        said = {word.lower() for text in texts for word in content_words(text)}
        guessed, unknown = (tuple(w for w in some if w in said) for some in (found.guessed, found.unknown))
        return replace(found, guessed=guessed, unknown=unknown)

    def forget(self) -> None:
        """Forget all vectors, because another encoder now makes the library's."""
        self._recent.clear()
        self._labels.clear()


def _is_legible(text: str) -> bool:
    """Whether a text has letters, digits or pictograms.

    >>> [_is_legible(text) for text in ("a dog", "😀", "* ...")]
    [True, True, False]
    """
    return any(c.isalnum() or unicodedata.category(c) == "So" for c in text)


@dataclass(frozen=True, eq=False)
class LibraryState:
    """A library in one state: all that the streams ask."""

    catalog: Catalog
    snapshot: Snapshot
    vision: StreamIndex
    speech: StreamIndex
    known_videos: dict[int, Video] = field(default_factory=dict)
    _spoken: dict[int, tuple[list[Cue], list[range]]] = field(default_factory=dict)

    @classmethod
    def open(cls, library: LibraryReader, snapshot: Snapshot) -> LibraryState:
        """A snapshot of a library, ready to be searched."""
        model = library.encoders.model if snapshot.spans else None
        moments = None if model is None else model.about.moments
        vision = StreamIndex(
            snapshot.vision,
            snapshot.gone,
            library.clip_seconds,
            library.paths.plan,
            spans=snapshot.spans,
            head=None if model is None or moments is not None else BoundaryHead.of(model.about),
            moments=moments,
        )
        speech = StreamIndex(snapshot.speech, snapshot.gone, library.clip_seconds)
        return cls(library.catalog, snapshot, vision, speech)

    @cached_property
    def sound_labels(self) -> tuple[str, ...]:
        """All labels of sounds that were heard."""
        return tuple(sound_labels(self.catalog))

    @property
    def damaged(self) -> bool:
        """Whether vectors were met that are not finite."""
        return bool(self.vision.damaged_videos or self.speech.damaged_videos)

    def videos(self, ids: Iterable[int]) -> dict[int, Video]:
        """Videos by their ids; those that have just been removed are missing."""
        wanted = list(dict.fromkeys(ids))
        known = self.known_videos
        if new := [id for id in wanted if id not in known]:
            found = {video.id: video for video in self.catalog.videos(new)}
            if len(known) + len(found) > MAX_KNOWN_VIDEOS:
                found |= {id: known[id] for id in wanted if id in known}
                known.clear()
            known.update(found)
        return {id: known[id] for id in wanted if id in known}

    def video_cards(self, ids: Iterable[int]) -> list[tuple[int, float, str]]:
        """Id, duration and hash of videos, by id; those that have just been removed are missing."""
        wanted, known = set(ids), self.known_videos
        new = wanted - known.keys()
        old = [(id, known[id].duration, known[id].hash) for id in wanted - new]
        return sorted([*old, *(self.catalog.video_cards(new) if new else ())])

    def find_spoken(self, video: int) -> tuple[list[Cue], list[range]]:
        """What is said in a video: its cues, in the order of their vectors, and its passages."""
        if video not in self._spoken:
            if len(self._spoken) >= MAX_REMEMBERED_TRANSCRIPTS:
                self._spoken.clear()
            cues = self.catalog.own_cues(video, SPEECH)
            self._spoken[video] = cues, passages(cues)
        return self._spoken[video]
