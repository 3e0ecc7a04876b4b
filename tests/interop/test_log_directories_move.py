"""Log directories move between Ottla and Apache Kafka 3.9 on ZooKeeper, both ways, with every record."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.broker import topic_creator
from compat.cases import LANES, STAMPED_LANES, TOPIC_CONFIGS
from compat.clients.confluent import Confluent
from compat.record import LOG_APPEND_TIME
from compat.writing import write_topic
from interop import znode_moves
from interop.apache_servers import Kafka39, ZooKeeper
from interop.whole_topics import read_whole
from ottla.log.inspection.directory_check import check_directory
from ottla.log.system_files import SystemFiles
from ottla.testing import BrokerProcess

# The first build downloads the jars.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

STAMPED_CONFIGS = {**TOPIC_CONFIGS, "message.timestamp.type": "LogAppendTime"}
COMPACTED_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
STATE_TOPICS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
BUSY_CLEANER = {"log.cleaner.backoff.ms": "200"}
LARGE_MESSAGES = {"message.max.bytes": "13000000"}
CLEANED_WITHIN_SECONDS = 120


def test_apache_kafka_opens_what_ottla_wrote_and_ottla_takes_it_back(tmp_path: Path) -> None:
    ottla = BrokerProcess(tmp_path / "ottla", {**STATE_TOPICS, **BUSY_CLEANER})
    log_directory = tmp_path / "ottla" / "log"
    with ottla:
        create = topic_creator(ottla.bootstrap)
        lanes = create("lanes", partitions=len(LANES), configs=TOPIC_CONFIGS)
        stamped = create("stamped", partitions=len(STAMPED_LANES), configs=STAMPED_CONFIGS)
        transactional = create("transactional", partitions=2)
        compacted = create("compacted", configs=COMPACTED_CONFIGS)
        written = [
            write_topic(Confluent(), ottla.bootstrap, lanes, LANES),
            write_topic(Confluent(), ottla.bootstrap, stamped, STAMPED_LANES, LOG_APPEND_TIME),
        ]
        _write_transactions(ottla.bootstrap, transactional)
        committed = read_whole(ottla.bootstrap, transactional, committed=True)
        _commit_offset(ottla.bootstrap, lanes, 3)
        _write_compacted(ottla.bootstrap, compacted, log_directory)
        latest = _latest_values(ottla.bootstrap, compacted)
    assert check_directory(SystemFiles(), str(log_directory), look_inside=True).findings == []
    znodes = znode_moves.of_ottla(tmp_path / "ottla" / "coordination")
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper:
        znode_moves.into_zookeeper(zookeeper.address, znodes)
        with Kafka39(tmp_path / "kafka", zookeeper, log_directory, LARGE_MESSAGES) as kafka:
            for topic in written:
                problems = topic.unread_by(Confluent(), kafka.address)
                assert not problems, "\n".join(problems)
            assert read_whole(kafka.address, transactional, committed=True) == committed
            assert _committed_offset(kafka.address, lanes) == 3
            assert _latest_values(kafka.address, compacted) == latest
            _produce(kafka.address, lanes, [b"kafka was here"])
            _write_transactions(kafka.address, transactional)
            committed = read_whole(kafka.address, transactional, committed=True)
            _commit_offset(kafka.address, lanes, 5)
            expected = {topic.name: read_whole(kafka.address, topic.name) for topic in written}
        assert "clean shutdown file was found" in kafka.output(), "Kafka had to recover"
        znode_moves.into_ottla(
            tmp_path / "ottla" / "coordination", znode_moves.of_zookeeper(zookeeper.address)
        )
    with ottla:
        for topic in written:
            assert read_whole(ottla.bootstrap, topic.name) == expected[topic.name]
        assert read_whole(ottla.bootstrap, transactional, committed=True) == committed
        assert _committed_offset(ottla.bootstrap, lanes) == 5
        assert _latest_values(ottla.bootstrap, compacted) == latest
        _write_transactions(ottla.bootstrap, transactional)


def test_ottla_serves_what_apache_kafka_wrote(tmp_path: Path) -> None:
    """All codecs, idempotent, stamped by the broker, compacted, and transactional with aborted ones."""
    home = tmp_path / "ottla"
    log_directory = home / "log"
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper:
        settings = {**BUSY_CLEANER, **LARGE_MESSAGES}
        with Kafka39(tmp_path / "kafka", zookeeper, log_directory, settings) as kafka:
            admin = AdminClient({"bootstrap.servers": kafka.address})
            _create(admin, "lanes", len(LANES), TOPIC_CONFIGS)
            _create(admin, "stamped", len(STAMPED_LANES), STAMPED_CONFIGS)
            _create(admin, "compacted", 1, COMPACTED_CONFIGS)
            _create(admin, "transactional", 2, {})
            write_topic(Confluent(), kafka.address, "lanes", LANES)
            write_topic(Confluent(), kafka.address, "stamped", STAMPED_LANES, LOG_APPEND_TIME)
            _write_transactions(kafka.address, "transactional")
            _write_compacted(kafka.address, "compacted", log_directory)
            topics = ("lanes", "stamped", "compacted", "transactional")
            expected = {topic: read_whole(kafka.address, topic) for topic in topics}
            committed = read_whole(kafka.address, "transactional", committed=True)
        znode_moves.into_ottla(home / "coordination", znode_moves.of_zookeeper(zookeeper.address))
    assert check_directory(SystemFiles(), str(log_directory), look_inside=True).findings == []
    assert sum(map(len, committed.values())) < sum(map(len, expected["transactional"].values()))
    with BrokerProcess(home) as ottla:
        for topic in topics:
            assert read_whole(ottla.bootstrap, topic) == expected[topic], topic
        assert read_whole(ottla.bootstrap, "transactional", committed=True) == committed
    assert check_directory(SystemFiles(), str(log_directory), look_inside=True).findings == []


def test_ottla_recovers_what_a_killed_apache_kafka_left(tmp_path: Path) -> None:
    """With space reserved in index files, and checkpoints that are behind."""
    home = tmp_path / "ottla"
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper:
        with Kafka39(tmp_path / "kafka", zookeeper, home / "log", LARGE_MESSAGES) as kafka:
            admin = AdminClient({"bootstrap.servers": kafka.address})
            _create(admin, "lanes", len(LANES), {**TOPIC_CONFIGS, "segment.bytes": "13000000"})
            _create(admin, "transactional", 2, {})
            write_topic(Confluent(), kafka.address, "lanes", LANES)
            _write_transactions(kafka.address, "transactional")
            expected = read_whole(kafka.address, "lanes")
            committed = read_whole(kafka.address, "transactional", committed=True)
            kafka.kill()
        znode_moves.into_ottla(home / "coordination", znode_moves.of_zookeeper(zookeeper.address))
    assert check_directory(SystemFiles(), str(home / "log"), look_inside=True).findings == []
    with BrokerProcess(home) as ottla:
        assert read_whole(ottla.bootstrap, "lanes") == expected
        assert read_whole(ottla.bootstrap, "transactional", committed=True) == committed
    assert check_directory(SystemFiles(), str(home / "log"), look_inside=True).findings == []


def _create(admin: AdminClient, name: str, partitions: int, configs: dict[str, str]) -> None:
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=configs)
    admin.create_topics([topic])[name].result(60)


def _produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def _latest_values(bootstrap: str, topic: str) -> dict[bytes | None, bytes]:
    """What a table made of the topic holds, however far a cleaner has come."""
    latest = {key: value for _, _, key, value, _ in read_whole(bootstrap, topic)[0]}
    return {key: value for key, value in latest.items() if value is not None}


def _group_consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "travellers", "enable.auto.commit": False})


def _commit_offset(bootstrap: str, topic: str, offset: int) -> None:
    consumer = _group_consumer(bootstrap)
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def _committed_offset(bootstrap: str, topic: str) -> int:
    consumer = _group_consumer(bootstrap)
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
        return int(found.offset)
    finally:
        consumer.close()


def _write_transactions(bootstrap: str, topic: str) -> None:
    """Three that end in different ways, over two partitions, and a plain record between them."""
    for number, ends_well in enumerate((True, False, True)):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"writer-{number}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        for at in range(20):
            producer.produce(topic, b"%d of transaction %d" % (at, number), b"k%d" % at, partition=at % 2)
        assert producer.flush(60) == 0
        _produce(bootstrap, topic, [b"plain"])
        if ends_well:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)


def _write_compacted(bootstrap: str, topic: str, log_directory: Path) -> None:
    """Many values for few keys, tombstones too; returns when the cleaner has been there."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "enable.idempotence": True})
    padding = bytes(8_000)
    for at in range(600):
        key = b"key %d" % (at % 20 if at < 300 else at % 7)
        producer.produce(topic, None if at % 41 == 0 else b"value %d" % at + padding, key)
        if at % 5 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0
    checkpoint = log_directory / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + CLEANED_WITHIN_SECONDS
    while not (checkpoint.exists() and f"{topic} 0 " in checkpoint.read_text()):
        assert time.monotonic() < deadline, "the cleaner did not come"
        time.sleep(0.2)
    assert sum(map(len, read_whole(bootstrap, topic).values())) < 600
