"""Captions on the command line: evaluated, compared, converted and described like runs."""

from __future__ import annotations

import json

import pytest

QUICK = ["-m", "BLEU@{1,4}", "-m", "CIDEr-D"]


@pytest.fixture
def folder(root):
    return root / "examples/captions"


def test_evaluate(momentseek, folder, tmp_path):
    command = ["evaluate", folder / "careful.jsonl", "--truth", folder / "references.jsonl", "-p", "tvc", *QUICK]
    table = momentseek(*command, "--by", "length", "--ci", "--per-query", tmp_path / "values.jsonl")
    assert table.returncode == 0, table.stderr
    assert table.stdout.startswith("careful: 4 moments, 0 missing\nProtocol tvc (TVC's evaluator: ")
    assert "values in percent (CIDEr: to 1,000)." in table.stdout
    assert "BLEU@4" in table.stdout
    assert " 35.93 [" in table.stdout
    lines = [json.loads(line) for line in (tmp_path / "values.jsonl").read_text().splitlines()]
    assert lines[0]["query"] == "Rachel hands Monica a cup of coffee."
    assert lines[0]["measures"]["CIDEr-D"] == pytest.approx(2.35952668)
    report = json.loads(momentseek(*command, "--json").stdout)
    assert report["measures"]["BLEU@4"] == pytest.approx(0.3592695430496098, abs=1e-14)
    assert (report["queries"], report["options"]) == (4, {"letters": "ascii"})


def test_compare(momentseek, folder):
    files = [folder / "careful.jsonl", folder / "blind.jsonl"]
    done = momentseek("compare", *files, "--truth", folder / "references.jsonl", *QUICK, "--per-query", "1")
    assert done.returncode == 0, done.stderr
    assert "protocol paper, 4 moments, paired randomisation test" in done.stdout
    assert "a − b" in done.stdout


def test_formats_and_convert(momentseek, folder, tmp_path):
    done = momentseek("formats", folder / "references.jsonl")
    assert done.stdout == f"{folder / 'references.jsonl'}: tvc; 4 moments, 4 videos, 16 captions\n"
    done = momentseek("convert", folder / "references.jsonl", tmp_path / "references.json", "--to", "coco-captions")
    assert done.returncode == 0, done.stderr
    assert "videos and times" in done.stdout + done.stderr
    found = json.loads((tmp_path / "references.json").read_text())
    assert len(found["annotations"]) == 16


def test_rejects_captions_of_another_split(momentseek, folder, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"clip_id": 9, "descs": [{"desc": "a dog"}]}\n')
    done = momentseek("evaluate", tmp_path / "other.jsonl", "-t", folder / "references.jsonl")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "moment 9 is not in" in done.stderr


def test_moments_and_captions_do_not_mix(momentseek, folder, root):
    kitchen = root / "examples/kitchen"
    done = momentseek("evaluate", kitchen / "careful.jsonl", "-t", folder / "references.jsonl")
    assert done.returncode == 2
    assert "it looks like TVC captions" in done.stderr
    done = momentseek("evaluate", kitchen / "careful.jsonl", "-t", kitchen / "truth.jsonl", "-p", "tvc")
    assert "protocol tvc measures captions" in done.stderr
