"""Settings of clients: Kafka's names as they are, and no name that is quietly ignored."""

from __future__ import annotations

import pytest

from client.conftest import NewTopicName
from ottla.client import Admin, Consumer, Producer
from ottla.client.decoding import PLUGGABLE as CONSUMER_PLUGGABLE
from ottla.client.errors import InvalidSetting, UnknownTopic
from ottla.client.intake import PLUGGABLE as PRODUCER_PLUGGABLE
from ottla.client.refused_settings import reason
from ottla.client.settings import CONSUMER_SETTINGS, PRODUCER_SETTINGS

# As Kafka 4.3's ProducerConfig and ConsumerConfig name them.
KAFKAS_COMMON = [
    "bootstrap.servers",
    "client.dns.lookup",
    "client.id",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "config.providers",
    "interceptor.classes",
]
KAFKAS_PRODUCER = [
    "acks",
    "batch.size",
    "buffer.memory",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "enable.idempotence",
    "key.serializer",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "metadata.max.idle.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.class",
    "partitioner.ignore.keys",
    "retries",
    "transaction.timeout.ms",
    "transaction.two.phase.commit.enable",
    "transactional.id",
    "value.serializer",
]
KAFKAS_CONSUMER = [
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "check.crcs",
    "client.rack",
    "default.api.timeout.ms",
    "enable.auto.commit",
    "exclude.internal.topics",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "isolation.level",
    "key.deserializer",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "partition.assignment.strategy",
    "session.timeout.ms",
    "share.acknowledgement.mode",
    "share.acquire.mode",
    "value.deserializer",
]


@pytest.mark.parametrize("name", [*KAFKAS_COMMON, *KAFKAS_PRODUCER])
def test_every_setting_of_kafkas_producer_is_taken_or_refused_with_its_reason(name: str) -> None:
    known = name in PRODUCER_SETTINGS or name in PRODUCER_PLUGGABLE or name == "bootstrap.servers"
    assert known or reason(name) is not None


@pytest.mark.parametrize("name", [*KAFKAS_COMMON, *KAFKAS_CONSUMER])
def test_every_setting_of_kafkas_consumer_is_taken_or_refused_with_its_reason(name: str) -> None:
    known = name in CONSUMER_SETTINGS or name in CONSUMER_PLUGGABLE or name == "bootstrap.servers"
    assert known or reason(name) is not None


def test_a_whole_kafka_configuration_is_taken_as_it_is(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)
    config: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "linger.ms": "1",
        "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        "value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    }
    with Producer(**config) as producer:  # type: ignore[arg-type]
        assert producer.send(topic, "value", key="key").result(30).offset == 0
    with Admin(**{"bootstrap.servers": bootstrap}) as admin:  # type: ignore[arg-type]
        assert admin.topic(topic).name == topic
    with Consumer(**{"bootstrap.servers": bootstrap, "group.id": "g"}) as consumer:  # type: ignore[arg-type]
        consumer.subscribe([topic])
    for client in (Producer, Consumer, Admin):
        with pytest.raises(InvalidSetting, match=r"bootstrap\.servers"):
            client()
        with pytest.raises(InvalidSetting, match="twice"):
            client(bootstrap, **{"bootstrap.servers": bootstrap})


def test_a_setting_that_is_refused_says_why() -> None:
    with pytest.raises(InvalidSetting, match=r"client\.rack is not supported: only a consumer may go"):
        Producer("localhost", client_rack="a")
    with pytest.raises(
        InvalidSetting, match=r"ssl\.keystore\.password is not supported: PEM files have no password"
    ):
        Producer("localhost", **{"ssl.keystore.password": "x"})  # type: ignore[arg-type]
    with pytest.raises(
        InvalidSetting, match=r"ssl\.keystore\.type=JKS: not valid, expected a text, one of PEM"
    ):
        Producer("localhost", **{"ssl.keystore.type": "JKS"})  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match=r"did you mean linger\.ms"):
        Producer("localhost", lingerms=5)


def test_settings_of_other_clients_are_told_by_their_names_here() -> None:
    for client, name, said in (
        (Producer, "queue.buffering.max.kbytes", "buffer.memory"),
        (Producer, "message.timeout.ms", "delivery.timeout.ms"),
        (Consumer, "enable.partition.eof", "lag()"),
        (Consumer, "consumer_timeout_ms", "poll(timeout)"),
    ):
        with pytest.raises(InvalidSetting, match="is not supported") as refused:
            client("localhost:1", **{name: 1})
        assert said in str(refused.value)


@pytest.mark.parametrize("client", [Producer, Consumer, Admin])
def test_a_dict_of_settings_is_not_taken_for_an_address(client: type) -> None:
    with pytest.raises(InvalidSetting, match="unpack it"):
        client({"bootstrap.servers": "localhost:1"})


def test_a_consumer_makes_topics_only_when_it_is_told_to(bootstrap: str, admin: Admin) -> None:
    with Consumer(bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["never-made"])
        consumer.poll(0.3)
    with pytest.raises(UnknownTopic):
        admin.topic("never-made")
