"""A broker that stops between the decision to end a transaction and its markers goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from calls import create_topic
from compat.waiting import eventually
from in_process import running_broker
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.server import transaction_service
from ottla.server.services import Services
from ottla.server.transaction_markers import Ending, Results, write_markers
from transaction_calls import NEW_PRODUCE, Producer, committed
from wire import WireClient

PARTITIONS = 3
PATIENCE_S = 30


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("marked", range(PARTITIONS + 1))
def test_an_end_that_was_decided_is_carried_out_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_commit: bool, marked: int
) -> None:
    """`marked` partitions have their marker already; they get it again, which changes nothing."""

    def cut_short(
        services: Services, ending: Ending, places: Iterable[TopicPartition], done: Callable[[Results], None]
    ) -> None:
        write_markers(services, ending, sorted(places)[:marked], lambda results: None)

    with monkeypatch.context() as fault:
        fault.setattr(transaction_service, "write_markers", cut_short)
        with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
            topic = create_topic(client, partitions=PARTITIONS)
            producer = Producer(client)
            client.call(producer.produce_request(topic, *[b"v"] * PARTITIONS), NEW_PRODUCE)
            assert producer.end(is_commit, waits=False).error_code == ErrorCode.NONE
            assert producer.described().transaction_state.startswith("Prepare")
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        producer.client = client
        assert eventually(lambda: producer.described().transaction_state.startswith("Complete"), PATIENCE_S)
        for partition in range(PARTITIONS):
            values, data = committed(client, topic, partition)
            assert values == ([b"v"] if is_commit else [])
            assert data.last_stable_offset == data.high_watermark
        assert producer.send(topic, b"next").error_code == ErrorCode.NONE
        assert producer.end().error_code == ErrorCode.NONE
        assert committed(client, topic)[0][-1] == b"next"
