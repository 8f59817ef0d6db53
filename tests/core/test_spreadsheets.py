from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.benchmarks.datasets.annotation.labels import read_labels, read_pairs, write_labels, write_pairs
from momentseek.core.reports import FORMULA_CHARACTERS, plain_cell, safe_cell, safe_row

TEXTS = st.text(st.sampled_from("=+-@\t\r|%' \0a1.e"), max_size=6) | st.text(max_size=8)


@given(TEXTS)
def test_no_cell_is_a_formula_and_every_text_comes_back(text: str) -> None:
    cell = safe_cell(text)
    assert plain_cell(cell) == text
    assert cell.lstrip(" \0")[:1] not in FORMULA_CHARACTERS or float(cell) == float(text)


@pytest.mark.parametrize("text", ["-1", "+2.5", "-.5", "-1e-3", "7", "1.", "-12.25E+2"])
def test_numbers_stay_numbers(text: str) -> None:
    assert safe_cell(text) == text


@pytest.mark.parametrize("text", ["-1+1", "=1", "+A1", "@x", "-", "-1 ", "－1", "'=1", " =1", "\t1", "-١"])
def test_text_that_looks_like_a_number_is_escaped(text: str) -> None:
    assert safe_cell(text) == "'" + text


def test_rows_keep_their_numbers() -> None:
    assert safe_row({"a": "=1", "b": -1, "c": None}) == {"a": "'=1", "b": -1, "c": None}


def test_labels_and_pairs_round_trip_safely(tmp_path: Path) -> None:
    names = ["=HYPERLINK(1)", "+1+1", "-5", "@ann", "'=x", "Ann", "-cmd|' /C calc'!A0"]
    rows = [(name, worker, 3) for name in names for worker in names]
    data = write_labels(rows)
    cells = [cell for row in csv.reader(io.StringIO(data.decode(), newline="")) for cell in row]
    assert not [cell for cell in cells if cell[:1] in FORMULA_CHARACTERS and cell != "-5"]
    (tmp_path / "labels.csv").write_bytes(data)
    labels = read_labels(tmp_path / "labels.csv")
    assert (set(labels.pair_ids), set(labels.workers)) == (set(names), set(names))
    pairs = write_pairs([(name, 3, 2, 2) for name in names])
    (tmp_path / "pairs.csv").write_bytes(pairs)
    assert read_pairs(tmp_path / "pairs.csv") == dict.fromkeys(names, 3)
    assert b"\n=" not in pairs
