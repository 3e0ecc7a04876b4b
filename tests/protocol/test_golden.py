"""What real clients sent decodes, says what they meant, and encodes to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.protocol.apis import APIS, Api
from ottla.protocol.codec import Chunk, decode
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_request_header, encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.list_offsets import ListOffsetsRequest
from ottla.protocol.messages.produce import ProduceRequest

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.hex"))
IDS = [f"{path.parent.name}-{path.stem}" for path in FILES]


def frame_of(path: Path) -> bytes:
    return bytes.fromhex(path.read_text())


def api_and_version(path: Path) -> tuple[Api, int]:
    slug, _, version = path.stem.rpartition("-v")
    return next(api for api in APIS.values() if api.slug == slug), int(version)


def message_of(path: Path) -> Message:
    api, version = api_and_version(path)
    frame = frame_of(path)
    _, position = decode_request_header(frame)
    message, end = decode(api.request, version, frame, position)
    assert end == len(frame)
    return message


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk for chunk in chunks if isinstance(chunk, (bytes, memoryview)))


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_a_clients_request_encodes_to_the_bytes_it_sent(path: Path) -> None:
    api, version = api_and_version(path)
    frame = frame_of(path)
    header, position = decode_request_header(memoryview(frame))
    assert (header.api_key, header.api_version) == (api.key, version)
    message, end = decode(api.request, version, memoryview(frame), position)
    assert end == len(frame)
    encoded = joined(encode_request(api, version, header.correlation_id, header.client_id, message))
    assert encoded == len(frame).to_bytes(4, "big") + frame


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "aiokafka", "kcat"])
def test_every_client_is_heard_in_every_way_it_spoke(client: str) -> None:
    spoken = {api_and_version(path)[0].slug for path in FILES if path.parent.name == client}
    assert {"api_versions", "metadata", "produce", "fetch", "list_offsets"} <= spoken
    if client != "kcat":
        assert {"create_topics", "init_producer_id"} <= spoken


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_a_clients_request_says_what_it_was_told_to(path: Path) -> None:
    match message_of(path):
        case ProduceRequest() as produce:
            (topic,) = produce.topic_data
            (partition,) = topic.partition_data
            assert topic.name == "golden" or topic.topic_id.hex().startswith("0f1e2d3c")
            assert partition.index == 0
            assert isinstance(partition.records, memoryview)
            assert b"value" in bytes(partition.records)
        case FetchRequest() as fetch:
            for asked in fetch.topics:
                assert asked.topic == "golden" or asked.topic_id.hex().startswith("0f1e2d3c")
        case ListOffsetsRequest() as offsets:
            assert [topic.name for topic in offsets.topics] == ["golden"]
            assert offsets.replica_id == -1
        case CreateTopicsRequest() as create:
            (new,) = create.topics
            assert (new.name, new.num_partitions, new.replication_factor) == ("golden-new", 3, 1)
            assert [(config.name, config.value) for config in new.configs] == [("retention.ms", "1000")]
        case ApiVersionsRequest() as versions if api_and_version(path)[1] >= 3:
            assert versions.client_software_name
            assert versions.client_software_version
