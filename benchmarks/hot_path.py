"""The hot paths under load from a client in C: requests per second, bytes, latency.

    python benchmarks/hot_path.py [--seconds 4] [--runs 3] [--only produce] [--kafka HOST:PORT]

The broker has core 0 to itself, the client core 1. "CPU µs" is what the broker's process used per request: it
hardly depends on what else the machine does. With `--kafka` a running Apache Kafka, which its
owner has pinned and warmed, is measured beside it, row by row; the last column is how many times faster Ottla
is. Median of the runs. "Synced" rows answer after the disk (acks=all, flush.messages=1), on both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from peer import Peer

from ottla.protocol import apis
from ottla.protocol.apis import Api
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_response, encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.content import Record, build_batch
from ottla.testing import BrokerProcess

KIB, MIB = 1024, 1024 * 1024
SERVER_CORE, CLIENT_CORE = 0, 1
SOURCE = Path(__file__).parent / "raw_load" / "raw_load.c"
NEVER = str(2**63 - 1)


@dataclass(frozen=True)
class Row:
    name: str
    connections: int
    in_flight: int
    api: Api
    version: int
    request: Callable[[str], Message]  # for a topic of its own
    synced: bool = False
    unit: str = "per_second"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--kafka", default="", help="HOST:PORT of a running Apache Kafka to compare with")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in row.name]
    with tempfile.TemporaryDirectory() as folder, BrokerProcess() as broker:
        pin(broker.pid, SERVER_CORE)
        load = Load(Path(folder), options.seconds, options.runs)
        head = f"{'':<42}{'rate':>14}{'CPU µs':>8}{'p50':>9}{'p99':>9}{'p99.9 µs':>10}"
        print(head + (f"{'Kafka':>16}{'p99 µs':>9}{'times':>8}" if options.kafka else ""))
        for row in rows:
            ours = load.measure(row, broker.bootstrap, broker.pid)
            line = f"{row.name:<42}{rate(row, ours):>14}{ours['cpu_us']:8.1f}"
            line += f"{ours['p50_us']:9.0f}{ours['p99_us']:9.0f}{ours['p999_us']:10.0f}"
            if options.kafka:
                theirs = load.measure(row, options.kafka)
                times = ours[row.unit] / theirs[row.unit]
                line += f"{rate(row, theirs):>16}{theirs['p99_us']:9.0f}{times:8.1f}"
            print(line, flush=True)


class Load:
    """Runs the client in C against a broker."""

    def __init__(self, folder: Path, seconds: float, runs: int) -> None:
        self._program = folder / "raw_load"
        self._request_file = folder / "request"
        self._seconds = seconds
        self._runs = runs
        subprocess.run(["cc", "-O2", "-o", self._program, SOURCE], check=True)

    def measure(self, row: Row, address: str, pid: int | None = None) -> dict[str, float]:
        peer = Peer(address)
        topic = f"bench-{uuid.uuid4().hex[:8]}"
        create_topic(peer, topic, row.synced)
        if row.api is apis.FETCH:
            fill(peer, topic)
        self._request_file.write_bytes(encoded(row.api, row.version, row.request(topic)))
        results = [self._run(row, address, pid) for _ in range(self._runs)]
        check_answer(row, self._request_file.with_suffix(".answer").read_bytes())
        peer.call(apis.DELETE_TOPICS, 1, DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000))
        peer.socket.close()
        time.sleep(1)  # the topic's files go, and writes that it caused
        return {key: statistics.median(result[key] for result in results) for key in results[0]}

    def _run(self, row: Row, address: str, pid: int | None) -> dict[str, float]:
        cpu_seconds = cpu_seconds_of(pid)
        host, _, port = address.rpartition(":")
        command: list[object] = [self._program, host, port, self._request_file]
        command += [row.connections, row.in_flight, self._seconds, 1, 0]
        done = subprocess.run(
            list(map(str, command)),
            check=True,
            stdout=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, {CLIENT_CORE}),
        )
        result: dict[str, float] = json.loads(done.stdout)
        result["cpu_us"] = (cpu_seconds_of(pid) - cpu_seconds) / result["all_requests"] * 1e6
        return result


def cpu_seconds_of(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pin(pid: int, core: int) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {core})


def encoded(api: Api, version: int, message: Message) -> bytes:
    return b"".join(encode_request(api, version, 0, "bench", message))  # type: ignore[arg-type]


def check_answer(row: Row, answer: bytes) -> None:
    _, response = decode_response(row.api, row.version, answer[4:])
    if row.api is apis.PRODUCE:
        (partition,) = response.responses[0].partition_responses  # type: ignore[attr-defined]
        assert partition.error_code == 0, partition
    if row.api is apis.FETCH:
        (partition,) = response.responses[0].partitions  # type: ignore[attr-defined]
        assert partition.error_code == 0, partition
        assert len(partition.records) > 32 * KIB, "the topic holds too little"


def create_topic(peer: Peer, name: str, synced: bool) -> None:
    configs = [
        CreatableTopicConfig("flush.messages", "1" if synced else NEVER),
        CreatableTopicConfig("file.delete.delay.ms", "0"),
        CreatableTopicConfig("max.message.bytes", str(4 * MIB)),
    ]
    topic = CreatableTopic(name, num_partitions=1, replication_factor=1, configs=configs)
    answer = peer.call(apis.CREATE_TOPICS, 5, CreateTopicsRequest([topic], timeout_ms=30_000))
    assert answer.topics[0].error_code == 0, answer
    for _ in range(200):  # Kafka answers before the topic can be written to
        answer = peer.call(apis.PRODUCE, 7, produce(1, 10)(name))
        if answer.responses[0].partition_responses[0].error_code == 0:
            return
        time.sleep(0.05)
    raise AssertionError(answer)


def fill(peer: Peer, topic: str) -> None:
    for _ in range(130):
        peer.call(apis.PRODUCE, 7, produce(1, 64 * KIB)(topic))


def produce(acks: int, value_bytes: int) -> Callable[[str], ProduceRequest]:
    """One batch of records of at most a kilobyte each."""
    sizes = [1000] * (value_bytes // 1000) or [value_bytes]
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch([Record(at, now_ms, None, b"x" * size) for at, size in enumerate(sizes)])

    def request(topic: str) -> ProduceRequest:
        data = [PartitionProduceData(0, batch)]
        return ProduceRequest(None, acks, 30_000, [TopicProduceData(topic, partition_data=data)])

    return request


def fetch(size: int) -> Callable[[str], FetchRequest]:
    def request(topic: str) -> FetchRequest:
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
        return FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=size, topics=[FetchTopic(topic, partitions=[asked])]
        )

    return request


def rate(row: Row, result: dict[str, float]) -> str:
    if row.unit == "per_second":
        return f"{result[row.unit]:,.0f}/s"
    return f"{result[row.unit]:,.0f} MB/s"


SENT, RECEIVED = "sent_mb_per_second", "received_mb_per_second"
ROWS = [
    Row("ApiVersions, 64 connections", 64, 1, apis.API_VERSIONS, 0, lambda _: ApiVersionsRequest()),
    Row("produce 1 x 100 B, 1 connection", 1, 1, apis.PRODUCE, 7, produce(1, 100)),
    Row("produce 1 x 100 B, 64 connections", 64, 1, apis.PRODUCE, 7, produce(1, 100)),
    Row("produce 16 KiB, 4 connections x 4", 4, 4, apis.PRODUCE, 7, produce(1, 16 * KIB), unit=SENT),
    Row("produce 1 MiB, 4 connections x 2", 4, 2, apis.PRODUCE, 7, produce(1, MIB), unit=SENT),
    Row("produce 1 x 100 B synced, 1 connection", 1, 1, apis.PRODUCE, 7, produce(-1, 100), True),
    Row("produce 1 x 100 B synced, 64 connections", 64, 1, apis.PRODUCE, 7, produce(-1, 100), True),
    Row("produce 1 x 100 B synced, 256 x 4", 256, 4, apis.PRODUCE, 7, produce(-1, 100), True),
    Row("produce 16 KiB synced, 4 connections x 4", 4, 4, apis.PRODUCE, 7, produce(-1, 16 * KIB), True, SENT),
    Row("fetch 64 KiB, 4 connections", 4, 1, apis.FETCH, 11, fetch(64 * KIB), unit=RECEIVED),
    Row("fetch 1 MiB, 4 connections", 4, 1, apis.FETCH, 11, fetch(MIB), unit=RECEIVED),
]


if __name__ == "__main__":
    main()
