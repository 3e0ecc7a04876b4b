"""Listener texts: what is read, and what is refused with which words."""

from __future__ import annotations

import pytest

from ottla.model.configs import InvalidSetting
from ottla.model.listeners import Listener, parse_listeners, parse_protocol_map

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "INTERNAL": "PLAINTEXT", "SSL": "SSL"}


def test_listeners_are_read_in_order_with_names_in_capitals() -> None:
    assert parse_listeners("plaintext://:9092, INTERNAL://host-1.example:19092", PROTOCOLS, "listeners") == (
        Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),
        Listener("INTERNAL", "host-1.example", 19092, "PLAINTEXT"),
    )


@pytest.mark.parametrize(
    "text", ["PLAINTEXT://[::1]:9092", "PLAINTEXT://[fe80::1%eth0]:9092", "PLAINTEXT://:0"]
)
def test_a_listener_is_written_as_it_was_read(text: str) -> None:
    (listener,) = parse_listeners(text, PROTOCOLS, "listeners")
    assert str(listener) == text


@pytest.mark.parametrize(
    "item",
    [
        "9092",
        "localhost:9092",
        "PLAINTEXT://localhost",
        "PLAINTEXT://localhost:65536",
        "PLAINTEXT://localhost:-1",
        "PLAINTEXT://::1:9092",
        "PLAINTEXT://two words:9092",
        "://localhost:9092",
    ],
)
def test_a_wrong_form_is_refused_with_an_example(item: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        parse_listeners(item, PROTOCOLS, "listeners")
    assert str(refusal.value) == (
        f"listeners: {item!r} is not valid, expected NAME://host:port, as in PLAINTEXT://127.0.0.1:9092"
    )


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="listeners: names no listener, expected NAME://host:port"):
        parse_listeners(" , ", PROTOCOLS, "listeners")


def test_an_unmapped_name_is_refused_with_the_line_to_add() -> None:
    with pytest.raises(InvalidSetting) as refusal:
        parse_listeners("EXTERNAL://:9092", PROTOCOLS, "listeners")
    assert str(refusal.value) == (
        "listeners: listener EXTERNAL has no security protocol; add EXTERNAL:PLAINTEXT to "
        "listener.security.protocol.map"
    )


def test_a_name_may_be_used_once() -> None:
    with pytest.raises(InvalidSetting, match="PLAINTEXT is there twice; each listener needs its own name"):
        parse_listeners("PLAINTEXT://:1,plaintext://:2", PROTOCOLS, "listeners")


def test_a_port_may_be_used_once_unless_the_system_chooses_it() -> None:
    with pytest.raises(InvalidSetting, match="port 9092 is there 2 times; each listener needs its own port"):
        parse_listeners("PLAINTEXT://10.0.0.1:9092,INTERNAL://10.0.0.2:9092", PROTOCOLS, "listeners")
    assert len(parse_listeners("PLAINTEXT://:0,INTERNAL://:0", PROTOCOLS, "listeners")) == 2
    text = "PLAINTEXT://a:9092,INTERNAL://b:9092"
    assert len(parse_listeners(text, PROTOCOLS, "advertised.listeners", distinct_ports=False)) == 2


def test_an_ipv4_and_an_ipv6_address_may_share_a_port() -> None:
    text = "PLAINTEXT://127.0.0.1:9092,INTERNAL://[::1]:9092"
    assert len(parse_listeners(text, PROTOCOLS, "listeners")) == 2
    with pytest.raises(InvalidSetting, match="port 9092 is there 3 times"):
        parse_listeners(text + ",SSL://[::2]:9092", PROTOCOLS, "listeners")


def test_the_protocol_map() -> None:
    assert parse_protocol_map("internal:plaintext, A-1:SASL_SSL,") == {
        "INTERNAL": "PLAINTEXT",
        "A-1": "SASL_SSL",
    }
    with pytest.raises(
        InvalidSetting, match="'A:TLS' is not valid, expected NAME:PROTOCOL with one of PLAINTEXT, SSL"
    ):
        parse_protocol_map("A:TLS")
    with pytest.raises(InvalidSetting, match="'PLAINTEXT' is not valid"):
        parse_protocol_map("PLAINTEXT")
    with pytest.raises(InvalidSetting, match="A has two protocols, SSL and PLAINTEXT"):
        parse_protocol_map("A:SSL,A:PLAINTEXT")
