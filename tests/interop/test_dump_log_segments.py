"""Apache Kafka's DumpLogSegments accepts our files: logs record by record, indexes against their logs."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat.broker import topic_creator
from interop.builds import java_command, zookeeper_mode_command
from log.building import NOW_MS, PARTITION, new_log, produced, sync
from log.cleaning import Compacted
from old_messages import OLD_CODECS, OLD_FORMATS
from ottla.coordinator.transaction import TransactionState
from ottla.log.system_files import SystemFiles
from ottla.log.transaction_markers import build_marker
from ottla.records.batch import TRANSACTIONAL
from ottla.records.compression import CODEC_NAMES, Codec
from ottla.records.content import Record
from ottla.records.legacy import build_legacy
from ottla.testing import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

COMPLAINTS = re.compile(
    r"ismatch|invalid bytes|isvalid: false|not found in the log|out of order|Exception"
    # Kafka 4.3 says that -1 is followed by the first offset of every segment; that is its own mistake.
    r"|^  \d+ is followed by"
)
TOOLS: dict[str, Callable[[], list[str]]] = {
    "3.9": lambda: [*zookeeper_mode_command(), "kafka.tools.DumpLogSegments"],
    "4": lambda: [*java_command(), "org.apache.kafka.tools.DumpLogSegments"],
}
RECORDS_PER_CODEC = 3_000


def dumped(tool: str, files: list[Path], *options: str) -> str:
    """What it printed; it must not have complained."""
    done = subprocess.run(
        [*TOOLS[tool](), *options, "--files", ",".join(map(str, files))],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if COMPLAINTS.search(line)]
    assert not complaints, "\n".join(complaints[:20])
    return done.stdout


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by an idempotent client, in all codecs, over many segments; the broker was stopped cleanly."""
    home = tmp_path_factory.mktemp("dumped")
    noise = random.Random(1)
    with BrokerProcess(home) as broker:
        topic = topic_creator(broker.bootstrap)("dumped", configs={"segment.bytes": str(1 << 20)})
        for codec in CODEC_NAMES:
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "compression.type": codec,
                    "enable.idempotence": True,
                    "batch.num.messages": 50,
                }
            )
            for at in range(RECORDS_PER_CODEC):
                producer.produce(topic, noise.randbytes(400), b"%d" % at, partition=0, headers={"h": b"v"})
                if at % 500 == 0:
                    producer.flush(60)
            assert producer.flush(60) == 0
    return home / "log" / f"{topic}-0"


@pytest.mark.parametrize("tool", TOOLS)
def test_every_record_is_found_in_logs_with_many_segments(partition: Path, tool: str) -> None:
    logs = sorted(partition.glob("*.log"))
    assert len(logs) > 4
    out = dumped(tool, logs, "--deep-iteration")
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", out, re.MULTILINE)]
    assert offsets == list(range(RECORDS_PER_CODEC * len(Codec)))
    codecs = {codec.lower() for codec in re.findall(r"compresscodec: (\w+)", out)}
    assert codecs == set(CODEC_NAMES)
    assert set(re.findall(r"isvalid: (\w+)", out)) == {"true"}


@pytest.mark.parametrize("tool", TOOLS)
def test_indexes_are_sane_and_lead_to_their_batches(partition: Path, tool: str) -> None:
    indexes = sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")])
    sane = dumped(tool, indexes, "--index-sanity-check")
    assert sane.count("passed sanity check") + sane.count("is empty") == len(indexes)
    dumped(tool, indexes, "--verify-index-only")
    entries = dumped(tool, indexes)
    assert len(re.findall(r"^offset: \d+ position: \d+", entries, re.MULTILINE)) > 100
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", entries, re.MULTILINE)) > 10


@pytest.mark.parametrize("tool", TOOLS)
def test_producer_snapshots_are_read(partition: Path, tool: str) -> None:
    out = dumped(tool, [sorted(partition.glob("*.snapshot"))[-1]])
    assert len(re.findall(r"^producerId: \d+ ", out, re.MULTILINE)) == len(Codec)


@pytest.mark.parametrize("tool", TOOLS)
def test_transactions_and_their_index_are_read(tmp_path: Path, tool: str) -> None:
    directory, log = new_log(SystemFiles(), str(tmp_path / "log"))
    for producer, commits in ((1, True), (2, False), (3, True), (4, False)):
        log.append([produced(producer, 0, 0, 3, flags=TRANSACTIONAL)], 0, NOW_MS)
        log.append([build_marker(producer, 0, commits, 5, NOW_MS)], 0, NOW_MS)
    sync(log)
    directory.close({PARTITION: log.log_end_offset})
    out = dumped(tool, sorted(Path(log.directory).glob("*.log")), "--deep-iteration")
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: 5", out) == [
        "COMMIT",
        "ABORT",
        "COMMIT",
        "ABORT",
    ]
    out = dumped(tool, sorted(Path(log.directory).glob("*.txnindex")))
    found = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", out)
    assert found == [("2", "4", "7", "8"), ("4", "12", "15", "16")]


@pytest.mark.parametrize("tool", TOOLS)
def test_old_formats_as_we_write_them_are_read(tmp_path: Path, tool: str) -> None:
    """Also format 0 with lz4, whose checksum is wrong on purpose."""
    offset, content = 0, b""
    for magic in OLD_FORMATS:
        for codec in OLD_CODECS:
            records = [Record(offset + at, NOW_MS + at, b"key", b"value" * at) for at in range(10)]
            content += build_legacy(records, magic, codec)
            offset += 10
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(content)
    out = dumped(tool, [path], "--deep-iteration")
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", out, re.MULTILINE)]
    assert offsets == list(range(offset))


@pytest.mark.parametrize("tool", TOOLS)
def test_the_records_of_groups_are_decoded(tmp_path: Path, tool: str) -> None:
    with BrokerProcess(tmp_path, {"offsets.topic.num.partitions": "1"}) as broker:
        topic = topic_creator(broker.bootstrap)("read")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.commit(offsets=[TopicPartition(topic, 0, 42)], asynchronous=False)
        consumer.close()
    logs = sorted((tmp_path / "log" / "__consumer_offsets-0").glob("*.log"))
    out = dumped(tool, logs, "--offsets-decoder")
    assert re.search(rf'"group":"readers","topic":"{topic}","partition":0', out)
    assert '"offset":42' in out
    assert '"protocolType":"consumer"' in out


@pytest.mark.parametrize("tool", TOOLS)
def test_compacted_segments_and_their_indexes_are_read(tmp_path: Path, tool: str) -> None:
    """Gaps are all it may speak of: batches without records and tombstones with a time to go are sound."""
    compacted = Compacted(tmp_path / "log", segment_bytes=1 << 17, index_interval_bytes=100)
    sequences = [0, 0]
    for at in range(600):
        producer = at % 2
        pairs = [(f"key {(at * 7 + number) % 900}", "v" * 300 if at % 5 else None) for number in range(5)]
        fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
        compacted.write(*pairs, codec=list(Codec)[at % len(Codec)], **fields)
        sequences[producer] += len(pairs)
    compacted.write(*((f"key {number}", "last") for number in range(900)), roll=True)
    compacted.clean()
    compacted.directory.close({PARTITION: compacted.log.log_end_offset})
    partition = Path(compacted.log.directory)
    logs = sorted(partition.glob("*.log"))
    done = subprocess.run(
        [*TOOLS[tool](), "--deep-iteration", "--files", ",".join(map(str, logs))],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert set(re.findall(r"isvalid: (\w+)", done.stdout)) == {"true"}
    assert " count: 0 " in done.stdout
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", done.stdout, re.MULTILINE)]
    assert offsets == [offset for offset, _, _ in compacted.records()]
    indexes = sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")])
    dumped(tool, indexes, "--index-sanity-check")
    dumped(tool, indexes, "--verify-index-only")


def _state_named(name: str) -> TransactionState:
    (state,) = (each for each in TransactionState if each.kafka_name == name)
    return state


@pytest.mark.parametrize("tool", TOOLS)
def test_the_records_of_transactions_are_decoded(tmp_path: Path, tool: str) -> None:
    with BrokerProcess(tmp_path, {"transaction.state.log.num.partitions": "1"}) as broker:
        topic = topic_creator(broker.bootstrap)("bought", partitions=2)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "shop"})
        producer.init_transactions(60)
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            for partition in range(2):
                producer.produce(topic, b"v", partition=partition)
            producer.flush(60)
            end(60)
    folder = tmp_path / "log"
    out = dumped(tool, sorted((folder / "__transaction_state-0").glob("*.log")), "--transaction-log-decoder")
    found = re.findall(r"key: (.+) payload: .+(?:state=|\"transactionStatus\":)(\w+)", out)
    assert all("shop" in key for key, _ in found)
    states = [TransactionState.EMPTY]
    for _, name in found:  # a number since Kafka 4
        state = TransactionState(int(name)) if name.isdigit() else _state_named(name)
        if state is not states[-1]:  # partitions may have been added one by one
            states.append(state)
    assert states == [
        TransactionState.EMPTY,
        *(TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
        *(TransactionState.ONGOING, TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
    ]
    assert topic in out
    for partition in range(2):
        logs = sorted((folder / f"{topic}-{partition}").glob("*.log"))
        out = dumped(tool, logs, "--deep-iteration")
        assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: \d+", out) == ["COMMIT", "ABORT"]
