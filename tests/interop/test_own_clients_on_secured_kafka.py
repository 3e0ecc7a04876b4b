"""Our clients on listeners of Apache Kafka that encrypt and ask for a login, side by side with librdkafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest

from cli.program import Program
from client.certificates import Authority
from compat.broker import unique_name
from interop.apache_kafka import apache_kafka, free_port
from ottla.client import Admin, Consumer, Producer, aio, read
from ottla.client.errors import AuthenticationFailed, ClientError, TlsFailed
from spark.conftest import SPARK_SETTINGS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

USER, PASSWORD = "alice", 'se"cret=,'
SECURED = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SecuredKafka(NamedTuple):
    ports: dict[str, int]
    authority: Path
    mine: Path  # a key and a certificate for clients

    def settings(
        self, protocol: str, mechanism: str | None = None, password: str = PASSWORD
    ) -> dict[str, str]:
        found = {"bootstrap.servers": f"localhost:{self.ports[protocol]}", "security.protocol": protocol}
        if protocol.endswith("SSL"):
            found |= {"ssl.truststore.location": str(self.authority), "ssl.keystore.location": str(self.mine)}
        if mechanism is not None:
            found |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
        return found

    def librdkafkas(self, protocol: str, mechanism: str | None = None) -> dict[str, str]:
        ours = self.settings(protocol, mechanism)
        names = {
            "ssl.truststore.location": "ssl.ca.location",
            "ssl.keystore.location": "ssl.certificate.location",
        }
        theirs = {names.get(name, name): value for name, value in ours.items()}
        return theirs | ({"ssl.key.location": str(self.mine)} if protocol.endswith("SSL") else {})


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder / "authority")
    ports = {name: free_port() for name in SECURED}
    plain = (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{_quoted(PASSWORD)}";'
    )
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.sign("broker", "DNS:localhost")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain.replace("\\", "\\\\")
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = scram
    users = [f"{mechanism}=[name={USER},password={SCRAM_PASSWORD}]" for mechanism in MECHANISMS[1:]]
    with apache_kafka(folder, settings, ports, users):
        yield SecuredKafka(ports, authority.certificate, authority.sign("client"))


SCRAM_PASSWORD = "scram-secret"  # its tool splits by commas


def _quoted(text: str) -> str:
    return text.replace('"', '\\"')


def password_of(mechanism: str | None) -> str:
    return PASSWORD if mechanism in (None, "PLAIN") else SCRAM_PASSWORD


WAYS = [
    ("SSL", None),
    *((protocol, mechanism) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS),
]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_records_go_both_ways_between_our_clients_and_librdkafkas(
    kafka: SecuredKafka, protocol: str, mechanism: str | None
) -> None:
    topic = unique_name("secured")
    ours = kafka.settings(protocol, mechanism, password_of(mechanism))
    theirs = kafka.librdkafkas(protocol, mechanism)
    if mechanism is not None:
        theirs["sasl.password"] = password_of(mechanism)
    with Admin(**ours) as admin:
        admin.create_topic(topic, partitions=1)
    with Producer(**ours) as producer:
        producer.send(topic, b"ours" * 100_000)
    stranger = confluent_kafka.Producer(theirs)
    stranger.produce(topic, b"theirs")
    assert stranger.flush(30) == 0
    with Consumer(**ours, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        found: list[bytes] = []
        while len(found) < 2:
            found += [record.value for record in consumer.poll(1)]
    assert found == [b"ours" * 100_000, b"theirs"]
    address = ours.pop("bootstrap.servers")
    assert len(list(read(address, topic, **ours))) == 2
    reader = confluent_kafka.Consumer(
        {**theirs, "group.id": topic + "-theirs", "auto.offset.reset": "earliest"}
    )
    reader.subscribe([topic])
    message = reader.poll(60)
    assert message is not None
    assert message.value() == b"ours" * 100_000
    reader.close()


def test_transactions_and_asyncio_log_in_too(kafka: SecuredKafka) -> None:
    topic = unique_name("secured")
    settings = kafka.settings("SASL_SSL", "SCRAM-SHA-512", SCRAM_PASSWORD)

    async def write() -> None:
        async with aio.Producer(**settings, transactional_id=topic) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send(topic, b"all or nothing")

    asyncio.run(write())
    address = settings.pop("bootstrap.servers")
    with read(address, topic, isolation_level="read_committed", **settings) as reading:
        assert [record.value for record in reading] == [b"all or nothing"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_at_once(kafka: SecuredKafka, mechanism: str) -> None:
    settings = kafka.settings("SASL_SSL", mechanism, "wrong")
    with Admin(**settings) as admin, pytest.raises(AuthenticationFailed, match=r"check sasl\.mechanism"):
        admin.topic_names()
    with Producer(**settings) as producer, pytest.raises(AuthenticationFailed):
        producer.send("topic", b"value")
    with Consumer(**settings, group_id="g") as consumer:
        consumer.subscribe(["topic"])
        with pytest.raises(AuthenticationFailed):
            consumer.poll(30)


def test_what_does_not_fit_the_listener_is_named(kafka: SecuredKafka) -> None:
    def refused(**settings: str) -> ClientError:
        with Admin(**settings, default_api_timeout_ms=3_000) as admin, pytest.raises(ClientError) as failed:
            admin.topic_names()
        return failed.value

    anonymous = kafka.settings("SSL")
    del anonymous["ssl.keystore.location"]
    error = refused(**anonymous)
    assert isinstance(error, TlsFailed)
    assert "ssl.keystore.location" in error.cure
    no_login = kafka.settings("SASL_SSL")
    assert "sasl.mechanism" in refused(**{**no_login, "security.protocol": "SSL"}).cure
    no_tls = {**kafka.settings("SASL_SSL", "PLAIN"), "security.protocol": "SASL_PLAINTEXT"}
    assert "security.protocol=SSL or SASL_SSL" in refused(**no_tls).cure
    needless = {**kafka.settings("SASL_SSL", "PLAIN"), "bootstrap.servers": f"localhost:{kafka.ports['SSL']}"}
    assert "without SASL" in refused(**needless).cure


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_commands_log_in_with_what_a_profile_keeps(
    kafka: SecuredKafka, tmp_path: Path, protocol: str, mechanism: str | None
) -> None:
    ottla, topic = Program(tmp_path), unique_name("secured")
    settings = kafka.settings(protocol, mechanism, password_of(mechanism))
    given = [word for name, text in settings.items() for word in ("-X", f"{name}={text}")]
    ottla.ok("profile", "set", "secured", *given)
    assert password_of("PLAIN") not in ottla.ok("profile", "show").out
    ottla.ok("topic", "create", topic)
    ottla.ok("produce", topic, stdin="one\ntwo\n")
    assert ottla.ok("consume", topic).out == "one\ntwo\n"
    ottla.ok("group", "reset", topic, "--topic", topic, "--to", "1", "--yes")
    assert ottla.ok("group", "show", topic, "-o", "json").json["partitions"][0]["lag"] == 1
    assert ottla.ok("bench", "e2e", "-n", "5", "-o", "json").json["records"] == 5
    if mechanism is not None:
        refused = ottla.fails(3, "topic", "ls", "-X", "sasl.password=not-this-one")
        assert "not-this-one" not in refused
        assert "sasl.mechanism" in refused


def test_spark_logs_in_with_options_of_source_and_sink(kafka: SecuredKafka, tmp_path: Path) -> None:
    from ottla.spark.session import local_session

    settings = kafka.settings("SASL_SSL", "SCRAM-SHA-512", SCRAM_PASSWORD)
    options = {f"kafka.{name}": text for name, text in settings.items()}
    first, second = unique_name("spark"), unique_name("spark")
    with Admin(**settings) as admin:
        for topic in (first, second):
            admin.create_topic(topic, partitions=2)
    spark = local_session("local[2]", **SPARK_SETTINGS)
    try:
        rows = spark.range(100).selectExpr("cast(id as string) value")
        rows.write.format("ottla").options(**options, topic=first).mode("append").save()
        stream = spark.readStream.format("ottla").options(**options, subscribe=first)
        query = (
            stream.option("startingOffsets", "earliest")
            .load()
            .select("value")
            .writeStream.format("ottla")
            .options(**options, topic=second, checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        found = spark.read.format("ottla").options(**options, subscribe=second).load()
        assert sorted(int(row.value) for row in found.collect()) == list(range(100))
    finally:
        spark.stop()
