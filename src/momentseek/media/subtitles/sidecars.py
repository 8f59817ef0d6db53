"""Find the subtitle files that belong to a video, and tell languages by their tags (ISO 639, BCP-47) or names."""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from momentseek.core.pinned_file import PinnedFile
from momentseek.media.subtitles.read import SUBTITLE_SUFFIXES

LANGUAGES_FILE = Path(__file__).with_name("languages.txt")
"""A line per language: its shortest code, its other codes (ISO 639-1 and 639-2, both kinds) and its English names."""
_TAGS = {name: names.split()[0] for names in LANGUAGES_FILE.read_text("utf-8").splitlines() for name in names.split()}
_BCP47 = re.compile(r"([a-z]+)(?:[-_]([a-z]{4}))?(?:[-_]([a-z]{2}|\d{3}))?(?:[-_][a-z0-9]{5,8})?", re.IGNORECASE)


def language_of(tag: str) -> str | None:
    """A tag in BCP-47's spelling with the shortest code; None where it names no language we know.

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
    """Whether a language is the one wanted, or a variety of it.

    >>> matches("pt-BR", "pt"), matches("pt", "por"), matches("pt-PT", "pt-BR"), matches(None, "pt")
    (True, True, False, False)
    """
    tag = language_of(wanted) or wanted
    return language is not None and (language.lower() + "-").startswith(tag.lower() + "-")


def preference(language: str | None, languages: Sequence[str] = ()) -> tuple[int, str]:
    """A key that sorts languages by wish: those in ``languages`` in their order, then unnamed, English, the others.

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
"""Folders next to a video that are searched, in upper or lower case."""
NAME_FLAGS = {"forced": "forced", "foreign": "forced", "sdh": "sdh", "hi": "sdh", "cc": "sdh", "default": "default"}
"""What the parts of a name say apart from its language. ``hi`` is "hearing impaired" only behind a language."""
MAX_FOLDER_ENTRIES = 1_000_000
"""Most entries of one folder that are looked at."""
MAX_MIRROR_DEPTH = 32
SETTLED_SECONDS = 2.0
"""Seconds after which a folder's time of change is sure to show all changes."""


@dataclass(frozen=True)
class Sidecar:
    """A subtitle file of a video, with what its name says about it.

    >>> Sidecar(Path("film.en-US.forced.srt"), "en-US", frozenset({"forced"})).language
    'en-US'
    """

    path: Path
    language: str | None = None
    flags: frozenset[str] = frozenset()

    def file(self, links: bool = True) -> Path | PinnedFile:
        """The file to read; one that links do not lead to, unless ``links`` allows that."""
        return self.path if links else PinnedFile(Path(os.path.abspath(self.path)))


def find_sidecars(video: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> list[Sidecar]:
    """The subtitle files of a video, sorted by name: ``film.srt``, ``film.en.srt``, ``film.mp4.srt``.

    They are looked for next to the video, in ``Subs`` or ``Subtitles`` there, and in ``folder``: at its top, in a
    folder there named as the video or as the video's own folder, and the same way up, so that a copy of the videos'
    tree (``films/alien/disc1.mp4`` → ``folder/films/alien/disc1.srt``) is followed. Folders that are not there or
    cannot be listed hold nothing.
    """
    video = Path(video)
    places = [video.parent, *_sub_folders(video.parent, video.stem)]
    if folder is not None:
        places = [*_mirrors(Path(folder), video), *places]
    found: dict[Path, Sidecar] = {}
    for place in dict.fromkeys(places):
        for sidecar in sorted(_sidecars_in(place, video), key=lambda sidecar: sidecar.path.name):
            found.setdefault(sidecar.path, sidecar)
    return list(found.values())


def match_sidecar(path: Path, video: Path) -> Sidecar | None:
    """The sidecar that a file is by its name, with its language; None if it is no subtitle file of ``video``.

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
            labels = _name_labels(stem[len(whole) :])
            if labels is not None:
                return Sidecar(path, *labels)
    return None


def _name_labels(rest: str) -> tuple[str | None, frozenset[str]] | None:
    """Language and flags in what follows the video's name; None where it is something else, as in ``film 2``."""
    if not rest:
        return None, frozenset()
    return _labels(rest) if rest[0] in "._-[( " else None


def _labels(text: str, *, strict: bool = True) -> tuple[str | None, frozenset[str]] | None:
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
    """The folder's subtitle files that carry the video's name; in a folder that itself carries it, all of them."""
    names = _listing(folder)
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


def _sub_folders(parent: Path, stem: str) -> list[Path]:
    found = [parent / name for name in _folders(parent) if name.lower() in SUBTITLE_FOLDERS]
    return [*found, *(folder / stem for folder in found)]


def _mirrors(folder: Path, video: Path) -> list[Path]:
    """Where in ``folder`` a video's subtitles may lie, the most specific place first."""
    parents = Path(os.path.abspath(video)).parent.parts[1:][-MAX_MIRROR_DEPTH:]
    mirrored = [folder.joinpath(*parents[depth:]) for depth in range(len(parents))]
    places = [*mirrored, folder]
    return [place for whole in places for place in (whole / video.stem, whole)]


def _listing(folder: Path) -> tuple[tuple[str, str], ...]:
    """The folder's subtitle files as (name in lower case, name), sorted; nothing where it cannot be listed."""
    return _entries(folder)[0]


def _folders(folder: Path) -> tuple[str, ...]:
    return _entries(folder)[1]


Entries = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]


def _entries(folder: Path) -> Entries:
    """Subtitle files and named sub-folders. Ten thousand videos may share a folder, so a listing is kept while the
    folder stays as it is; one changed just now is read again, for clocks of file systems are coarse.
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
