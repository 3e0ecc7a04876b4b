"""Stock clients' record code against ours, both ways: librdkafka, kafka-python and aiokafka."""

from __future__ import annotations

import socket
import struct
import warnings
from pathlib import Path
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.records.batch import ProduceRules, check_produced, read_header
from ottla.records.compression import Codec
from ottla.records.content import Record, build_batch, check_content, recompress, records_of
from ottla.records.formats import verify_crc

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, at its import
    import kafka.record.default_records as kafka_python_records

NOW = 1_700_000_000_000
RULES = ProduceRules(1 << 30, (1 << 63) - 1, 3_600_000, log_append_time=False)
CODECS = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
GOLDEN = Path(__file__).parent / "golden"

RECORDS = [
    Record(0, NOW, b"key", b"value"),
    Record(1, NOW + 5, None, b"no key"),
    Record(2, NOW - 5, b"tombstone", None),
    Record(3, NOW, None, None),
    Record(4, NOW + 1, b"", b"", (("name", b"content"), ("null", None), ("", b""))),
    Record(5, NOW + 86_400_000, b"far", b"x" * 300_000, (("ünïcode", "käse".encode()),)),
]


def built_by(client: Any, codec: Codec) -> bytes:
    builder = client.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 24,
    )
    for record in RECORDS:
        appended = builder.append(
            record.offset, record.timestamp, record.key, record.value, list(record.headers)
        )
        assert appended is not None
    return bytes(builder.build())


def read_by(client: Any, batch: bytes) -> list[Record]:
    read = client.DefaultRecordBatch(batch)
    assert read.validate_crc()
    return [
        Record(
            record.offset,
            record.timestamp,
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
            tuple((name, None if content is None else bytes(content)) for name, content in record.headers),
        )
        for record in read
    ]


CLIENTS = pytest.mark.parametrize(
    "client",
    [
        kafka_python_records,
        aiokafka_records,
    ],
    ids=["kafka-python", "aiokafka"],
)


@CLIENTS
@CODECS
def test_clients_read_what_we_build(client: Any, codec: Codec, kernel: object) -> None:
    assert read_by(client, build_batch(RECORDS, codec=codec)) == RECORDS


@CLIENTS
@CODECS
def test_we_read_what_clients_build(client: Any, codec: Codec, kernel: object) -> None:
    batch = built_by(client, codec)
    assert list(records_of(batch)) == RECORDS
    checked = check_produced(memoryview(batch), 9, RULES._replace(timestamp_after_ms_max=1 << 40), NOW)
    assert checked.header.codec == codec


@CLIENTS
def test_uncompressed_batches_are_equal_byte_for_byte(client: Any, kernel: object) -> None:
    theirs = built_by(client, Codec.NONE)
    # The clients leave the leader epoch at 0, Java and we at -1; it lies outside of the checksum.
    assert build_batch(RECORDS, leader_epoch=read_header(theirs).leader_epoch) == theirs


@CODECS
def test_librdkafkas_batches_pass_and_are_read(codec: Codec, kernel: object) -> None:
    batch = (GOLDEN / f"librdkafka-{codec.name.lower()}.batch").read_bytes()
    checked = check_produced(memoryview(batch), 9, RULES, NOW)
    assert checked.header.codec == codec
    assert checked.header.record_count == 20
    assert checked.header.has_producer == (codec == Codec.LZ4)  # that one was captured with idempotence on
    assert list(records_of(batch)) == [
        Record(
            i,
            NOW + i,
            None if i == 3 else b"key-%d" % i,
            None if i == 5 else b"value %d " % i * 20,
            (("h", b"x%d" % i), ("n", None)) if i % 2 else (),
        )
        for i in range(20)
    ]
    for other in Codec:
        written = recompress(batch, other)
        assert verify_crc(written, read_header(written))
        assert list(records_of(written)) == list(records_of(batch))
        looked_at = check_content(checked, RULES._replace(codec=other), NOW)
        assert bytes(looked_at.body) == (batch if other == codec else written)


@CODECS
def test_librdkafka_reads_what_we_build(codec: Codec) -> None:
    """Our batch goes to librdkafka's own mock broker by a hand-made Produce, and out by its consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": "replaced-by-the-mock",
            "test.mock.num.brokers": 1,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": True,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    try:
        (broker,) = consumer.list_topics("topic", timeout=10).brokers.values()
        produce(broker.host, broker.port, "topic", build_batch(RECORDS, codec=codec))
        consumer.assign([TopicPartition("topic", 0, 0)])
        messages = consumer.consume(len(RECORDS), timeout=20)
    finally:
        consumer.close()
    assert [
        Record(m.offset(), m.timestamp()[1], m.key(), m.value(), tuple(m.headers() or ())) for m in messages
    ] == RECORDS


def produce(host: str, port: int, topic: str, batch: bytes) -> None:
    name = struct.pack(">h", len(topic)) + topic.encode()
    request = struct.pack(">hhih", 0, 7, 1, -1)  # Produce 7, correlation 1, no client id
    request += struct.pack(">hhi", -1, -1, 5_000)  # no transaction, acks=all, timeout
    request += struct.pack(">i", 1) + name + struct.pack(">iii", 1, 0, len(batch)) + batch
    connection = socket.create_connection((host, port), timeout=10)
    with connection, connection.makefile("rb") as answer:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", answer.read(4))
        response = answer.read(size)
    error_position = 4 + 4 + len(name) + 4 + 4
    assert struct.unpack_from(">h", response, error_position) == (0,)
