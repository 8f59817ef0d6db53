from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.search.fusion import FUSIONS
from momentseek.search.localise.localiser import LOCALISERS
from momentseek.search.options import STREAMS
from momentseek.server.judging.searches import SearchSetup, pool_setups


@given(
    st.sampled_from(["", *sorted(LOCALISERS)]),
    st.sets(st.sampled_from(STREAMS), min_size=1).map(sorted),
    st.booleans(),
    st.sampled_from(sorted(FUSIONS)),
    st.sampled_from(["", "labels", "clip:ViT-B/32", "a=b"]),
)
def test_its_text_reads_back(localiser: str, streams: list[str], weak: bool, fusion: str, encoder: str) -> None:
    setup = SearchSetup.of(localiser, ",".join(streams), "true" if weak else "false", fusion, encoder)
    assert SearchSetup.parse(str(setup)) == setup


@pytest.mark.parametrize(
    "text",
    [
        "localiser=nothing",
        "streams=",
        "streams=sound",
        "fusion=none",
        "fusion=",
        "localizer=x",
        "all=1",
        "scenes",
        "all=true;all=true",
        "=;",
    ],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(MomentseekError):
        SearchSetup.parse(text)


def test_the_usual_one_is_first_in_the_pool() -> None:
    assert pool_setups("whole")[0] == SearchSetup("whole")
    assert len(set(map(str, pool_setups("whole", encoders=["x"])))) == len(pool_setups("whole", encoders=["x"]))


def test_what_is_not_said_is_the_librarys_own() -> None:
    trained: Any = SimpleNamespace(engine=SimpleNamespace(localiser="learned"))
    assert SearchSetup(fusion="scores").resolve(trained) == SearchSetup("learned", fusion="scores")
    assert SearchSetup("whole").resolve(trained) == SearchSetup("whole")
