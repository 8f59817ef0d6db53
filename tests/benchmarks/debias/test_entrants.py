from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.benchmarks.debias.systems import (
    FilesEntrant,
    ModelEntrant,
    TrainedEntrant,
    parse_entrant,
    parse_entrants,
)
from momentseek.core.errors import MomentseekError

WORDS = st.text("abcxyz019_", min_size=1, max_size=8)
VALUES = st.one_of(
    WORDS,
    st.just(""),
    st.just("L*U*U"),
    st.just("runs/first/seed-{seed}"),
    st.lists(WORDS, max_size=3).map(lambda words: "[" + ", ".join(f'"{w}, ]="' for w in words) + "]"),
)


@given(WORDS, st.lists(st.tuples(WORDS, VALUES), max_size=4))
def test_settings_come_back_as_they_were_written(name: str, settings: list[tuple[str, str]]) -> None:
    written = tuple(f"{key}={value}" for key, value in settings)
    text = f"{name}[{','.join(written)}]"
    found = parse_entrant(text)
    assert isinstance(found, ModelEntrant)
    assert (found.name, found.settings) == (name, written)
    assert parse_entrant(f"my model={text}") == ModelEntrant("my model", name, written)
    if written:
        assert parse_entrant(f"{found.label}=a.jsonl,b.jsonl") == FilesEntrant(found.label, "a.jsonl", "b.jsonl")


def test_paths_have_a_slash() -> None:
    assert parse_entrant("runs[1]/mdd") == TrainedEntrant("runs[1]/mdd", "runs[1]/mdd")
    assert parse_entrant("./mdd") == TrainedEntrant("./mdd", "./mdd")
    assert parse_entrant("base=runs/lr=0.1/seed-0") == TrainedEntrant("base", "runs/lr=0.1/seed-0")
    assert parse_entrant("base=best.safetensors") == TrainedEntrant("base", "best.safetensors")
    assert parse_entrant("base=,ood.jsonl") == FilesEntrant("base", "", "ood.jsonl")


def test_commas_in_file_names(tmp_path: Path) -> None:
    one, two = tmp_path / "a,b.jsonl", tmp_path / "c.jsonl"
    one.touch()
    two.touch()
    assert parse_entrant(f"x={one},{two}") == FilesEntrant("x", str(one), str(two))
    with pytest.raises(MomentseekError, match="names no pair of files"):
        parse_entrant("x=a,b,c")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mdd[tree", "not closed"),
        ("mdd[tree]", "'tree' is not a setting"),
        ("mdd[tree=true,]", "'' is not a setting"),
        ("mdd[tree=true]x", "is not a model, folder or pair"),
        ("m d", "is not a model, folder or pair"),
        ("=mdd", "names nothing"),
        ("x=", "names nothing"),
        ("x=,", "names no pair"),
        ("a.jsonl,b.jsonl", "does not say what to call"),
    ],
)
def test_what_means_nothing_is_refused(text: str, what: str) -> None:
    with pytest.raises(MomentseekError, match=what):
        parse_entrant(text)


def test_only_files_and_folders_repeat() -> None:
    assert [len(v) for v in parse_entrants(["a=r/0", "b", "a=r/1"]).values()] == [2, 1]
    with pytest.raises(MomentseekError, match="given twice"):
        parse_entrants(["mdd", "mdd"])
