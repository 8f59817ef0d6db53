"""Tokenise captions as the Penn Treebank does, and as the public caption evaluators count words.

COCO's evaluator, which TVC's calls, runs Stanford's PTB tokenizer (3.4.1, lower case) in Java and drops punctuation.
The rules here were derived from its output, and its tokens are what this module must reproduce.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import zip_longest

_PUNCTUATION = "'' ' `` ` -LRB- -RRB- -LCB- -RCB- . ? ! , : - -- ... ;"
PUNCTUATION = frozenset(_PUNCTUATION.split())
"""Tokens that do not count. They are compared after lower-casing, so brackets do count: as ``-lrb-`` and ``-rrb-``."""

MAX_WORD_CHARACTERS = 1000
"""Longer text without a space is cut, to limit the time that a caption can take."""
NO_BREAK_SPACE = "\xa0"
"""Separator inside a number that is written in several words, such as ``1 1/2``."""
_TITLES = """adm al asst atty attys brig capt cmdr col comdr cpl det dr drs gen gov govs hon lieut lt maj messrs mr mrs
ms msgr pfc pres prof profs pvt rep reps rev sen sens sgt spc st ste supt supts"""
_DATES = "apr aug dec feb fri jan jul jun mar mon nov oct sep sept thu thurs tue tues wed"
_STATES = """ala ariz calif colo conn ct dak fla ga ind kan kans ky md mich minn mo mont neb nev okla penn tenn va vt
wis wisc wyo"""
_OTHERS = """alex assn ave bancorp bhd bldg blvd bros cf cie co corp cos dept esq est etc ext ft inc intl jos jr ltd mt
natl ph plc rd rt seq sq sr sys tel treas univ vs wm"""
_WITH_DOT = frozenset(f"{_TITLES} {_DATES} {_STATES} {_OTHERS}".split())
_WITH_DOT_IF_CAPITAL = frozenset(["ark", "az", "del", "ill", "la", "mass", "miss", "ore", "pa", "tex", "wash"])
_WITH_DOT_UNLESS_CAPITALS = frozenset(["pte", "pty", "ptys"])
_WITH_DOT_BEFORE_NUMBER = frozenset(["art", "ca", "fig", "figs", "no", "nos", "op", "pp", "prop"])
_STARTS = """a about according additionally after an as at but earlier he her here however if in it last many more now
once one other our she since so some such that the their then there these they this we what when while yet you"""
_SENTENCE_STARTS = frozenset(_STARTS.split())
"""Words that, if capitalised, show that the full stop after a single letter before them ends a sentence."""

_ALNUM = r"[^\W_]"
_LETTER = r"[^\W\d_]"
_CLITIC = rf"'(?:s|m|d|re|ve|ll)(?!{_ALNUM})"
_ELISION = rf"(?!.{_CLITIC})[dol]'(?={_LETTER})"
_DIGITS = r"\d{2,4}[- \xa0]"
_PHONE = rf"(?:\(\d\d\d?\)[ \xa0]?|{_DIGITS}(?:{_DIGITS})?)\d{{3,4}}[- \xa0]?\d{{3,5}}"
_MIXED_NUMBER = r"\d{1,4}[- \xa0]\d{1,4}/\d{1,4}"
_RULES = (
    # addresses
    r"https?://[^\s\"<>|()]+[^\s\"<>|().,!?;:'-]",
    r"www\.[^\s\"<>|()]+[^\s\"<>|().,!?;:'-]",
    rf"{_ALNUM}[\w.+-]*@{_ALNUM}+(?:[.-]{_ALNUM}+)*",
    rf"{_ALNUM}+(?:\.{_ALNUM}+)*\.(?:com|net|org|edu)(?:/[^\s\"<>|()]*[^\s\"<>|().,!?;:'-])?(?!{_ALNUM})",
    # @names, #tags, <marks>
    rf"@{_LETTER}\w*",
    rf"\#{_LETTER}\w*",
    r"</?[a-z!][^<>\s]*>",
    # :-) and ^_^
    r"[:;=]-?(?:[()]|[dp](?!\w))|\^_\^",
    # numbers
    r"[-+]?(?:\d*(?:[.:,]\d+)+|\d+)",
    _PHONE,
    _MIXED_NUMBER,
    # words with hyphens; with full stops inside; with underscores; with slashes
    rf"(?:{_ELISION})?{_ALNUM}+(?:-(?:{_ELISION})?{_ALNUM}+)*",
    rf"{_LETTER}{_ALNUM}*(?:[.!?]{_LETTER}{_ALNUM}*)*",
    rf"{_ALNUM}+(?:_{_ALNUM}+)+",
    rf"{_ALNUM}+(?:-{_LETTER}+){{0,2}}(?:/{_ALNUM}+(?:-{_LETTER}+){{0,2}}){{1,2}}",
    # AT&T; U.S.-based
    r"(?-i:[A-Z]+(?:[+&][A-Z]+)+)",
    rf"(?:{_ALNUM}+-)*{_LETTER}(?:\.{_LETTER})+\.(?:-{_ALNUM}+)*(?!{_ALNUM})",
    # words with apostrophes
    r"'n'|'n(?=\W|$)|'em(?!\w)|'cause(?!\w)|'till?(?!\w)|'\d0s(?!\w)|'\d\d$|y'(?=\w)",
    r"(?:o'clock|c'mon|o'er|e'er|s'mores|ol'|somethin')(?!\w)",
    rf"{_LETTER}+[aeiouy]'[aeiou]{_LETTER}*",
    # C++, Ph.D., US$
    r"c\+\+|[cf]\#|(?:ph|ed)\.d\.(?!\w)",
    r"(?-i:[A-Z]*\$)",
    # 's and n't
    _CLITIC,
    rf"n['`]t{_LETTER}*",
    # repeated signs, and whatever is left
    r"\.{3,}|-{2,}|_+|\*+|[?!]+|\#\#+|@@+|<<|>>|``|''",
    r"(?s:.)",
)
"""Patterns of tokens; the longest match wins."""
_IN_SENTENCE = (",", ";", ":")
"""Signs that show that the full stop before them belongs to the word."""
_NEGATION = re.compile(rf"{_LETTER}+?(?=n['`]t)", re.IGNORECASE)
_SPLIT = {
    "cannot": ("can", "not"),
    "gonna": ("gon", "na"),
    "gotta": ("got", "ta"),
    "gimme": ("gim", "me"),
    "lemme": ("lem", "me"),
    "wanna": ("wan", "na"),
    "'tis": ("'t", "is"),
    "'twas": ("'t", "was"),
}
_SPLIT_WORD = re.compile(rf"(?:{'|'.join(_SPLIT)})(?!\w)", re.IGNORECASE)
_WORD_WITH_DOT = re.compile(rf"({_LETTER}+)\.(?!{_LETTER})")
_NUMBERS = re.compile(r"[\d)]\s\d")
_ACROSS_BLANKS = re.compile(rf"(?<!\S)(?:{_PHONE}|{_MIXED_NUMBER})")
_SYMBOLS = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "--", "—": "--", "…": "...", "£": "#", "€": "$", "¢": " cents "}
)
_SPELLING = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-", '"': "''"}
_BRACKETS = re.compile(r"[()\[\]{}]")


def caption_words(texts: Sequence[str], ascii_only: bool = True) -> list[list[str]]:
    """Return the words of captions that count: PTB tokens in lower case without punctuation.

    ``ascii_only`` first replaces every other character by a space, as TVC's evaluator does. The evaluators tokenise all
    captions as one text, so a full stop may depend on the next caption: "vitamin c." keeps it, unless a "The" follows.

    >>> caption_words(["Rachel's mug isn't (quite) full, so she can't leave..."])
    [['rachel', "'s", 'mug', 'is', "n't", '-lrb-', 'quite', '-rrb-', 'full', 'so', 'she', 'ca', "n't", 'leave']]
    >>> caption_words(["A café."]), caption_words(["A café."], ascii_only=False)
    ([['a', 'caf']], [['a', 'café']])
    """
    plain = [text if text.isascii() else _blank(text) if ascii_only else text.translate(_SYMBOLS) for text in texts]
    return [
        [token for token in ptb_tokens(text, following) if token not in PUNCTUATION]
        for text, following in zip_longest(plain, plain[1:], fillvalue="")
    ]


def _blank(text: str) -> str:
    return "".join(character if character.isascii() else " " for character in text)


def ptb_tokens(text: str, following: str = "") -> list[str]:
    """Return all tokens of a text in lower case, including punctuation (quotation marks always as ``''``).

    ``following`` is the text after it, which determines whether a full stop ends a sentence.

    >>> ptb_tokens("He gave 3-D chess, etc., to Mr. Smith at 5:30 p.m.")
    ['he', 'gave', '3-d', 'chess', ',', 'etc.', ',', 'to', 'mr.', 'smith', 'at', '5:30', 'p.m.']
    """
    pieces = text.split()
    if _NUMBERS.search(text):
        pieces = _ACROSS_BLANKS.sub(_join_numbers, " ".join(pieces)).split(" ")
    if len(text) > MAX_WORD_CHARACTERS:
        limit = MAX_WORD_CHARACTERS
        pieces = [piece[i : i + limit] for piece in pieces for i in range(0, len(piece), limit)]
    tokens: list[str] = []
    for position, piece in enumerate(pieces):
        if piece[-1] == ".":
            after = pieces[position + 1] if position + 1 < len(pieces) else following.lstrip().partition(" ")[0]
            tokens += _tokens_of_piece(piece, _what_follows(after))
        else:
            tokens += _tokens_of_piece(piece, "")
    return tokens


def _join_numbers(found: re.Match[str]) -> str:
    return found.group().replace(" ", NO_BREAK_SPACE)


def _what_follows(piece: str) -> str:
    """Classify the next piece of text as ``number``, ``sentence`` or nothing."""
    if piece[:1].isdigit():
        return "number"
    return "sentence" if piece[:1].isupper() and piece.lower() in _SENTENCE_STARTS else ""


@cache
def _rules() -> list[re.Pattern[str]]:
    """Compile the rules when the first caption is read, because many users have no captions."""
    return [re.compile(pattern, re.IGNORECASE) for pattern in _RULES]


@lru_cache(1 << 16)
def _tokens_of_piece(piece: str, following: str) -> tuple[str, ...]:
    """Return the tokens of text without spaces: at every position the longest that a rule allows."""
    if piece.isalpha() and piece.isascii() and len(piece) not in (5, 6):  # not a word of _SPLIT, which must be split
        return (piece.lower(),)
    tokens: list[str] = []
    at = 0
    while at < len(piece):
        cut = _SPLIT_WORD.match(piece, at)
        if cut:
            tokens += _SPLIT[cut.group().lower()]
            at = cut.end()
            continue
        end = _end_of_token(piece, at, following if _is_last_word(piece, at) else "")
        tokens.append(_spell(piece[at:end]))
        at = end
    return tuple(token for token in tokens if token != NO_BREAK_SPACE)


def _is_last_word(piece: str, at: int) -> bool:
    return piece.endswith(".") and piece.find(".", at) == len(piece) - 1


def _end_of_token(piece: str, at: int, following: str) -> int:
    end = max(found.end() for rule in _rules() if (found := rule.match(piece, at)))
    negation = _NEGATION.match(piece, at)
    if negation and negation.end() < end + 2:
        return negation.end()
    if piece[end : end + 1] == "." and piece[end + 1 : end + 2] in _IN_SENTENCE and piece[end - 1].isalnum():
        return end + 1
    word = _WORD_WITH_DOT.match(piece, at)
    if word and word.end(1) == end and _keeps_dot(word[1], piece[word.end() :], following):
        return word.end()
    return end


def _keeps_dot(word: str, rest: str, following: str) -> bool:
    lower = word.lower()
    if len(word) == 1:
        return following != "sentence"
    return (
        lower in _WITH_DOT
        or (lower in _WITH_DOT_IF_CAPITAL and word[0].isupper())
        or (lower in _WITH_DOT_UNLESS_CAPITALS and not word.isupper())
        or (lower in _WITH_DOT_BEFORE_NUMBER and (following == "number" or rest[:1].isdigit()))
    )


def _spell(token: str) -> str:
    if token[:2] in ("..", "--"):
        return "..." if token[0] == "." else "--"
    return _BRACKETS.sub(lambda bracket: _SPELLING[bracket.group()], _SPELLING.get(token, token.lower()))
