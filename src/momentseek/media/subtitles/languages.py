"""Language tags in file names and containers: ISO 639-1, 639-2 (both kinds) and BCP-47, and English names."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CODES = """
aa aar afar|ab abk abkhazian|af afr afrikaans|ak aka akan|am amh amharic|ar ara arabic|an arg aragonese
as asm assamese|av ava avaric|ay aym aymara|az aze azerbaijani|ba bak bashkir|be bel belarusian|bn ben bengali
bo bod tib tibetan|bs bos bosnian|br bre breton|bg bul bulgarian|ca cat catalan|cs ces cze czech|ch cha chamorro
ce che chechen|cv chv chuvash|kw cor cornish|co cos corsican|cr cre cree|cy cym wel welsh|da dan danish
de deu ger german|dv div divehi|dz dzo dzongkha|el ell gre greek|en eng english|eo epo esperanto|et est estonian
eu eus baq basque|ee ewe|fo fao faroese|fa fas per persian farsi|fj fij fijian|fi fin finnish|fr fra fre french
fy fry frisian|ff ful fulah|gd gla gaelic|ga gle irish|gl glg galician|gn grn guarani|gu guj gujarati|ht hat haitian
ha hau hausa|he heb iw hebrew|hi hin hindi|hr hrv croatian|hu hun hungarian|hy hye arm armenian|ig ibo igbo
iu iku inuktitut|id ind indonesian|is isl ice icelandic|it ita italian|jv jav javanese|ja jpn japanese
kl kal kalaallisut|kn kan kannada|ks kas kashmiri|ka kat geo georgian|kk kaz kazakh|km khm khmer|ki kik kikuyu
rw kin kinyarwanda|ky kir kyrgyz|ko kor korean|ku kur kurdish|lo lao|la lat latin|lv lav latvian|li lim limburgish
ln lin lingala|lt lit lithuanian|lb ltz luxembourgish|lg lug ganda|mh mah marshallese|ml mal malayalam|mr mar marathi
mk mkd mac macedonian|mg mlg malagasy|mt mlt maltese|mn mon mongolian|mi mri mao maori|ms msa may malay
my mya bur burmese|nv nav navajo|ne nep nepali|nl nld dut dutch flemish|nn nno nynorsk|nb nob bokmal|no nor norwegian
oc oci occitan|oj oji ojibwe|or ori odia|om orm oromo|os oss ossetian|pa pan punjabi|pl pol polish|pt por portuguese
ps pus pashto|qu que quechua|rm roh romansh|ro ron rum romanian|rn run rundi|ru rus russian|sg sag sango
sa san sanskrit|si sin sinhala|sk slk slo slovak|sl slv slovenian|se sme sami|sm smo samoan|sn sna shona|sd snd sindhi
so som somali|st sot sotho|es spa spanish castilian|sq sqi alb albanian|sc srd sardinian|sr srp scc serbian
ss ssw swati|su sun sundanese|sw swa swahili|sv swe swedish|ty tah tahitian|ta tam tamil|tt tat tatar|te tel telugu
tg tgk tajik|tl tgl tagalog|th tha thai|ti tir tigrinya|to ton tongan|tn tsn tswana|ts tso tsonga|tk tuk turkmen
tr tur turkish|tw twi|ug uig uyghur|uk ukr ukrainian|ur urd urdu|uz uzb uzbek|ve ven venda|vi vie vietnamese
wa wln walloon|wo wol wolof|xh xho xhosa|yi yid yiddish|yo yor yoruba|za zha zhuang|zh zho chi chinese|zu zul zulu
fil filipino|yue cantonese|cmn mandarin|haw hawaiian|gsw alemannic|ast asturian|ckb sorani|und
"""
_TAGS = {name: names.split()[0] for names in re.split(r"[|\n]", _CODES) for name in names.split()}
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
