"""Codec speed: µs per message, beside kio and kafka-python in the same run. Usage: python benchmarks/codec.py

Each implementation reads the bytes that ours wrote, and writes what it read.
"""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from ottla.protocol.apis import FETCH, METADATA, PRODUCE, Api
from ottla.protocol.codec import decode, encode, encode_bytes
from ottla.protocol.fields import Message
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore", DeprecationWarning
    )  # kafka-python reads its definitions in a deprecated way
    from kafka.protocol import consumer, metadata, producer

ROUND_S = 0.005
ROUNDS = 40


class Case(NamedTuple):
    name: str
    api: Api
    version: int
    message: Message
    kafka_python_type: Any


def cases() -> list[Case]:
    batch = bytes(200)
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=3, records=batch)])
        ],
    )
    produced = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="orders", partition_responses=[PartitionProduceResponse(index=3, base_offset=12_345)]
            )
        ]
    )
    fetch = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic="orders",
                partitions=[
                    FetchPartition(partition=index, fetch_offset=1_000 + index, partition_max_bytes=1 << 20)
                    for index in range(10)
                ],
            )
        ],
    )
    fetched = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="orders",
                partitions=[
                    PartitionData(partition_index=index, high_watermark=5_000, records=batch)
                    for index in range(10)
                ],
            )
        ]
    )
    image = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host="localhost", port=9092 + node) for node in range(3)
        ],
        cluster_id="qpLCfnKRQGSBLQWU4V-dAg",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{topic}",
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index, leader_id=index, replica_nodes=(0, 1, 2), isr_nodes=(0, 1, 2)
                    )
                    for index in range(3)
                ],
            )
            for topic in range(100)
        ],
    )
    return [
        Case("Produce request", PRODUCE, 9, produce, producer.ProduceRequest),
        Case("Produce response", PRODUCE, 9, produced, producer.ProduceResponse),
        Case("Fetch request x10", FETCH, 12, fetch, consumer.FetchRequest),
        Case("Fetch response x10", FETCH, 12, fetched, consumer.FetchResponse),
        Case("Metadata 100x3", METADATA, 9, image, metadata.MetadataResponse),
    ]


def best_us(contenders: list[Callable[[], object]]) -> list[float]:
    """Each one's best time per call. They take turns, so that other load on the machine meets all alike."""
    calls = []
    for work in contenders:
        work()
        started = time.perf_counter()
        work()
        calls.append(max(1, int(ROUND_S / max(time.perf_counter() - started, 1e-7))))
    best = [float("inf")] * len(contenders)
    for _ in range(ROUNDS):
        for index, work in enumerate(contenders):
            started = time.perf_counter()
            for _ in range(calls[index]):
                work()
            best[index] = min(best[index], (time.perf_counter() - started) / calls[index])
    return [seconds * 1e6 for seconds in best]


def measure(case: Case) -> tuple[list[float], list[float]]:
    """Times to decode and to encode: ours, kio's, kafka-python's."""
    _, api, version, message, kafka_python_type = case
    data = encode_bytes(message, version)
    message_type = type(message)
    load = load_request_schema if message_type is api.request else load_response_schema
    kio_type = load(api.key, version)
    kio_read, kio_write = entity_reader(kio_type), entity_writer(kio_type)
    kio_entity, _ = kio_read(data, 0)
    their_message = kafka_python_type.decode(data, version=version)
    their_message._header = None  # else a decoded message cannot be encoded

    def kio_encode() -> bytes:
        buffer = io.BytesIO()
        kio_write(buffer, kio_entity)
        return buffer.getvalue()

    def their_encode() -> bytes:
        return bytes(their_message.encode(version=version))

    assert kio_encode() == their_encode() == data
    view = memoryview(data)
    decoding = best_us(
        [
            lambda: decode(message_type, version, view),
            lambda: kio_read(data, 0),
            lambda: kafka_python_type.decode(data, version=version),
        ]
    )
    encoding = best_us([lambda: encode(message, version), kio_encode, their_encode])
    return decoding, encoding


def main() -> None:
    print(f"{'µs per message':28}{'ottla':>9}{'kio':>9}{'':>8}{'kafka-python':>14}{'':>8}")
    for case in cases():
        for direction, (ours, kio, theirs) in zip(("decode", "encode"), measure(case), strict=True):
            print(
                f"{case.name + ', ' + direction:28}{ours:9.2f}{kio:9.2f}{kio / ours:7.1f}x"
                f"{theirs:14.2f}{theirs / ours:7.1f}x"
            )


if __name__ == "__main__":
    main()
