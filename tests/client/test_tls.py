"""Encrypted connections, to a real broker behind a server that ends TLS before it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.certificates import Authority
from client.tls_front import TlsFront, encrypted_broker
from ottla.client import Admin, Consumer, Producer, aio, read
from ottla.client.errors import ConnectionFailed, InvalidSetting, TlsFailed


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def front(authority: Authority) -> Iterator[TlsFront]:
    with encrypted_broker(authority) as front:
        yield front


def secured(authority: Authority, **more: object) -> dict[str, object]:
    return {"security.protocol": "SSL", "ssl.truststore.location": str(authority.certificate), **more}


def test_everything_goes_through_an_encrypted_connection(front: TlsFront, authority: Authority) -> None:
    address, settings = front.bootstrap, secured(authority)
    values = [bytes([number]) * 50_000 for number in range(100)]  # more than TLS has room for in a record
    with Admin(address, **settings) as admin, Producer(address, **settings) as producer:
        admin.create_topic("secret", partitions=2)
        for value in values:
            producer.send("secret", value)
    with Consumer(address, group_id="readers", auto_offset_reset="earliest", **settings) as consumer:
        consumer.subscribe(["secret"])
        found: list[bytes] = []
        while len(found) < len(values):
            found += [record.value for record in consumer.poll(1)]
    assert sorted(found) == values
    assert sum(1 for _ in read(address, "secret", **settings)) == len(values)


def test_asyncio_speaks_tls_too(front: TlsFront, authority: Authority) -> None:
    async def talk() -> bytes:
        address, settings = front.bootstrap, secured(authority)
        async with aio.Producer(address, **settings) as producer:
            await (await producer.send("async-secret", b"hello" * 100_000))
        async with aio.Consumer(address, auto_offset_reset="earliest", group_id="a", **settings) as consumer:
            consumer.subscribe(["async-secret"])
            async for record in consumer:
                value: bytes = record.value
                return value
        raise AssertionError

    assert asyncio.run(talk()) == b"hello" * 100_000


def refusal(address: str, **settings: object) -> ConnectionFailed:
    with Admin(address, **settings) as admin, pytest.raises(ConnectionFailed) as failed:
        admin.topic_names()
    return failed.value


def test_a_broker_that_cannot_be_trusted_is_refused_with_the_cure(
    front: TlsFront, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    error = refusal(front.bootstrap, **secured(stranger))
    assert "is not valid" in error.text
    assert "ssl.truststore.location" in error.cure
    named = refusal(f"127.0.0.1:{front.port}", **secured(authority))
    assert "ssl.endpoint.identification.algorithm" in named.cure
    with Producer(front.bootstrap, **secured(stranger)) as producer, pytest.raises(TlsFailed):
        producer.send("secret", b"not for you")  # at once, not after max.block.ms
    any_name = secured(authority, **{"ssl.endpoint.identification.algorithm": ""})
    with Admin(f"127.0.0.1:{front.port}", **any_name) as admin:
        admin.cluster()


def test_a_listener_of_another_kind_is_named(front: TlsFront, authority: Authority) -> None:
    plain = f"{front.backend[0]}:{front.backend[1]}"
    assert "(security.protocol)" in refusal(plain, **secured(authority)).cure
    assert "security.protocol=SSL" in refusal(front.bootstrap).cure


def test_a_client_shows_who_it_is_when_it_is_asked(authority: Authority) -> None:
    mine = authority.sign("client")
    with encrypted_broker(authority, asks_who=True) as front:
        address = front.bootstrap
        assert "ssl.keystore.location" in refusal(address, **secured(authority)).cure
        with Admin(address, **secured(authority, ssl_keystore_location=str(mine))) as admin:
            admin.cluster()
        key, _, chain = mine.read_text().partition("-----BEGIN CERTIFICATE")
        texts = {
            "ssl.keystore.key": key,
            "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE" + chain,
        }
        with Admin(address, **secured(authority, **texts)) as admin:
            admin.cluster()


def test_files_that_cannot_be_used_are_named_with_their_setting(tmp_path: Path, authority: Authority) -> None:
    java = tmp_path / "truststore.jks"
    java.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    for name, file, said in (
        ("ssl.truststore.location", java, "is no PEM file; make one of a Java keystore"),
        ("ssl.truststore.location", tmp_path / "absent.pem", "No such file"),
        (
            "ssl.keystore.location",
            authority.certificate,
            "key and certificate of ssl.keystore cannot be used",
        ),
    ):
        with pytest.raises(InvalidSetting, match=said):
            Producer("localhost:1", **{"security.protocol": "SSL", name: str(file)})  # type: ignore[arg-type]
