"""Read one subtitle file in any encoding.

Byte order marks, then zero bytes (UTF-16 without a mark), then UTF-8 identify the encoding of most files. The rest use
an old code page, which chardet guesses from letter frequencies among the code pages that are common in subtitles.
"""

from __future__ import annotations

import codecs
import re
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import ModuleType

from momentseek.core.errors import MediaError, optional_module
from momentseek.core.pinned_file import PinnedFile
from momentseek.media.container import FilePath
from momentseek.media.subtitles import ass, sbv, srt, vtt
from momentseek.media.subtitles.cues import Cue, tidy

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 100_000
_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r\f\x1b")
_LATIN = "cp1252 cp1250 cp1254 cp1257 iso8859-2 iso8859-15 cp1258 mac-roman cp850"
_CODE_PAGES = f"{_LATIN} cp1251 koi8-r koi8-u cp866 iso8859-5 cp1253 iso8859-7 cp1255 cp1256 cp874"
_EAST = "cp932 euc_jis_2004 gb18030 big5hkscs cp949"
_BY_LANGUAGE = {
    "ru uk be bg mk mn kk": "cp1251 koi8-r koi8-u cp866 iso8859-5",
    "sr": "cp1251 cp1250",
    "pl cs sk hu hr sl bs ro sq": "cp1250 iso8859-2 cp1252",
    "de fr es pt it nl sv da nb nn no fi is ca gl eu ga": "cp1252 iso8859-15 mac-roman cp850",
    "lt lv et": "cp1257 cp1252",
    "tr az": "cp1254",
    "vi": "cp1258",
    "el": "cp1253 iso8859-7",
    "he": "cp1255",
    "ar fa ur": "cp1256",
    "th": "cp874",
    "ja": "cp932 euc_jis_2004",
    "zh": "gb18030 big5hkscs",
    "ko": "cp949",
}
"""If a file's name states its language, only that language's code pages are tried."""
_LIKELY = {tag: pages.split() for tags, pages in _BY_LANGUAGE.items() for tag in tags.split()}


def text_of(data: bytes, language: str | None = None) -> str:
    """Decode a subtitle file; it never fails, since a wrong letter is better than a lost file.

    >>> text_of("Grüße".encode("utf-16")), text_of("Grüße, 1".encode("utf-16-be")), text_of("Grüße".encode())
    ('Grüße', 'Grüße, 1', 'Grüße')
    >>> text_of("Ну, что ты стоишь?".encode("cp1251"), "ru")
    'Ну, что ты стоишь?'
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, errors="replace")
    wide = _wide(data[:_SAMPLE])
    if wide is not None:
        return data.decode(wide, errors="replace")
    if data.isascii():
        if b"\x1b$" in data:  # ISO-2022-JP, which switches by escape codes
            with suppress(UnicodeDecodeError, RuntimeError):  # the codec itself breaks on some input
                return data.decode("iso2022_jp_2")
        return data.decode("ascii")
    text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    foreign = len(text) - len(text.encode("ascii", errors="ignore"))
    if broken * 20 <= foreign - broken:  # a few broken characters, as left by cutting and joining files
        return text
    return data.decode(_code_page(data, language), errors="replace")


def is_binary(data: bytes) -> bool:
    """Whether bytes are not text: at least one in twenty at the beginning is a control character.

    >>> is_binary(bytes(range(256))), is_binary("Grüße".encode("utf-16-le"))
    (True, False)
    """
    head = data[:4096]
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide(head) is not None:
        return False
    return (len(head) - len(head.translate(None, _CONTROLS))) * 20 > len(head)


def _wide(data: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 without a mark: the digits of the times have zero bytes on one side."""
    zeros = [data[place::4].count(0) for place in range(4)]
    quarter = len(data) // 4
    if sum(zeros) * 10 < len(data) or not data:
        return None
    for name, silent, spoken in (("utf-32-le", (1, 2, 3), (0,)), ("utf-32-be", (0, 1, 2), (3,))):
        if min(zeros[i] for i in silent) * 3 > quarter and max(zeros[i] for i in spoken) * 20 < quarter:
            return name
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    if odd > 20 * even:
        return "utf-16-le"
    return "utf-16-be" if even > 20 * odd else None


def _code_page(data: bytes, language: str | None) -> str:
    chardet = optional_module("chardet", "search")
    first = re.search(rb"[\x80-\xff]", data)
    begin = max(first.start() - 1000, 0) if first else 0
    among = _LIKELY.get((language or "").split("-")[0]) or f"{_CODE_PAGES} {_EAST}".split()
    guess = chardet.detect(
        data[begin : begin + _SAMPLE], include_encodings=among, no_match_encoding=among[0], compat_names=False
    )
    return str(guess["encoding"] or among[0])


MAX_SUBTITLE_BYTES = 20_000_000
"""Maximum size of a subtitle file; a long film's subtitles are 0.2 MB, styled scripts reach a few MB."""
MAX_CUES = 200_000
"""Maximum number of cues in a file: two per second for a day."""
MAX_LINES = 1_000_000


_FORMATS = (srt, vtt, ass, sbv)
SUBTITLE_SUFFIXES = frozenset(suffix for form in _FORMATS for suffix in form.SUFFIXES)


def read_subtitles(path: FilePath, language: str | None = None) -> list[Cue]:
    """Return the tidied cues of a subtitle file (see ``tidy``); raise ``MediaError`` if it has none.

    The format is detected by content, then by suffix. ``language`` is stored in the cues and helps to detect old
    encodings.
    """
    place = path if isinstance(path, PinnedFile) else Path(path)
    return parse_subtitles(_read_bytes(place), Path(place).name, place, language)


def parse_subtitles(data: bytes, name: str, place: object = None, language: str | None = None) -> list[Cue]:
    r"""Parse the cues in a file's bytes; ``name`` gives the suffix, ``place`` names the file in errors.

    >>> (cue,) = parse_subtitles(b"1\n00:00:01,000 --> 00:00:02,000\nHello\n", "film.srt")
    >>> cue.start, cue.end, cue.text
    (1.0, 2.0, 'Hello')
    """
    place = name if place is None else place
    if is_binary(data):
        raise MediaError(f"{place}: no cue found: it is not a text file; SRT, VTT, ASS and SBV files are read")
    text = text_of(data, language)
    if text.count("\n") > MAX_LINES or text.count("\r") > MAX_LINES:
        raise MediaError(f"{place}: more than {MAX_LINES:,} lines; split the file or choose another")
    head = text[:4096].lstrip().lower()
    if head.startswith(("<!doctype", "<html", "<head", "<?xml")):
        raise MediaError(f"{place}: no cue found: it is a web page or XML; save the subtitles as SRT, VTT, ASS or SBV")
    for form in _likely_formats(head, Path(name).suffix.lower()):
        cues = list(islice(form.parse(text), MAX_CUES + 1))
        if len(cues) > MAX_CUES:
            raise MediaError(f"{place}: more than {MAX_CUES:,} cues; split the file or choose another")
        found = tidy(cues)
        if found:
            return [Cue(cue.start, cue.end, cue.text, language) for cue in found] if language else found
    raise MediaError(f"{place}: no cue found; SRT, VTT, ASS and SBV files are read")


def _likely_formats(head: str, suffix: str) -> list[ModuleType]:
    """Return the formats to try, the most likely first: by the beginning of the file, else by suffix.

    SRT and WebVTT write times the same way, so if one finds nothing, neither does the other.
    """
    sure: ModuleType
    if head.startswith("webvtt"):
        sure = vtt
    elif "[script info]" in head or "[events]" in head or "\ndialogue:" in head:
        sure = ass
    else:
        sure = next((form for form in _FORMATS if suffix in form.SUFFIXES), srt)
    same = vtt if sure is srt else srt if sure is vtt else None
    return sorted((form for form in _FORMATS if form is not same), key=lambda form: form is not sure)


def _read_bytes(path: Path | PinnedFile) -> bytes:
    """Read a regular file; checked first, since a pipe would block and a device would never end."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise MediaError(f"{path}: not a regular file; give a subtitle file")
        if state.st_size > MAX_SUBTITLE_BYTES:
            size, limit = state.st_size / 1e6, MAX_SUBTITLE_BYTES / 1e6
            raise MediaError(f"{path}: {size:.0f} MB is too large for a subtitle file; the limit is {limit:.0f} MB")
        with path.open("rb") as file:
            return file.read(MAX_SUBTITLE_BYTES)
    except OSError as e:
        raise MediaError(f"{path}: cannot be read ({e.strerror}); check the file") from None
    except ValueError:  # a NUL in the name
        raise MediaError(f"{str(path)!r}: cannot be read (not a file name); check the file") from None
