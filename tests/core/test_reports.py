from __future__ import annotations

import csv
import io
import math
import unicodedata
from string import ascii_lowercase

import pytest

from momentseek.core.reports import (
    Cell,
    Table,
    csv_text,
    latex_text,
    markdown_text,
    superscript,
    text_table,
    to_plain,
    width,
)


def test_columns_align_for_all_characters() -> None:
    table = text_table(
        ["run", "x", "note"], [["東京", "1", "a"], ["cafe\u0301", "0.25ᵃ", "b"], ["", "", ""]], align="lrl"
    )
    assert table.split("\n") == ["run       x  note", "東京      1  a", "cafe\u0301  0.25ᵃ  b", ""]


def test_last_letter_of_align_applies_to_further_columns() -> None:
    assert text_table(["a", "bb", "cc", "dd"], [["1", "2", "3", "4"]], align="lcr").split("\n")[1] == "1  2    3   4"


def test_no_line_ends_in_a_space() -> None:
    for align in ("l", "r", "c", "lr"):
        table = text_table(["long header", "another one"], [["a", "b"], ["", ""]], align=align)
        assert all(line == line.rstrip() for line in table.split("\n"))


def test_a_table_without_rows_is_its_header() -> None:
    assert text_table(["run", "NDCG@10"], []) == "run  NDCG@10"
    assert text_table([], []) == ""


def test_rejects_ragged_rows() -> None:
    with pytest.raises(ValueError, match="as many cells"):
        text_table(["a", "b"], [["1"]])


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("ᵃᵇᶜ", 3), ("a\u0308", 1), ("日本", 4), ("a\u200bb", 2)]
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


def test_superscript_letters() -> None:
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


TABLE = Table(["run_1", "mIoU"], [["my_run", Cell("0.41", bold=True, raised="bc")], ["<b>", Cell("0.4", raised="c")]])


def test_each_format_escapes_and_emphasises() -> None:
    assert TABLE.render("text").split("\n") == ["run_1     mIoU", "my_run  0.41ᵇᶜ", "<b>      0.4ᶜ"]
    assert TABLE.render("markdown").split("\n")[2:] == [
        r"| my\_run | **0.41**<sup>bc</sup> |",
        r"| \<b> | 0.4<sup>c</sup> |",
    ]
    assert r"my\_run & \textbf{0.41}$^{bc}$ \\" in TABLE.render("latex")
    assert "<td>&lt;b&gt;</td><td>0.4ᶜ" in TABLE.render("html")


def test_csv_round_trip_without_formulas() -> None:
    rows = [{"a": "=1", "b": 0.1}, {"b": math.pi, "c": "x,\ny"}]
    found = list(csv.DictReader(io.StringIO(csv_text(rows), newline="")))
    assert found == [{"a": "'=1", "b": "0.1", "c": ""}, {"a": "", "b": repr(math.pi), "c": "x,\ny"}]
    assert csv_text([], ["a", "b"]) == "a,b\n"


def test_non_json_numbers_become_null() -> None:
    assert to_plain({"x": [math.nan, math.inf, 1.5, None], 3: ({"y": (1,)},)}) == {
        "x": [None, None, 1.5, None],
        "3": [{"y": [1]}],
    }
