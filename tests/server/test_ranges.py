from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.server.errors import ApiError
from momentseek.server.files import parse_range


@given(st.integers(1, 300), st.integers(0, 400), st.integers(0, 400))
def test_a_range_is_the_slice_of_the_same_bytes(size: int, first: int, length: int) -> None:
    data = bytes(i % 251 for i in range(size))
    header = f"bytes={first}-{first + length}"
    if first >= size:
        with pytest.raises(ApiError, match="outside"):
            parse_range(header, size)
        return
    span = parse_range(header, size)
    assert span is not None
    assert data[span[0] : span[1] + 1] == data[first : first + length + 1]
    assert span[1] - span[0] + 1 == len(data[first : first + length + 1])


@given(st.integers(1, 300), st.integers(1, 400))
def test_a_suffix_is_the_end(size: int, length: int) -> None:
    data = bytes(i % 251 for i in range(size))
    span = parse_range(f"bytes=-{length}", size)
    assert span is not None
    assert data[span[0] : span[1] + 1] == data[-length:]


@given(st.text(max_size=60), st.integers(0, 1000))
def test_any_header_is_answered(header: str, size: int) -> None:
    try:
        span = parse_range(header, size)
    except ApiError:
        return
    assert span is None or 0 <= span[0] <= span[1] < size


@pytest.mark.parametrize("header", [None, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=3-1", "bytes=0-0,2-3"])
def test_what_cannot_be_read_means_the_whole(header: str | None) -> None:
    assert parse_range(header, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=-0", "bytes=10-20", f"bytes={'9' * 19}-", f"bytes={'9' * 40}-"])
def test_outside_is_unsatisfiable(header: str) -> None:
    with pytest.raises(ApiError, match="outside"):
        parse_range(header, 10)


@pytest.mark.parametrize("header", ["bytes=0-99999999999999999999", f"bytes=0-{'9' * 300}", f"bytes=-{'9' * 30}"])
def test_an_end_far_beyond_the_file_is_its_end(header: str) -> None:
    assert parse_range(header, 10) == (0, 9)


def test_of_an_empty_file_there_is_no_range() -> None:
    with pytest.raises(ApiError, match="outside"):
        parse_range("bytes=0-", 0)


def test_units_have_no_case() -> None:
    assert parse_range("Bytes=2-3", 10) == (2, 3)
