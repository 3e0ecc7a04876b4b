"""Bootstrap addresses as users write them."""

from __future__ import annotations

import pytest

from ottla.client.addresses import Address, parse_bootstrap
from ottla.client.errors import InvalidSetting


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1, b:2 ,a:1", [("a", 1), ("b", 2)]),
        ("host:", [("host", 9092)]),
        ("[::1]:9", [("::1", 9)]),
        ("[::1]", [("::1", 9092)]),
        ("fe80::1", [("fe80::1", 9092)]),
        ("PLAINTEXT://host:7", [("host", 7)]),
        (["a:1", "b:2"], [("a", 1), ("b", 2)]),
    ],
)
def test_addresses_are_read(text: str | list[str], addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == tuple(Address(*each) for each in addresses)


@pytest.mark.parametrize("text", ["", " , ", ":9092", "host:0", "host:65536", "host:x", "SSL://host:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        parse_bootstrap(text)


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
