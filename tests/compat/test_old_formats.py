"""Stock clients read what brokers before Kafka 0.11 wrote: message formats 0 and 1, in every codec they had.

Format 0 with lz4 is left to librdkafka: kafka-python needs another package for its wrong checksum, and
aiokafka does not know of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.broker import topic_creator
from compat.clients.client import Client
from compat.clients.confluent import Confluent
from compat.clients.kcat import Kcat
from compat.clients.roster import CLIENTS, NAMES
from compat.consumers.confluent import ConfluentConsumer
from compat.consumers.consumer import Settings
from compat.record import Delivered
from old_messages import OLD_CODECS, OLD_FORMATS, as_kept, old_set
from ottla.records.compression import Codec
from ottla.records.content import Record
from ottla.records.legacy import build_legacy
from ottla.testing import BrokerProcess

THEN_MS = 1_450_000_000_000
SET_SIZE = 10
RECORDS = [
    Record(
        at, THEN_MS + at * 10, None if at % 7 == 0 else b"key %d" % at, None if at % 11 == 0 else b"v" * at
    )
    for at in range(60)
]
LANES = [(magic, codec) for magic in OLD_FORMATS for codec in OLD_CODECS]
READS_OLD_LZ4 = (Confluent.name, Kcat.name)


def _stored(records: list[Record], magic: int, codec: Codec) -> bytes:
    write = build_legacy if (magic, codec) == (0, Codec.LZ4) else old_set
    sets = [records[at : at + SET_SIZE] for at in range(0, len(records), SET_SIZE)]
    return b"".join(write(part, magic, codec) for part in sets)


@pytest.fixture(scope="module")
def old_topic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(bootstrap, topic): a broker that was started on an old broker's files, a partition for each lane."""
    home = tmp_path_factory.mktemp("old")
    broker = BrokerProcess(home)
    with broker:
        configs = {"retention.ms": "-1"}
        topic = topic_creator(broker.bootstrap)("old", partitions=len(LANES), configs=configs)
    for partition, (magic, codec) in enumerate(LANES):
        directory = home / "log" / f"{topic}-{partition}"
        metadata = (directory / "partition.metadata").read_bytes()
        shutil.rmtree(directory)
        directory.mkdir()
        (directory / "partition.metadata").write_bytes(metadata)
        for base in (0, 30):
            content = _stored(RECORDS[base : base + 30], magic, codec)
            (directory / f"{base:020d}.log").write_bytes(content)
    Path(home / "log" / ".kafka_cleanshutdown").unlink()
    with broker:
        yield broker.bootstrap, topic


@pytest.mark.parametrize("name", NAMES)
def test_every_client_reads_every_old_format(old_topic: tuple[str, str], name: str) -> None:
    client: Client = CLIENTS[name]
    bootstrap, topic = old_topic
    lanes = {
        partition: lane
        for partition, lane in enumerate(LANES)
        if lane != (0, Codec.LZ4) or name in READS_OLD_LZ4
    }
    seen = client.read(bootstrap, topic, {partition: len(RECORDS) for partition in lanes})
    for partition, (magic, codec) in lanes.items():
        found = [_plain(record) for record in seen[partition]]
        wanted = [_plain(_delivered(client, record, partition)) for record in as_kept(RECORDS, magic)]
        assert found == wanted, f"format {magic}, {codec.name}"


def _delivered(client: Client, record: Record, partition: int) -> Delivered:
    stamp = record.timestamp if record.timestamp >= 0 else None
    full = Delivered(partition, record.offset, stamp, None, record.key, record.value, ())
    return client.view(full)


def _plain(record: Delivered) -> tuple[int, int | None, bytes | None, bytes | None]:
    """Clients show the missing timestamp of format 0 in different ways: none, 0 or -1."""
    stamp = record.timestamp_ms if record.timestamp_ms is not None and record.timestamp_ms > 0 else None
    return record.offset, stamp, record.key, record.value


def test_a_client_finds_offsets_by_time_in_format_1(old_topic: tuple[str, str]) -> None:
    bootstrap, topic = old_topic
    consumer = ConfluentConsumer(bootstrap, topic, Settings())
    try:
        for partition, (magic, _) in enumerate(LANES):
            assert consumer.watermarks(partition) == (0, len(RECORDS))
            for at in (0, 17, 30, 59):
                wanted = at if magic else None
                assert consumer.offset_at(partition, THEN_MS + at * 10) == wanted
    finally:
        consumer.close()
