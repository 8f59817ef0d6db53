"""Communicate with METEOR's Java program, which a small script replaces."""

from __future__ import annotations

import sys

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring.measures.captions import meteor as meteor_program
from momentseek.measuring.measures.captions.meteor import meteor_statistics, what_meteor_lacks

ANSWER = """
import sys
for number, line in enumerate(sys.stdin):
    parts = line.rstrip("\\n").split(" ||| ")
    assert parts[0] == "SCORE"
    {code}
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """``program(code)`` puts a ``java`` that runs ``code`` for each line, and a package with a jar, in the way."""

    def put(code):
        package = tmp_path / "pycocoevalcap"
        (package / "meteor" / "data").mkdir(parents=True)
        (package / "meteor" / "meteor-1.5.jar").write_bytes(b"jar")
        (package / "meteor" / "data" / "paraphrase-en.gz").write_bytes(b"table")
        (tmp_path / "answer.py").write_text(ANSWER.format(code=code))
        java = tmp_path / "java"
        java.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path / 'answer.py'}\n")
        java.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.syspath_prepend(tmp_path)

    return put


def test_one_process_answers_all_captions(program):
    program("print(len(parts[-1].split()), number, *[len(parts) - 2] * 21, flush=True)")
    assert what_meteor_lacks() is None
    rows = meteor_statistics([("a dog", ["one", "two"]), ("", ["three"])] * 1500)
    assert rows.shape == (3000, 23)
    assert rows[:2, :3].tolist() == [[2, 0, 2], [0, 1, 1]]


def test_no_captions_ask_nothing(program):
    program("raise SystemExit(3)")
    assert meteor_statistics([]).shape == (0, 23)


def test_a_program_that_ends_early_is_an_error(program):
    program("sys.exit(7)")
    with pytest.raises(MomentseekError, match=r"ended after 0 of 2 captions \(exit code 7\); it needs 2G of memory"):
        meteor_statistics([("a", ["b"])] * 2)


def test_rejects_an_answer_of_another_program(program):
    program("print('Error: no such option')")
    with pytest.raises(MomentseekError, match="printed 'Error: no such option', which is not an answer of METEOR"):
        meteor_statistics([("a", ["b"])])


def test_without_java_or_the_package_the_message_has_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(meteor_program, "JAR_PACKAGE", "no_such_package")
    with pytest.raises(MomentseekError) as error:
        meteor_statistics([("a", ["b"])])
    assert "apt install default-jre-headless" in str(error.value)
    assert "pip install --no-deps pycocoevalcap" in str(error.value)
    assert "METEOR-exact" in str(error.value)
