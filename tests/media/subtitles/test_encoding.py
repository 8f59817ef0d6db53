"""Text in any encoding is decoded correctly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.media.subtitles.read import parse_subtitles, text_of

SPOKEN = {
    "de": ["Wo hast du die Schlüssel hingelegt?", "Weiß nicht, auf die Küchenbank?", "Schön, dass du für uns kochst."],
    "pl": ["Gdzie położyłeś klucze?", "Nie wiem, może leżą na stole w kuchni.", "Dzięki, że przyszedłeś tak późno."],
    "ru": ["Куда ты положил ключи?", "Не знаю, может быть, на кухонный стол.", "Спасибо, что пришёл так поздно."],
    "el": ["Πού έβαλες τα κλειδιά;", "Δεν ξέρω, ίσως στο τραπέζι της κουζίνας.", "Ευχαριστώ που ήρθες τόσο αργά."],
    "ja": ["鍵はどこに置いたの?", "わからない、たぶん台所のテーブルの上。", "こんな遅くに来てくれてありがとう。"],
    "zh-Hans": ["你把钥匙放在哪里了?", "我不知道,可能在厨房的桌子上。", "谢谢你这么晚还过来。"],
    "zh-Hant": ["你把鑰匙放在哪裡了?", "我不知道,可能在廚房的桌子上。", "謝謝你這麼晚還過來。"],
    "ko": ["열쇠를 어디에 두었어?", "모르겠어, 아마 부엌 식탁 위에 있을 거야.", "이렇게 늦게 와 줘서 고마워."],
}  # fmt: skip


def document(lines: list[str]) -> str:
    return "\n".join(
        f"{i + 1}\n00:00:{3 * i:02d},000 --> 00:00:{3 * i + 2:02d},000\n{s}\n" for i, s in enumerate(lines)
    )


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        ("de", "cp1252"),
        ("de", "latin-1"),
        ("pl", "cp1250"),
        ("ru", "cp1251"),
        ("ru", "koi8-r"),
        ("el", "cp1253"),
        ("ja", "shift_jis"),
        ("ja", "euc_jp"),
        ("ja", "iso2022_jp"),
        ("zh-Hans", "gb18030"),
        ("zh-Hant", "big5"),
        ("ko", "euc_kr"),
    ],
)
def test_old_code_pages(language: str, encoding: str, named: bool) -> None:
    lines = SPOKEN[language]
    cues = parse_subtitles(document(lines).encode(encoding), "x.srt", language=language if named else None)
    assert [cue.text for cue in cues] == lines


@pytest.mark.parametrize("language", sorted(SPOKEN))
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_unicode_with_and_without_a_mark(language: str, encoding: str) -> None:
    lines = SPOKEN[language]
    assert [cue.text for cue in parse_subtitles(document(lines).encode(encoding), "x.srt")] == lines


def test_utf8_cut_in_the_middle_of_a_letter_stays_utf8() -> None:
    text = document(SPOKEN["ru"])
    assert text_of(text.encode()[:-2]).startswith(text[:-3])


@given(st.binary(max_size=400), st.sampled_from([None, "ru", "ja", "zh", "de", "xx"]))
def test_any_bytes_decode_to_text(data: bytes, language: str | None) -> None:
    assert isinstance(text_of(data, language), str)
