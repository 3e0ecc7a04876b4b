"""The JSON in the znodes is Kafka 3.9's, letter for letter where it is ours to order, and is read back."""

from __future__ import annotations

import json

import pytest

from ottla.controller import znode_formats as formats
from ottla.controller.znode_formats import Assignment, EndPoint, PartitionState, ProducerIdBlock
from ottla.model.topics import TopicId

TOPIC_ID = TopicId(bytes(range(16)))


def test_cluster_id() -> None:
    data = formats.encode_cluster_id("4L6g3nShT-eMCtK--X86sw")
    assert data == b'{"version":"1","id":"4L6g3nShT-eMCtK--X86sw"}'
    assert formats.decode_cluster_id(data) == "4L6g3nShT-eMCtK--X86sw"


def test_controller() -> None:
    data = formats.encode_controller(3, 1_700_000_000_000)
    assert data == b'{"version":2,"brokerid":3,"timestamp":"1700000000000","kraftControllerEpoch":-1}'
    assert formats.decode_controller(data) == 3


def test_broker_registration() -> None:
    endpoints = (
        EndPoint("INSIDE", "10.0.0.1", 9093, "SASL_SSL"),
        EndPoint("OUTSIDE", "kafka.example", 9092, "PLAINTEXT"),
        EndPoint("SIX", "::1", 9094, "SSL"),
    )
    data = formats.encode_broker(endpoints, "rack-a", 5)
    assert json.loads(data) == {
        "version": 5,
        "host": "kafka.example",
        "port": 9092,
        "endpoints": ["INSIDE://10.0.0.1:9093", "OUTSIDE://kafka.example:9092", "SIX://[::1]:9094"],
        "listener_security_protocol_map": {"INSIDE": "SASL_SSL", "OUTSIDE": "PLAINTEXT", "SIX": "SSL"},
        "jmx_port": -1,
        "timestamp": "5",
        "features": {},
        "rack": "rack-a",
    }
    assert formats.decode_broker(data) == (endpoints, "rack-a")


def test_a_broker_without_a_plaintext_listener_gives_old_clients_no_address() -> None:
    value = json.loads(formats.encode_broker([EndPoint("SSL", "h", 1, "SSL")], None, 5))
    assert (value["host"], value["port"]) == (None, -1)
    assert "rack" not in value


def test_a_registration_without_a_protocol_map_is_read_as_older_kafkas_wrote_it() -> None:
    data = b'{"version":3,"endpoints":["PLAINTEXT://h:9092","SSL://h:9093"],"jmx_port":-1,"rack":null}'
    endpoints = (EndPoint("PLAINTEXT", "h", 9092, "PLAINTEXT"), EndPoint("SSL", "h", 9093, "SSL"))
    assert formats.decode_broker(data) == (endpoints, None)


def test_topic_assignment() -> None:
    assignment = Assignment(TOPIC_ID, [(1, 2), (2, 1)], {}, {})
    data = formats.encode_assignment(assignment)
    assert data == (
        b'{"partitions":{"0":[1,2],"1":[2,1]},"topic_id":"AAECAwQFBgcICQoLDA0ODw",'
        b'"adding_replicas":{},"removing_replicas":{},"version":3}'
    )
    assert formats.decode_assignment(data) == assignment


def test_assignments_of_other_versions_are_read() -> None:
    moving = (
        b'{"version":3,"partitions":{"0":[1,2]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[3]}}'
    )
    assert formats.decode_assignment(moving) == Assignment(None, [(1, 2)], {0: (2,)}, {0: (3,)})
    numbered = ",".join(f'"{index}":[{index + 1}]' for index in (10, 2, 1, 0, 3, 4, 5, 6, 7, 8, 9))
    old = f'{{"version":1,"partitions":{{{numbered}}}}}'.encode()
    assert formats.decode_assignment(old).replicas == [(index + 1,) for index in range(11)]
    with pytest.raises(ValueError, match="without a gap"):
        formats.decode_assignment(b'{"version":1,"partitions":{"1":[1]}}')


def test_partition_state() -> None:
    data = formats.encode_state(PartitionState(1, 4, (1, 2), 9))
    assert data == b'{"controller_epoch":9,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    assert formats.decode_state(data) == PartitionState(1, 4, (1, 2), 9)
    assert formats.encode_state(PartitionState(-1, 0, (), 1)).endswith(b'"isr":[]}')


def test_settings_and_their_notices() -> None:
    data = formats.encode_config({"retention.ms": "5", "x": "é"})
    assert data == '{"version":1,"config":{"retention.ms":"5","x":"é"}}'.encode()
    assert formats.decode_config(data) == {"retention.ms": "5", "x": "é"}
    assert formats.decode_config(None) == {}
    notice = formats.encode_config_change("topics/t")
    assert notice == b'{"version":2,"entity_path":"topics/t"}'


def test_producer_id_block() -> None:
    data = formats.encode_producer_id_block(ProducerIdBlock(1, 2000, 2999))
    assert data == b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}'
    assert formats.decode_producer_id_block(data) == ProducerIdBlock(1, 2000, 2999)
    assert formats.decode_producer_id_block(None) is formats.decode_producer_id_block(b"") is None
