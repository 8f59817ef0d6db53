"""Tables written as TOML are read back as they were."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.config import toml_text

values = st.one_of(
    st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.text(st.characters(codec="utf-8"))
)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), values | st.lists(st.text(max_size=5))))
def test_what_is_written_as_toml_is_read_back(section: dict[str, object]) -> None:
    assert tomllib.loads(toml_text({"s": section})) == {"s": section}


def test_tables_within_tables_become_sections() -> None:
    table = {"name": "films", "splits": {"train": {"truth": "a.json"}, "my split": {}}, "empty": {}}
    text = toml_text(table)
    assert tomllib.loads(text) == table
    assert text.startswith('name = "films"\n\n[splits.train]\ntruth = "a.json"\n\n[splits."my split"]\n')
