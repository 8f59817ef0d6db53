from __future__ import annotations

import ipaddress

import pytest

from momentseek.server.process import network_address_lines, own_addresses, page_address
from momentseek.server.settings import ServerSettings

TOKEN = "x" * 20


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_addresses_of_this_machine_are_of_its_networks(host: str) -> None:
    found = [ipaddress.ip_address(address) for address in own_addresses(ServerSettings(host=host, token=TOKEN))]
    assert not any(one.is_loopback or one.is_unspecified for one in found)
    assert host == "::" or all(one.version == 4 for one in found)


def test_names_go_first_and_this_machine_uses_its_own_address() -> None:
    settings = ServerSettings(host="0.0.0.0", token=TOKEN, allowed_hosts=("films.local",), port=80)
    assert page_address(settings) == "http://127.0.0.1:80/"
    assert network_address_lines(settings, ["10.0.0.7", "fd00::7"]) == [
        "on other machines: http://films.local:80/",
        "on other machines: http://10.0.0.7:80/",
        "on other machines: http://[fd00::7]:80/",
    ]


def test_where_nothing_is_known_it_says_how() -> None:
    lines = network_address_lines(ServerSettings(host="::", token=TOKEN), [])
    assert lines[0].startswith("on other machines: http://ADDRESS:8765/")


def test_one_address_needs_no_list() -> None:
    settings = ServerSettings(host="192.168.1.5", token=TOKEN)
    assert (network_address_lines(settings, []), own_addresses(settings)) == ([], [])
    assert page_address(settings) == "http://192.168.1.5:8765/"
