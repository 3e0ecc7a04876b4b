"""What a version cannot carry, what is left out, which chunks an encoded message has, and how we err."""

from __future__ import annotations

import random

import pytest

from ottla.protocol.codec import decode, encode, encode_bytes, reader, writer
from ottla.protocol.fields import Message, Records
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.random_messages import declared_messages, random_message


class Range:
    """Stands for a range of a file: only its size is known here."""

    def __init__(self, size: int) -> None:
        self.size = size


class LastIsRecords(Message, versions=(0, 0)):
    records: Records = None


def fetch_response(*records: object) -> FetchResponse:
    partitions = [PartitionData(partition_index=n, records=data) for n, data in enumerate(records)]  # type: ignore[arg-type]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def test_an_ignorable_field_is_dropped_by_versions_without_it() -> None:
    message = ApiVersionsRequest(client_software_name="x", client_software_version="y")
    assert encode_bytes(message, 2) == b""


def test_any_other_field_must_have_its_default_in_versions_without_it() -> None:
    message = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    with pytest.raises(ValueError, match="MetadataRequest v3, allow_auto_topic_creation: version 3"):
        encode(message, 3)
    assert encode_bytes(message, 4) == bytes(5)
    assert encode_bytes(MetadataRequest(topics=[], allow_auto_topic_creation=True), 3) == bytes(4)


def test_an_array_or_struct_that_a_version_lacks_must_be_empty_or_default() -> None:
    topics = [DeleteTopicState(name="t")]
    with pytest.raises(ValueError, match="DeleteTopicsRequest v5, topics"):
        encode(DeleteTopicsRequest(topics=topics), 5)
    encode(DeleteTopicsRequest(topics=[]), 5)
    with pytest.raises(ValueError, match="FetchRequest v14, replica_state"):
        encode(FetchRequest(replica_state=ReplicaState(replica_id=1)), 14)
    encode(FetchRequest(replica_state=ReplicaState()), 14)


def test_a_field_within_an_array_is_named_with_its_path() -> None:
    partition = FetchPartition(last_fetched_epoch=3)
    with pytest.raises(ValueError, match=r"FetchRequest v11, topics\.partitions\.last_fetched_epoch"):
        encode(FetchRequest(topics=[FetchTopic(partitions=[partition])]), 11)


@pytest.mark.parametrize(
    ("message", "version", "field"),
    [
        (FetchRequest(max_wait_ms=2**31), 4, "replica_id to topics"),
        (FetchRequest(rack_id=None), 12, "rack_id"),  # type: ignore[arg-type]
        (MetadataRequest(topics=None), 0, "topics"),
        (MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32_768)]), 1, r"topics\.name"),
        (MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32_768)]), 9, r"topics\.name"),
        (MetadataRequest(topics=[MetadataRequestTopic(name="\ud800")]), 9, r"topics\.name"),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"short")]), 12, r"topics\.topic_id"),  # type: ignore[arg-type]
        (ApiVersionsRequest(client_software_name=5), 3, "client_software_name"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_encoded_is_a_value_error_that_names_the_field(
    message: Message, version: int, field: str
) -> None:
    with pytest.raises(ValueError, match=f"{type(message).__name__} v{version}, ({field})"):
        encode(message, version)


def test_strings_of_the_greatest_length_pass() -> None:
    for version in (1, 9):
        message = MetadataRequest(topics=(MetadataRequestTopic(name="x" * 32_767),))
        assert decode(MetadataRequest, version, encode_bytes(message, version))[0] == message


def test_versions_outside_of_the_declared_ones_are_our_own_error() -> None:
    for version in (-1, 3, 19):
        with pytest.raises(ValueError, match="FetchRequest has versions 4 to 18"):
            reader(FetchRequest, version)
        with pytest.raises(ValueError, match="FetchRequest has versions 4 to 18"):
            writer(FetchRequest, version)
    with pytest.raises(ValueError, match="part of a message"):
        reader(FetchTopic, 4)


def test_readers_and_writers_are_compiled_once() -> None:
    assert reader(FetchRequest, 4) is reader(FetchRequest, 4)
    assert writer(FetchRequest, 4) is writer(FetchRequest, 4)


def test_records_are_read_as_views_of_the_frame() -> None:
    partition = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(topic_data=(TopicProduceData(name="t", partition_data=(partition,)),))
    frame = bytearray(encode_bytes(request, 9))
    decoded, _ = decode(ProduceRequest, 9, memoryview(frame))
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == b"batch"
    frame[frame.index(b"batch")] = ord("B")
    assert records == b"Batch"


def test_large_and_distant_records_are_chunks_of_their_own() -> None:
    large = bytes(100_000)
    distant = Range(50_000)
    chunks = encode(fetch_response(b"small", large, None, distant, memoryview(b"also small")), 12)
    assert [chunk is large or chunk is distant for chunk in chunks] == [False, True, False, True, False]
    assert all(isinstance(chunk, bytes) for chunk in chunks[::2])


def test_a_distant_range_has_the_length_of_its_size() -> None:
    for version in (4, 12, 18):
        there = encode_bytes(fetch_response(bytes(5_000), b"x"), version)
        chunks = encode(fetch_response(Range(5_000), b"x"), version)
        joined = b"".join(chunk if isinstance(chunk, bytes) else bytes(chunk.size) for chunk in chunks)  # type: ignore[union-attr]
        assert joined == there


def test_a_message_that_ends_with_records_has_no_empty_chunk() -> None:
    records = Range(10)
    assert encode(LastIsRecords(records=records), 0) == [b"\0\0\0\x0a", records]


def test_lists_are_as_good_as_tuples_and_reading_gives_tuples() -> None:
    listed = FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=1)])])
    decoded, _ = decode(FetchRequest, 4, encode_bytes(listed, 4))
    assert isinstance(decoded.topics, tuple)
    assert isinstance(decoded.topics[0].partitions, tuple)
    assert encode_bytes(decoded, 4) == encode_bytes(listed, 4)


def test_tagged_fields_travel_only_when_they_differ() -> None:
    def encoded(partition: PartitionData) -> bytes:
        topic = FetchableTopicResponse(topic="t", partitions=[partition])
        return encode_bytes(FetchResponse(responses=[topic]), 12)

    plain = encoded(PartitionData())
    assert encoded(PartitionData(diverging_epoch=EpochEndOffset())) == plain
    differing = encoded(PartitionData(diverging_epoch=EpochEndOffset(epoch=1)))
    assert len(differing) == len(plain) + 2 + 13  # tag and length; epoch, end offset, no tags


def test_messages_show_what_differs_from_the_defaults() -> None:
    assert repr(FetchPartition(partition=3, fetch_offset=9)) == "FetchPartition(partition=3, fetch_offset=9)"
    assert FetchPartition(partition=3) != FetchPartition(partition=4)
    assert FetchPartition() != EpochEndOffset()


def test_a_message_takes_only_declared_fields() -> None:
    with pytest.raises(TypeError):
        FetchPartition(partitions=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        FetchPartition().other = 3  # type: ignore[attr-defined]


def test_encoding_is_the_same_every_time() -> None:
    for message_type, version in declared_messages():
        message = random_message(random.Random(version), message_type, version)
        assert encode(message, version) == encode(message, version)
