from __future__ import annotations

import unicodedata
from string import ascii_lowercase

import pytest

from momentseek.core.reports import latex_text, markdown_text, superscript, text_table, width


def test_columns_line_up_whatever_the_characters() -> None:
    table = text_table(
        ["run", "x", "note"], [["東京", "1", "a"], ["cafe\u0301", "0.25ᵃ", "b"], ["", "", ""]], align="lrl"
    )
    assert table.split("\n") == ["run       x  note", "東京      1  a", "cafe\u0301  0.25ᵃ  b", ""]


def test_the_last_letter_of_align_serves_all_further_columns() -> None:
    assert text_table(["a", "bb", "cc", "dd"], [["1", "2", "3", "4"]], align="lcr").split("\n")[1] == "1  2    3   4"


def test_no_line_ends_in_a_space() -> None:
    for align in ("l", "r", "c", "lr"):
        table = text_table(["long header", "another one"], [["a", "b"], ["", ""]], align=align)
        assert all(line == line.rstrip() for line in table.split("\n"))


def test_a_table_without_rows_is_its_header() -> None:
    assert text_table(["run", "NDCG@10"], []) == "run  NDCG@10"
    assert text_table([], []) == ""


def test_ragged_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="as many cells"):
        text_table(["a", "b"], [["1"]])


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("ᵃᵇᶜ", 3), ("a\u0308", 1), ("日本", 4), ("a\u200bb", 2)]
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


def test_raised_letters() -> None:
    raised = superscript(ascii_lowercase.replace("q", ""))
    assert len(raised) == width(raised) == 25
    assert unicodedata.normalize("NFKC", raised) == ascii_lowercase.replace("q", "")
    assert superscript("pqr") == "ᵖ^qʳ"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b 5% R&D #1", r"a\_b 5\% R\&D \#1"),
        ("R@1[IoU>=0.5]", r"R@1[IoU$\geq$0.5]"),
        ("a<=b < c > d", r"a$\leq$b $<$ c $>$ d"),
        ("\\x{y}$ ~^", r"\textbackslash{}x\{y\}\$ \textasciitilde{}\textasciicircum{}"),
    ],
)
def test_text_in_latex(text: str, latex: str) -> None:
    assert latex_text(text) == latex


def test_text_in_markdown() -> None:
    assert markdown_text("_a_ | `b` *c* <sup> \\\n d") == r"\_a\_ \| \`b\` \*c\* \<sup> \\ d"
