"""A client that asks for what is not there hears so at once, and need not wait for its own timeout."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaException, Producer


def test_a_transactional_producer_is_told_that_there_are_no_transactions(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "orders"})
    patience_seconds = 20
    began = time.monotonic()
    with pytest.raises(KafkaException) as refusal:
        producer.init_transactions(patience_seconds)
    assert time.monotonic() - began < patience_seconds / 2, "it waited for its own timeout"
    assert refusal.value.args[0].fatal()
    assert "transactions" in str(refusal.value)
