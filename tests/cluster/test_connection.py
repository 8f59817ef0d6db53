"""Addresses of clusters that are none."""

from __future__ import annotations

import pytest

from momentseek.cluster.connection import check_address
from momentseek.core.errors import MomentseekError


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("ray://127.0.0.1:1", "no Ray cluster answers there"),
        ("127.0.0.1:1", "no Ray cluster answers there"),
        ("somewhere", "is not the address of a cluster"),
        ("http://127.0.0.1:80", "is not the address of a cluster"),
    ],
)
def test_a_wrong_address_is_refused_in_a_sentence(address: str, told: str) -> None:
    with pytest.raises(MomentseekError, match=told):
        check_address(address)
