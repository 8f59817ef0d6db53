"""Find the best subtitles of a video, among its subtitle files and the text tracks inside it."""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.pinned_file import PinnedFile
from momentseek.media.container import FilePath, libav, open_media, packets, video_stream
from momentseek.media.probe import container_start
from momentseek.media.subtitles import ass
from momentseek.media.subtitles.cues import MAX_CUES_PER_SECOND, Cue, join_sentences, thin_out, tidy
from momentseek.media.subtitles.read import MAX_CUES, SUBTITLE_SUFFIXES, read_subtitles

LANGUAGES_FILE = Path(__file__).with_name("languages.txt")
"""One line per language: its shortest code, its other codes (ISO 639-1 and both kinds of 639-2), its English names."""
_TAGS = {name: names.split()[0] for names in LANGUAGES_FILE.read_text("utf-8").splitlines() for name in names.split()}
_BCP47 = re.compile(r"([a-z]+)(?:[-_]([a-z]{4}))?(?:[-_]([a-z]{2}|\d{3}))?(?:[-_][a-z0-9]{5,8})?", re.IGNORECASE)


def language_of(tag: str) -> str | None:
    """Return a language tag in BCP 47 form with the shortest code, or None if the language is unknown.

    >>> language_of("eng"), language_of("GER"), language_of("pt_br"), language_of("zh-hant-TW"), language_of("French")
    ('en', 'de', 'pt-BR', 'zh-Hant-TW', 'fr')
    >>> language_of("trailer"), language_of("und")
    (None, None)
    """
    match = _BCP47.fullmatch(tag) if len(tag) <= 40 else None
    code = _TAGS.get(match[1].lower()) if match else None
    if match is None or code is None or code == "und":
        return None
    script, region = match[2], match[3]
    return "-".join(filter(None, (code, script and script.title(), region and region.upper())))


def matches(language: str | None, wanted: str) -> bool:
    """Whether a language is the wanted one, or a variant of it.

    >>> matches("pt-BR", "pt"), matches("pt", "por"), matches("pt-PT", "pt-BR"), matches(None, "pt")
    (True, True, False, False)
    """
    tag = language_of(wanted) or wanted
    return language is not None and (language.lower() + "-").startswith(tag.lower() + "-")


def preference(language: str | None, languages: Sequence[str] = ()) -> tuple[int, str]:
    """Return a sort key for languages: those in ``languages`` in their order, then unnamed, English, all others.

    >>> sorted(["de", None, "en", "pt-BR"], key=lambda tag: preference(tag, ["pt"]))
    ['pt-BR', None, 'en', 'de']
    """
    for place, wanted in enumerate(languages):
        if matches(language, wanted):
            return place, language or ""
    if language is None:
        return len(languages), ""
    return len(languages) + (1 if matches(language, "en") else 2), language


SUBTITLE_FOLDERS = frozenset({"subs", "sub", "subtitles", "subtitle", "captions"})
"""Names of folders next to a video that are searched, case-insensitive."""
NAME_FLAGS = {"forced": "forced", "foreign": "forced", "sdh": "sdh", "hi": "sdh", "cc": "sdh", "default": "default"}
"""Flags in a file name besides its language. ``hi`` means "hearing impaired" only after a language."""
MAX_FOLDER_ENTRIES = 1_000_000
MAX_MIRROR_DEPTH = 32
SETTLED_SECONDS = 2.0
"""Age from which a folder's modification time reflects all changes."""


@dataclass(frozen=True)
class Sidecar:
    """A subtitle file of a video, with the language and flags in its name."""

    path: Path
    language: str | None = None
    flags: frozenset[str] = frozenset()

    def file(self, links: bool = True) -> Path | PinnedFile:
        """Return the file to read; links are followed only with ``links``."""
        return self.path if links else PinnedFile(Path(os.path.abspath(self.path)))


def find_sidecars(video: FilePath, folder: FilePath | None = None) -> list[Sidecar]:
    """Return the subtitle files of a video, sorted by name: ``film.srt``, ``film.en.srt``, ``film.mp4.srt``.

    They are searched next to the video, in ``Subs`` or ``Subtitles`` there, and in ``folder``: at its top, in
    subfolders named like the video or its folder, and along the video's parents, so that a copy of the videos' tree
    (``films/alien/disc1.mp4`` → ``folder/films/alien/disc1.srt``) works. Missing or unreadable folders count as empty.
    """
    video = Path(video)
    inside = [video.parent / name for name in _entries(video.parent)[1]]
    places = [video.parent, *inside, *(sub_folder / video.stem for sub_folder in inside)]
    if folder is not None:
        places = [*_mirrors(Path(folder), video), *places]
    found: dict[Path, Sidecar] = {}
    for place in dict.fromkeys(places):
        for sidecar in sorted(_sidecars_in(place, video), key=lambda sidecar: sidecar.path.name):
            found.setdefault(sidecar.path, sidecar)
    return list(found.values())


def match_sidecar(path: Path, video: Path) -> Sidecar | None:
    """Return the sidecar for a file name, with its language; None if it is no subtitle file of ``video``.

    >>> match_sidecar(Path("film.pt-BR.hi.vtt"), Path("Film.mp4"))
    Sidecar(path=PosixPath('film.pt-BR.hi.vtt'), language='pt-BR', flags=frozenset({'sdh'}))
    >>> match_sidecar(Path("film 2.srt"), Path("film.mp4")) is None
    True
    """
    stem, suffix = os.path.splitext(path.name)
    if suffix.lower() not in SUBTITLE_SUFFIXES:
        return None
    for whole in (video.name, video.stem):
        if stem.lower().startswith(whole.lower()):
            rest = stem[len(whole) :]
            labels = _labels(rest) if not rest or rest[0] in "._-[( " else None  # ``film 2`` is another video
            if labels is not None:
                return Sidecar(path, *labels)
    return None


def _labels(text: str, *, strict: bool = True) -> tuple[str | None, frozenset[str]] | None:
    """Return language and flags in the text after a video's name; if ``strict``, None if it contains anything else."""
    language: str | None = None
    flags: set[str] = set()
    for part in _parts(text):
        word = part.lower()
        tag = language_of(part) if language is None else None
        if word in NAME_FLAGS and (word != "hi" or language is not None):
            flags.add(NAME_FLAGS[word])
        elif tag is not None:
            language = tag
        elif strict and not (language is not None and word.isdecimal() and len(word) <= 2):  # a second track: film.en.2
            return None
    return language, frozenset(flags)


def _parts(text: str) -> Iterator[str]:
    for part in re.split(r"[.\[\]() ]+", text.strip("._-[]() ")):
        yield from [part] if language_of(part) else filter(None, re.split(r"[_-]+", part))


def _sidecars_in(folder: Path, video: Path) -> Iterator[Sidecar]:
    """Yield the folder's subtitle files with the video's name; all of them if the folder has the video's name."""
    names, _ = _entries(folder)
    first = video.stem.lower()
    for _, name in names[bisect_left(names, (first, "")) :]:
        if not name.lower().startswith(first):
            break
        found = match_sidecar(folder / name, video)
        if found is not None:
            yield found
    if folder.name.lower() == first and folder != video.parent:
        for _, name in names:
            if not name.lower().startswith(first):
                labels = _labels(os.path.splitext(name)[0], strict=False)
                yield Sidecar(folder / name, *(labels or (None, frozenset())))


def _mirrors(folder: Path, video: Path) -> list[Path]:
    """Return the folders in ``folder`` that may hold a video's subtitles, the most specific first."""
    parents = Path(os.path.abspath(video)).parent.parts[1:][-MAX_MIRROR_DEPTH:]
    places = [folder.joinpath(*parents[depth:]) for depth in range(len(parents) + 1)]
    return [place for whole in places for place in (whole / video.stem, whole)]


Entries = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""A folder's subtitle files as (name in lower case, name), sorted, and the names of its sub-folders for subtitles."""


def _entries(folder: Path) -> Entries:
    """List a folder; an unreadable folder counts as empty.

    Ten thousand videos may share a folder, so a listing is cached while the folder does not change. A folder changed
    just now is read again, because file system clocks are coarse.
    """
    try:
        changed = folder.stat().st_mtime
        if abs(time.time() - changed) < SETTLED_SECONDS:
            return _read_entries(folder)
        return _cached_entries(folder, changed)
    except (OSError, ValueError):
        return (), ()


@lru_cache(maxsize=32)
def _cached_entries(folder: Path, changed: float) -> Entries:
    return _read_entries(folder)


def _read_entries(folder: Path) -> Entries:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, MAX_FOLDER_ENTRIES)]
    files = sorted((name.lower(), name) for name in names if os.path.splitext(name)[1].lower() in SUBTITLE_SUFFIXES)
    return tuple(files), tuple(name for name in names if name.lower() in SUBTITLE_FOLDERS)


MAX_PACKET_BYTES = 1_000_000


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _mov_text(data: bytes) -> str:
    """Decode a text that follows two bytes with its length; styles come after it. UTF-16 begins with a mark."""
    text = data[2 : 2 + int.from_bytes(data[:2], "big")]
    return text.decode("utf-16", errors="replace") if text[:2] in (b"\xfe\xff", b"\xff\xfe") else _utf8(text)


def _ass(data: bytes) -> str:
    """Return the text after eight columns: order, layer, style, name, three margins, effect."""
    columns = _utf8(data).split(",", 8)
    return ass.plain(columns[8]) if len(columns) == 9 else ""


TEXT_DECODERS: dict[str, Callable[[bytes], str]] = {
    **dict.fromkeys(("subrip", "srt", "text", "webvtt"), _utf8),
    **dict.fromkeys(("ass", "ssa"), _ass),
    "mov_text": _mov_text,
}
"""Decoders of each codec's text packets. Picture tracks (DVD, Blu-ray, DVB) have none, so they are skipped."""


@dataclass(frozen=True)
class TextTrack:
    """One text track of a video file."""

    index: int
    codec: str
    language: str | None = None
    flags: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"track {self.index} ({', '.join(filter(None, (self.codec, self.language, *sorted(self.flags))))})"


def text_tracks(path: FilePath) -> list[TextTrack]:
    """Return the text tracks of a video file."""
    found = []
    with open_media(path) as container:
        for stream in container.streams.subtitles:
            if stream.name in TEXT_DECODERS:
                given, title = stream.disposition, stream.metadata.get("title", "").lower()
                bits = {
                    "forced": given.forced,
                    "sdh": given.hearing_impaired | given.captions,
                    "default": given.default,
                }
                flags = {flag for flag, bit in bits.items() if given & bit}
                flags |= {flag for flag in ("forced", "sdh") if flag in title}
                language = language_of(stream.language or "")
                found.append(TextTrack(stream.index, stream.name, language, frozenset(flags)))
    return found


def by_preference(found: Sequence[TextTrack], languages: Sequence[str] = ()) -> list[TextTrack]:
    """Sort tracks, best first: complete before forced ones, then by language, then the default track.

    >>> german, forced = TextTrack(2, "subrip", "de"), TextTrack(3, "subrip", "en", frozenset({"forced"}))
    >>> [track.index for track in by_preference([forced, german, TextTrack(4, "ass", "en")], ["en"])]
    [4, 2, 3]
    """

    def key(track: TextTrack) -> tuple[bool, int, str, bool, bool, int]:
        wanted, flags = preference(track.language, languages), track.flags
        return ("forced" in flags, *wanted, "sdh" in flags, "default" not in flags, track.index)

    return sorted(found, key=key)


def track_cues(path: FilePath, track: TextTrack) -> list[Cue]:
    """Return the tidied cues of a text track, in seconds from the video's start."""
    av = libav()
    found: list[Cue] = []
    with open_media(path) as container:
        stream = next((s for s in container.streams.subtitles if s.index == track.index), None)
        if stream is None or stream.name not in TEXT_DECODERS:
            raise MediaError(f"{path}: has no text track {track.index}; the file has changed, so add it again")
        for other in container.streams:
            if other.index != track.index:
                other.discard = av.stream.Discard.all
        try:
            start = container_start(container, video_stream(container, path))
        except MediaError:  # sound and text only
            start = (container.start_time or 0) / 1e6
        text_of = TEXT_DECODERS[str(stream.name)]
        with suppress(av.FFmpegError):  # the rest is damaged: use what came before
            for packet in packets(container, [stream]):
                if packet.pts is None or not 0 < packet.size <= MAX_PACKET_BYTES:
                    continue
                begin = round(float(packet.pts * packet.time_base) - start, 6)
                end = round(begin + float((packet.duration or 0) * packet.time_base), 6)
                text = text_of(bytes(packet))
                if text.strip("\x00 \r\n"):  # MP4 fills silences with empty cues
                    found.append(Cue(begin, end, text, track.language))
                if len(found) >= MAX_CUES:
                    break
    return tidy(found)


@dataclass(frozen=True)
class VideoCues:
    """The cues of a video, their sources, and problems with reading them."""

    cues: tuple[Cue, ...] = ()
    """Cues joined into sentences, by start."""
    sources: tuple[str, ...] = ()
    """Sources of the cues: the path of a subtitle file, or a track of the video."""
    problems: tuple[str, ...] = ()
    """Non-fatal problems with reading subtitles, one sentence each."""


def cues_of(
    video: FilePath,
    folder: FilePath | None = None,
    languages: Sequence[str] | None = None,
    duration: float | None = None,
    links: bool = True,
) -> VideoCues:
    """Return what is said in a video, from its best subtitles, joined into sentences.

    Subtitles in ``folder`` take precedence over those next to the video, and those over tracks inside it. Within each
    kind the first available of ``languages`` wins, then unnamed, English and others. Subtitles with only forced cues
    come last of all. A file that cannot be read is noted as a problem, and the next one is used. With the video's
    ``duration`` in seconds, implausibly many cues are thinned out, which is noted too. Subtitle files that are links,
    or lie behind one, are read only with ``links``.
    """
    wanted = tuple(languages or ())
    problems: list[str] = []
    for source in _sources(video, folder, wanted, problems):
        try:
            if isinstance(source, Sidecar):
                found, name = read_subtitles(source.file(links), source.language), str(source.path)
            else:
                found, name = track_cues(video, source), str(source)
        except MomentseekError as e:
            problems.append(str(e))
            continue
        if found:
            joined = join_sentences(found)
            kept = joined if duration is None else thin_out(joined, duration)
            if len(kept) < len(joined):
                problems.append(
                    f"{name}: {len(joined) - len(kept):,} of {len(joined):,} cues left out, more than "
                    f"{MAX_CUES_PER_SECOND} per second of video; check that the subtitles belong to it"
                )
            return VideoCues(tuple(kept), (name,), tuple(problems))
    return VideoCues(problems=tuple(problems))


def _sources(
    video: FilePath, folder: FilePath | None, languages: tuple[str, ...], problems: list[str]
) -> Iterator[Sidecar | TextTrack]:
    """Yield all subtitle sources, best first; the video is opened only if no file before it was usable."""

    def key(file: Sidecar) -> tuple[bool, int, str, bool]:
        elsewhere = folder is not None and Path(folder) not in file.path.parents
        return (elsewhere, *preference(file.language, languages), "sdh" in file.flags)

    files = sorted(find_sidecars(video, folder), key=key)
    yield from (file for file in files if "forced" not in file.flags)
    inside: list[TextTrack] = []
    try:
        inside = by_preference(text_tracks(video), languages)
    except MomentseekError as e:
        problems.append(str(e))
    yield from (track for track in inside if "forced" not in track.flags)
    yield from (file for file in files if "forced" in file.flags)
    yield from (track for track in inside if "forced" in track.flags)
