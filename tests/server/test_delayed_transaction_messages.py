"""KIP-890: a message of an old transaction that arrives during the next one tears and holds up nothing."""

from __future__ import annotations

import pytest

from calls import create_topic
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.messages.end_txn import EndTxnRequest
from transaction_calls import NEW_END, NEW_PRODUCE, OLD_PRODUCE, Producer, committed
from wire import WireClient


@pytest.fixture
def topic(client: WireClient) -> str:
    return create_topic(client, partitions=3)


def is_stable(client: WireClient, topic: str) -> bool:
    """Nothing in the first partition waits for the end of a transaction."""
    _, data = committed(client, topic)
    return data.last_stable_offset == data.high_watermark


def test_a_write_delayed_past_the_next_transaction_is_refused(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    producer.send(topic, b"first")
    late = producer.produce_request(topic, b"late")
    producer.end()
    producer.send(topic, b"second")
    (answer,) = client.call(late, NEW_PRODUCE).responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.end()
    assert committed(client, topic)[0] == [b"first", b"second"]


def test_an_end_delayed_past_the_next_transaction_changes_nothing(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    producer.send(topic, b"first")
    late = EndTxnRequest(producer.name, producer.id, producer.epoch, committed=False)
    repeated = EndTxnRequest(producer.name, producer.id, producer.epoch, committed=True)
    producer.end()
    again = client.call(repeated, NEW_END)
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, producer.epoch)
    producer.send(topic, b"second")
    for request in (late, repeated):
        assert client.call(request, NEW_END).error_code == ErrorCode.PRODUCER_FENCED
    assert producer.end().error_code == ErrorCode.NONE
    assert committed(client, topic)[0] == [b"first", b"second"]


def test_partitions_added_past_the_next_transaction_are_refused(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    producer.send(topic, b"first")
    topics = [AddPartitionsToTxnTopic(topic, [1])]
    late = AddPartitionsToTxnRequest((), producer.name, producer.id, producer.epoch, topics)
    producer.end()
    for begins in (False, True):
        if begins:
            producer.send(topic, b"second")
        (answer,) = client.call(late, 3).results_by_topic_v3_and_below[0].results_by_partition
        assert answer.partition_error_code == ErrorCode.PRODUCER_FENCED
    assert producer.described().topics[0].partitions == (0,)
    producer.end()
    assert committed(client, topic)[0] == [b"first", b"second"]
    assert is_stable(client, topic)


def test_a_write_of_an_old_client_delayed_past_its_end_opens_nothing(client: WireClient, topic: str) -> None:
    """Its epoch is that of the next transaction too: only the coordinator can tell."""
    producer = Producer(client)
    producer.add(topic, 0)
    producer.send(topic, b"first", version=OLD_PRODUCE)
    late = producer.produce_request(topic, b"late")
    producer.end(version=NEW_END - 1)
    (answer,) = client.call(late, OLD_PRODUCE).responses[0].partition_responses
    assert answer.error_code == ErrorCode.TRANSACTION_ABORTABLE
    assert committed(client, topic)[0] == [b"first"]
    assert is_stable(client, topic)


def test_partitions_added_late_by_an_old_client_get_their_end(client: WireClient, topic: str) -> None:
    """They cannot be told from those of the next transaction, so that they are part of it, and empty."""
    producer = Producer(client)
    producer.add(topic, 1)
    producer.send(topic, b"first", 1, version=OLD_PRODUCE)
    producer.end(version=NEW_END - 1)
    assert producer.add(topic, 0) is ErrorCode.NONE
    producer.add(topic, 1)
    producer.send(topic, b"second", 1, version=OLD_PRODUCE)
    assert producer.end(version=NEW_END - 1).error_code == ErrorCode.NONE
    assert committed(client, topic)[0] == []
    assert is_stable(client, topic)
