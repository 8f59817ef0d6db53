"""docs/formats.md names every format, and says of each whether it can be written."""

from __future__ import annotations

from pathlib import Path

from momentseek.measuring.formats import FORMATS

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


def test_every_format_has_its_row():
    rows = {}
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 7 and cells[1].startswith("`"):
            rows[cells[1].strip("`")] = cells[4] == "✓"
    assert rows == {name: format.write is not None for name, format in FORMATS.items()}


def test_the_native_example_is_read(tmp_path):
    from momentseek.measuring.formats import read_run, read_truth

    blocks = PAGE.read_text("utf-8").split("```json\n")[1:]
    truth, run = (block.partition("```")[0] for block in blocks)
    (tmp_path / "truth.jsonl").write_text(truth)
    (tmp_path / "run.jsonl").write_text(run)
    assert read_truth(tmp_path / "truth.jsonl").relevance.tolist() == [4, 1]
    assert read_run(tmp_path / "run.jsonl").score.tolist() == [0.93]
