"""What a topic does not take is refused with Kafka's code, and nothing of it is written."""

from __future__ import annotations

import struct
import time

import pytest

from calls import (
    append,
    at,
    batch_of,
    batches_in,
    create_topic,
    end_offset,
    fetch,
    produce,
    produce_request,
    topic_id_of,
    unique_name,
    values_from,
)
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.records.batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    header_bytes,
    read_header,
)
from ottla.records.compression import Codec
from ottla.records.content import Record, build_batch, records_of
from wire import WireClient

HOUR_MS = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def with_header(batch: bytes, **changes: int) -> bytes:
    """The batch with other numbers in its header, and a checksum that fits them."""
    header = read_header(batch)._replace(**changes)
    return header_bytes(header, batch[HEADER_BYTES:]) + batch[HEADER_BYTES:]


def patched(batch: bytes, position: int, data: bytes) -> bytes:
    return batch[:position] + data + batch[position + len(data) :]


def with_records(batch: bytes, records: bytes) -> bytes:
    """The batch with other bytes where its records are, and a checksum that fits them."""
    return header_bytes(read_header(batch), records) + records


PLAIN = batch_of(b"one", b"two")

DAMAGED = {
    "nothing": (None, ErrorCode.INVALID_RECORD),
    "an empty record set": (b"", ErrorCode.INVALID_RECORD),
    "a cut batch": (PLAIN[:-1], ErrorCode.INVALID_RECORD),
    "a cut header": (PLAIN[:40], ErrorCode.INVALID_RECORD),
    "two batches": (PLAIN + PLAIN, ErrorCode.INVALID_RECORD),
    "bytes behind the batch": (PLAIN + b"\0", ErrorCode.INVALID_RECORD),
    "a wrong checksum": (patched(PLAIN, 17, b"\0\0\0\0"), ErrorCode.CORRUPT_MESSAGE),
    "a flipped bit": (PLAIN[:-1] + bytes([PLAIN[-1] ^ 1]), ErrorCode.CORRUPT_MESSAGE),
    "a negative length": (patched(PLAIN, 8, struct.pack(">i", -5)), ErrorCode.CORRUPT_MESSAGE),
    "a huge length": (patched(PLAIN, 8, struct.pack(">i", 2**31 - 1)), ErrorCode.INVALID_RECORD),
    "magic 0": (patched(PLAIN, 16, b"\0"), ErrorCode.INVALID_RECORD),
    "magic 1": (patched(PLAIN, 16, b"\1"), ErrorCode.INVALID_RECORD),
    "magic 3": (patched(PLAIN, 16, b"\3"), ErrorCode.CORRUPT_MESSAGE),
    "a control batch": (with_header(PLAIN, attributes=CONTROL), ErrorCode.INVALID_RECORD),
    "log append time": (with_header(PLAIN, attributes=LOG_APPEND_TIME), ErrorCode.INVALID_TIMESTAMP),
    "an unknown codec": (with_header(PLAIN, attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "an offset of its own": (with_header(PLAIN, base_offset=3), ErrorCode.INVALID_RECORD),
    "no records": (with_header(PLAIN, record_count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "a negative count": (with_header(PLAIN, record_count=-2), ErrorCode.INVALID_RECORD),
    "a count that does not fit": (with_header(PLAIN, record_count=3), ErrorCode.INVALID_RECORD),
    "a producer without sequence": (with_header(PLAIN, producer_id=9), ErrorCode.INVALID_RECORD),
    "a transaction": (
        with_header(PLAIN, attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, base_sequence=0),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,  # the request names none
    ),
}


@pytest.mark.parametrize("what", list(DAMAGED))
def test_what_is_no_batch_of_a_client_is_refused(client: WireClient, what: str) -> None:
    batch, code = DAMAGED[what]
    topic = create_topic(client)
    append(client, topic, b"before")
    answer = produce(client, topic, batch)
    assert ErrorCode(answer.error_code) == code
    assert answer.base_offset == -1
    assert answer.error_message
    assert append(client, topic, b"after") == 1
    assert values_from(client, topic) == [b"before", b"after"]


@pytest.mark.parametrize("acks", [-2, 2, 127])
def test_acks_other_than_0_1_and_all_are_refused(client: WireClient, acks: int) -> None:
    topic = create_topic(client)
    assert produce(client, topic, PLAIN, acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert end_offset(client, topic) == 0


@pytest.mark.parametrize("version", range(3, 14))
def test_zstd_needs_version_7(client: WireClient, version: int) -> None:
    name = create_topic(client)
    topic = name if version < 13 else topic_id_of(client, name)
    answer = produce(client, topic, batch_of(b"v" * 100, codec=Codec.ZSTD), version=version)
    assert answer.error_code == (ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@pytest.mark.parametrize("version", [3, 7, 8, 12])
def test_refusals_have_a_text_from_version_8_on(client: WireClient, version: int) -> None:
    answer = produce(client, unique_name("none"), PLAIN, version=version)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert bool(answer.error_message) == (version >= 8)


def test_batch_larger_than_max_message_bytes(client: WireClient) -> None:
    topic = create_topic(client, configs={"max.message.bytes": "1000"})
    fitting = batch_of(bytes(1000 - len(batch_of(bytes(800))) + 800))
    assert len(fitting) == 1000
    larger = batch_of(bytes(1000 - len(batch_of(bytes(800))) + 801))
    assert produce(client, topic, larger).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(client, topic, fitting).base_offset == 0


def test_batch_larger_than_a_segment(client: WireClient) -> None:
    configs = {"segment.bytes": str(1024 * 1024), "max.message.bytes": str(3 * 1024 * 1024)}
    topic = create_topic(client, configs=configs)
    answer = produce(client, topic, batch_of(bytes(1024 * 1024)))
    assert answer.error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert end_offset(client, topic) == 0


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_written_by_the_broker_only(client: WireClient, name: str) -> None:
    client.call(CreateTopicsRequest([CreatableTopic(name, 3, 1)]), 7)  # if nobody has made it yet
    before = end_offset(client, name)
    assert produce(client, name, PLAIN).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert produce(client, topic_id_of(client, name), PLAIN).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert end_offset(client, name) == before


# -- timestamps ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "offset_ms", "code"),
    [
        ("message.timestamp.before.max.ms", -2 * HOUR_MS, ErrorCode.INVALID_TIMESTAMP),
        ("message.timestamp.before.max.ms", 0, ErrorCode.NONE),
        ("message.timestamp.after.max.ms", 2 * HOUR_MS, ErrorCode.INVALID_TIMESTAMP),
        ("message.timestamp.after.max.ms", -2 * HOUR_MS, ErrorCode.NONE),
    ],
)
def test_timestamps_outside_of_the_topics_bounds(
    client: WireClient, setting: str, offset_ms: int, code: ErrorCode
) -> None:
    topic = create_topic(client, configs={setting: str(HOUR_MS)})
    batch = batch_of(b"v", timestamp=now_ms() + offset_ms)
    assert produce(client, topic, batch).error_code == code


def test_a_later_record_of_the_batch_counts_too(client: WireClient) -> None:
    topic = create_topic(client, configs={"message.timestamp.after.max.ms": str(HOUR_MS)})
    now = now_ms()
    batch = build_batch([Record(0, now, None, b"v"), Record(1, now + 2 * HOUR_MS, None, b"v")])
    assert produce(client, topic, batch).error_code == ErrorCode.INVALID_TIMESTAMP


def test_bounds_mean_nothing_where_the_broker_gives_the_time(client: WireClient) -> None:
    configs = {"message.timestamp.type": "LogAppendTime", "message.timestamp.after.max.ms": str(HOUR_MS)}
    topic = create_topic(client, configs=configs)
    assert produce(client, topic, batch_of(b"v", timestamp=now_ms() + 9 * HOUR_MS)).error_code == 0


# -- looking inside ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(Codec))
def test_compacted_topics_need_keys(client: WireClient, codec: Codec) -> None:
    topic = create_topic(client, configs={"cleanup.policy": "compact"})
    keyless = produce(client, topic, batch_of(b"v", key=None, codec=codec))
    assert keyless.error_code == ErrorCode.INVALID_RECORD
    assert "key" in (keyless.error_message or "")
    assert produce(client, topic, batch_of(b"v", key=b"", codec=codec)).base_offset == 0


@pytest.mark.parametrize("sent", list(Codec))
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compression_type_of_the_topic_wins(client: WireClient, wanted: str, sent: Codec) -> None:
    topic = create_topic(client, configs={"compression.type": wanted})
    values = [b"value-%d" % number * 20 for number in range(10)]
    assert produce(client, topic, batch_of(*values, codec=sent)).base_offset == 0
    assert produce(client, topic, batch_of(b"next", codec=sent)).base_offset == 10
    (data,) = fetch(client, topic, at(0))
    codecs = {read_header(batch).codec for batch in batches_in(data)}
    assert codecs == {Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()]}
    assert values_from(client, topic) == [*values, b"next"]


@pytest.mark.parametrize("codec", list(Codec))
def test_broken_records_behind_a_good_checksum_are_kept_on_a_plain_topic(
    client: WireClient, codec: Codec
) -> None:
    """The broker does not look inside: it keeps what it was given, and readers must cope."""
    topic = create_topic(client)
    broken = with_records(batch_of(b"v", codec=codec), b"\xff" * 50)
    assert produce(client, topic, broken).base_offset == 0
    assert append(client, topic, b"after") == 1
    (data,) = fetch(client, topic, at(0))
    assert batches_in(data)[0][16:] == broken[16:]
    assert values_from(client, topic, offset=1) == [b"after"]


@pytest.mark.parametrize(
    ("configs", "codec"),
    [({"cleanup.policy": "compact"}, codec) for codec in Codec]
    # What has the topic's codec already is not looked into.
    + [({"compression.type": "gzip"}, codec) for codec in Codec if codec is not Codec.GZIP],
)
def test_broken_records_are_refused_where_the_broker_looks_inside(
    client: WireClient, configs: dict[str, str], codec: Codec
) -> None:
    topic = create_topic(client, configs=configs)
    broken = with_records(batch_of(b"v", codec=codec), b"\xff" * 50)
    assert produce(client, topic, broken).error_code == ErrorCode.INVALID_RECORD
    assert end_offset(client, topic) == 0


def test_a_bomb_is_refused_where_the_broker_looks_inside(client: WireClient) -> None:
    topic = create_topic(client, configs={"cleanup.policy": "compact", "max.message.bytes": "10000000"})
    bomb = batch_of(bytes(300 * 1024 * 1024), codec=Codec.ZSTD)
    assert len(bomb) < 1_000_000
    assert produce(client, topic, bomb).error_code == ErrorCode.INVALID_RECORD
    assert append(client, topic, b"after") == 0


def test_several_partitions_refused_in_one_request_name_each_cause(client: WireClient) -> None:
    topic = create_topic(client, partitions=2, configs={"cleanup.policy": "compact"})
    request = produce_request(topic, batch_of(b"v", key=None), PLAIN[:-1])
    (answered,) = client.call(request, 12).responses
    texts = [part.error_message for part in answered.partition_responses]
    assert "key" in texts[0]
    assert "arrived" in texts[1]


def test_records_are_given_back_with_their_keys_after_recompression(client: WireClient) -> None:
    topic = create_topic(client, configs={"compression.type": "lz4", "cleanup.policy": "compact"})
    produce(client, topic, batch_of(b"a", b"b", key=b"key", codec=Codec.GZIP))
    (data,) = fetch(client, topic, at(0))
    (batch,) = batches_in(data)
    assert [(record.offset, record.key, record.value) for record in records_of(batch)] == [
        (0, b"key", b"a"),
        (1, b"key", b"b"),
    ]
