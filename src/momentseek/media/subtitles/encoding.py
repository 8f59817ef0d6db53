"""From bytes to text, whatever program saved the file.

Marks, then zero bytes (UTF-16 without a mark), then UTF-8 tell most files. What is left is an old code page, and that
is a guess from letter frequencies: chardet makes it, among the code pages that subtitles are found in. Measured on
documents of 3, 20 and 200 cues in 38 pairs of language and encoding, it was right for 245 of 262 (259 where the file's
name says the language), 303 of 303 and 114 of 114; charset-normalizer for 166, 246 and 92.
"""

from __future__ import annotations

import codecs
import re

from momentseek.optional import optional_module

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
"""Where a file's name says its language, only that language's code pages are asked about."""
_LIKELY = {tag: pages.split() for tags, pages in _BY_LANGUAGE.items() for tag in tags.split()}


def text_of(data: bytes, language: str | None = None) -> str:
    """The text of a subtitle file; never fails, since a wrong letter costs less than a lost file.

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
        return _seven_bits(data)
    text = data.decode("utf-8", errors="replace")
    if _mostly_sound(text):
        return text
    return data.decode(_code_page(data, language), errors="replace")


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: one in twenty at the beginning is a control character.

    >>> is_binary(bytes(range(256))), is_binary("Grüße".encode("utf-16-le"))
    (True, False)
    """
    head = data[:4096]
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide(head) is not None:
        return False
    return (len(head) - len(head.translate(None, _CONTROLS))) * 20 > len(head)


def _seven_bits(data: bytes) -> str:
    """ASCII, or Japanese mail's encoding, which switches by escape codes."""
    if b"\x1b$" in data:
        try:
            return data.decode("iso2022_jp_2")
        except (UnicodeDecodeError, RuntimeError):  # the codec itself breaks on some input
            pass
    return data.decode("ascii")


def _wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark: the digits of the times have their zero bytes on one side."""
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


def _mostly_sound(text: str) -> bool:
    """Whether UTF-8 with at most a few broken characters, as cutting and joining files leaves them."""
    broken = text.count("\ufffd")
    foreign = len(text) - len(text.encode("ascii", errors="ignore"))
    return broken * 20 <= foreign - broken


def _code_page(data: bytes, language: str | None) -> str:
    chardet = optional_module("chardet", "search")
    first = re.search(rb"[\x80-\xff]", data)
    begin = max(first.start() - 1000, 0) if first else 0
    among = _LIKELY.get((language or "").split("-")[0]) or f"{_CODE_PAGES} {_EAST}".split()
    guess = chardet.detect(
        data[begin : begin + _SAMPLE], include_encodings=among, no_match_encoding=among[0], compat_names=False
    )
    return str(guess["encoding"] or among[0])
