"""Records what real clients send: a broker of one topic that answers just enough, and clients to talk to it.

Usage: PYTHONPATH=src python tests/golden/capture.py [directory]

Writes `<client>/<api>-v<version>.hex`, one request frame each, without its length. Every client runs twice:
against a broker that offers all declared versions, and against one that offers the last versions before the
flexible ones. Not a test: run it when a client's release may have changed what it sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import socketserver
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from ottla.model.topics import TopicId
from ottla.protocol.apis import API_VERSIONS, APIS, Api
from ottla.protocol.codec import decode
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_request_header, encode_response
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC = "golden"
TOPIC_ID = TopicId(bytes.fromhex("0f1e2d3c4b5a69788796a5b4c3d2e1f0"))
CLIENT_SECONDS_MAX = 30


class RecordingBroker(socketserver.ThreadingTCPServer):
    """Answers as the only broker of a cluster with one topic of one partition, and keeps the frames."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *, flexible: bool) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.flexible = flexible
        self.frames: dict[tuple[Api, int], bytes] = {}
        self.records = b""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def versions(self, api: Api) -> tuple[int, int]:
        first, last = api.versions
        if not self.flexible and api.flexible_since is not None and api.flexible_since > first:
            last = api.flexible_since - 1
        return (0 if api.name == "Produce" else first), last

    def answer(self, request: Message, version: int) -> Message | None:
        match request:
            case MetadataRequest():
                return self._metadata()
            case InitProducerIdRequest():
                return InitProducerIdResponse(producer_id=1000)
            case FindCoordinatorRequest():
                return self._coordinator(request, version)
            case CreateTopicsRequest():
                names = [topic.name for topic in request.topics]
                return CreateTopicsResponse(topics=[CreatableTopicResult(name=name) for name in names])
            case ProduceRequest():
                return self._produced(request)
            case ListOffsetsRequest():
                return self._offsets(request)
            case FetchRequest():
                return self._fetched(request)
        return None

    def api_versions(self) -> ApiVersionsResponse:
        ranges = {api.key: self.versions(api) for api in APIS.values()}
        keys = [ApiVersion(api_key=key, min_version=a, max_version=b) for key, (a, b) in ranges.items()]
        return ApiVersionsResponse(api_keys=keys)

    def _metadata(self) -> MetadataResponse:
        partition = MetadataResponsePartition(leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1])
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)],
            cluster_id="golden-cluster",
            controller_id=1,
            topics=[MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        )

    def _coordinator(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        if version < 4:
            return FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=self.port)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.port)
                for key in request.coordinator_keys
            ]
        )

    def _produced(self, request: ProduceRequest) -> ProduceResponse | None:
        records = request.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        self.records = bytes(records)
        partition = PartitionProduceResponse(index=0, base_offset=0, log_start_offset=0)
        topic = TopicProduceResponse(name=TOPIC, topic_id=TOPIC_ID, partition_responses=[partition])
        return ProduceResponse(responses=[topic]) if request.acks else None

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        offset = 0 if request.topics[0].partitions[0].timestamp == -2 else 1
        partition = ListOffsetsPartitionResponse(offset=offset, leader_epoch=-1)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[partition])])

    def _fetched(self, request: FetchRequest) -> FetchResponse:
        asked = request.topics[0].partitions[0].fetch_offset if request.topics else 1
        partition = PartitionData(
            high_watermark=1,
            last_stable_offset=1,
            log_start_offset=0,
            records=self.records if asked == 0 else b"",
        )
        topic = FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        return FetchResponse(responses=[topic])


class Connection(socketserver.StreamRequestHandler):
    server: RecordingBroker

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            while len(prefix := self.rfile.read(4)) == 4:
                self._exchange(self.rfile.read(struct.unpack(">i", prefix)[0]))

    def _exchange(self, frame: bytes) -> None:
        header, position = decode_request_header(frame)
        api = APIS[header.api_key]
        version = header.api_version
        first, last = self.server.versions(api)
        if api is API_VERSIONS:
            if version > last:
                response = ApiVersionsResponse(error_code=35, api_keys=self.server.api_versions().api_keys)
                self._send(api, 0, header.correlation_id, response)
                return
            self._send(api, version, header.correlation_id, self.server.api_versions())
        self.server.frames[api, version] = frame
        assert first <= version <= last
        request, end = decode(api.request, version, frame, position)
        assert end == len(frame)
        if api is not API_VERSIONS and (answer := self.server.answer(request, version)) is not None:
            self._send(api, version, header.correlation_id, answer)

    def _send(self, api: Api, version: int, correlation_id: int, message: Message) -> None:
        for chunk in encode_response(api, version, correlation_id, message):
            assert isinstance(chunk, bytes)
            self.wfile.write(chunk)


def run_confluent_kafka(address: str) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    settings = {"bootstrap.servers": address, "client.id": "golden"}
    new_topic = NewTopic("golden-new", 3, 1, config={"retention.ms": "1000"})
    admin = AdminClient(settings)
    for future in admin.create_topics([new_topic]).values():
        future.result(10)
    producer = Producer({**settings, "enable.idempotence": True})
    producer.produce(TOPIC, b"value", b"key", headers={"header": b"h"})
    producer.flush(10)
    consumer = Consumer({**settings, "group.id": "golden-group", "enable.auto.commit": False})
    consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    assert consumer.poll(10) is not None
    consumer.close()


def run_kafka_python(address: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka
        from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=address, client_id="golden")
    admin.create_topics([NewTopic("golden-new", 3, 1, topic_configs={"retention.ms": "1000"})])
    admin.close()
    producer = kafka.KafkaProducer(bootstrap_servers=address, client_id="golden", enable_idempotence=True)
    producer.send(TOPIC, b"value", b"key", headers=[("header", b"h")]).get(10)
    producer.close()
    consumer = kafka.KafkaConsumer(bootstrap_servers=address, client_id="golden", enable_auto_commit=False)
    consumer.assign([kafka.TopicPartition(TOPIC, 0)])
    consumer.seek_to_beginning()
    assert consumer.poll(10_000)
    consumer.close()


def run_aiokafka(address: str) -> None:
    asyncio.run(_run_aiokafka(address))


async def _run_aiokafka(address: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    admin = AIOKafkaAdminClient(bootstrap_servers=address, client_id="golden")
    await admin.start()
    await admin.create_topics([NewTopic("golden-new", 3, 1, topic_configs={"retention.ms": "1000"})])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=address, client_id="golden", enable_idempotence=True)
    await producer.start()
    await producer.send_and_wait(TOPIC, b"value", b"key", headers=[("header", b"h")])
    await producer.stop()
    consumer = AIOKafkaConsumer(bootstrap_servers=address, client_id="golden", enable_auto_commit=False)
    await consumer.start()
    consumer.assign([TopicPartition(TOPIC, 0)])
    await consumer.seek_to_beginning()
    await asyncio.wait_for(consumer.getone(), 10)
    await consumer.stop()


def run_kcat(address: str) -> None:
    def kcat(*arguments: str, text: bytes = b"") -> None:
        command = ["kcat", "-b", address, "-X", "client.id=golden", *arguments]
        subprocess.run(command, input=text, check=True, timeout=CLIENT_SECONDS_MAX, stdout=subprocess.DEVNULL)

    kcat("-L")
    kcat("-P", "-t", TOPIC, "-p", "0", text=b"value\n")
    kcat("-C", "-t", TOPIC, "-p", "0", "-o", "beginning", "-c", "1", "-e")


CLIENTS: dict[str, Callable[[str], None]] = {
    "confluent-kafka": run_confluent_kafka,
    "kafka-python": run_kafka_python,
    "aiokafka": run_aiokafka,
    "kcat": run_kcat,
}


@contextlib.contextmanager
def recording_broker(*, flexible: bool) -> Iterator[RecordingBroker]:
    with RecordingBroker(flexible=flexible) as broker:
        threading.Thread(target=broker.serve_forever, daemon=True).start()
        yield broker
        broker.shutdown()


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for client, run in CLIENTS.items():
        (directory / client).mkdir(parents=True, exist_ok=True)
        for flexible in (False, True):
            with recording_broker(flexible=flexible) as broker:
                run(f"127.0.0.1:{broker.port}")
            for (api, version), frame in broker.frames.items():
                path = directory / client / f"{api.slug}-v{version}.hex"
                path.write_text(frame.hex("\n", 32) + "\n")


if __name__ == "__main__":
    main()
