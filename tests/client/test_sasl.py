"""Logins, on the examples that the standards give."""

from __future__ import annotations

import pytest

from ottla.client import Producer
from ottla.client.errors import InvalidSetting
from ottla.client.sasl import Exchange, LoginFailed, login_of, plain, scram
from ottla.client.settings import COMMON_SETTINGS, load

# RFC 7677, 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def example() -> Exchange:
    return scram("sha256", "user", "pencil", NONCE)


def test_scram_says_what_the_standards_example_says() -> None:
    exchange = example()
    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        exchange.send(SERVER_FINAL)


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    exchange = example()
    next(exchange)
    exchange.send(SERVER_FIRST)
    with pytest.raises(LoginFailed, match="did not prove"):
        exchange.send(b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff",
        b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2000000000",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=*,i=4096",
        b"e=other-error",
    ],
)
def test_what_is_no_scram_gets_no_proof(answer: bytes) -> None:
    exchange = example()
    next(exchange)
    with pytest.raises(LoginFailed, match="no SCRAM"):
        exchange.send(answer)


def test_names_with_separators_are_escaped() -> None:
    assert next(scram("sha512", "a=b,c", "x", "n")) == b"n,,n=a=3Db=2Cc,r=n"
    assert next(plain("tim", "tanstaafltanstaaf")) == b"\0tim\0tanstaafltanstaaf"  # RFC 4616


def first_token(**settings: object) -> bytes:
    return next(login_of(load(settings, COMMON_SETTINGS)).begin())


def test_who_logs_in_is_told_in_javas_way_or_in_librdkafkas() -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = rf'{module} required username="ann" password="say \"hi\"";'
    assert first_token(sasl_mechanism="PLAIN", sasl_jaas_config=jaas) == b'\0ann\0say "hi"'
    assert first_token(sasl_mechanism="PLAIN", sasl_username="ann", sasl_password="x") == b"\0ann\0x"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "sasl.mechanism is not set; set it to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        ({"sasl_mechanism": "GSSAPI"}, "expected a text, one of PLAIN"),
        ({"sasl_mechanism": "PLAIN"}, "set sasl.username and sasl.password"),
        (
            {"sasl_mechanism": "PLAIN", "sasl_jaas_config": "x.Krb5LoginModule required;"},
            "names no login module",
        ),
        ({"sasl_kerberos_service_name": "kafka"}, "logins are PLAIN and SCRAM"),
    ],
)
def test_a_login_that_cannot_be_is_refused_before_anything_is_sent(
    settings: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Producer("localhost:1", security_protocol="SASL_PLAINTEXT", **settings)
    assert said in str(refused.value)
