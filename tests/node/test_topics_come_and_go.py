"""Topics deleted under load and made anew under the same name: the broker lives, and lives do not mix."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import (
    append,
    at,
    batch_of,
    create_topic,
    delete_topic,
    describe_topic,
    end_offset,
    fetch_request,
    produce_request,
    topic_id_of,
    unique_name,
    values_from,
)
from in_process import running_broker
from ottla.controller.znode_formats import Assignment, encode_assignment, topic_path
from ottla.coordination.operations import SetData
from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.testing import BrokerProcess
from wire import WireClient

PARTITIONS = 40
ROUNDS = 15


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as process:
        yield process
        assert process.running, process.output()
        assert "Traceback" not in process.output(), process.output()


class Load:
    """Readers and writers that go on whatever happens to the topic, until they are told to stop."""

    def __init__(self, address: str, name: str) -> None:
        self.address = address
        self.name = name
        self.topic_id: TopicId = NO_TOPIC_ID  # of the life that writers mark their records with
        self.acknowledged = 0
        self.problems: list[BaseException] = []
        self._stop = threading.Event()
        targets = (self._write, self._write, self._write_blindly, self._read)
        self._threads = [threading.Thread(target=self._guard, args=(target,)) for target in targets]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        assert not self.problems, self.problems

    def _guard(self, target: object) -> None:
        try:
            target()  # type: ignore[operator]
        except BaseException as error:
            self.problems.append(error)

    def _write(self) -> None:
        """With acks=all, to a certain life of the topic."""
        allowed = {
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        with WireClient(self.address) as client:
            while not self._stop.is_set():
                topic_id = self.topic_id
                batches = [batch_of(topic_id)] * PARTITIONS
                response = client.call(produce_request(topic_id, *batches), 13)
                for answer in response.responses[0].partition_responses:
                    assert answer.error_code in allowed, answer
                    self.acknowledged += answer.error_code == ErrorCode.NONE

    def _write_blindly(self) -> None:
        """With acks=0, which is told by a closed connection that the topic is gone."""
        while not self._stop.is_set():
            topic_id = self.topic_id
            with WireClient(self.address) as client:
                try:
                    for partition in range(PARTITIONS):
                        request = produce_request(topic_id, batch_of(topic_id), partition=partition, acks=0)
                        client.send_unanswered(request, 13)
                except ConnectionError:
                    continue

    def _read(self) -> None:
        with WireClient(self.address) as client:
            while not self._stop.is_set():
                partitions = [at(0, partition) for partition in range(PARTITIONS)]
                client.call(fetch_request(self.name, *partitions, max_wait_ms=50, min_bytes=10**6), 12)


def test_a_topic_with_many_partitions_is_deleted_and_made_anew_under_load(broker: BrokerProcess) -> None:
    name = unique_name("phoenix")
    with WireClient(broker.bootstrap) as client, Load(broker.bootstrap, name) as load:
        for _ in range(ROUNDS):
            create_topic(client, name, partitions=PARTITIONS)
            load.topic_id = topic_id_of(client, name)
            before = load.acknowledged
            while load.acknowledged < before + PARTITIONS:
                assert not load.problems
                time.sleep(0.005)
            delete_topic(client, name)
            assert describe_topic(client, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create_topic(client, name, partitions=PARTITIONS)
        load.topic_id = topic_id = topic_id_of(client, name)
        before = load.acknowledged
        while load.acknowledged < before + 2 * PARTITIONS:
            assert not load.problems
            time.sleep(0.005)
    with WireClient(broker.bootstrap) as client:
        for partition in range(PARTITIONS):
            assert set(values_from(client, name, partition=partition)) == {bytes(topic_id)}


def test_deletion_and_creation_in_one_piece(broker: BrokerProcess) -> None:
    """Both requests are there at once; the second one sees what the first has done, or is refused."""
    name = unique_name("twin")
    lives = set()
    with WireClient(broker.bootstrap) as client, WireClient(broker.bootstrap) as writer:
        create_topic(client, name, partitions=PARTITIONS)
        for _ in range(ROUNDS):
            writer.send(produce_request(name, *[batch_of(b"v")] * PARTITIONS), 12)
            client.send_together(
                (DeleteTopicsRequest(topics=[DeleteTopicState(name)]), 6),
                (CreateTopicsRequest([CreatableTopic(name, PARTITIONS, 1)]), 7),
            )
            assert client.receive().responses[0].error_code == ErrorCode.NONE
            (created,) = client.receive().topics
            if created.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                create_topic(client, name, partitions=PARTITIONS)
            writer.receive()
            lives.add(topic_id_of(client, name))
            append(client, name, b"w", partition=PARTITIONS - 1)
    assert len(lives) == ROUNDS


def test_a_topic_made_anew_begins_at_offset_0(broker: BrokerProcess) -> None:
    name = unique_name("anew")
    with WireClient(broker.bootstrap) as client:
        for _ in range(10):
            create_topic(client, name)
            assert end_offset(client, name) == 0
            for number in range(3):
                assert append(client, name, b"v") == number
            delete_topic(client, name)


def test_deleted_topics_do_not_come_back_after_a_restart(broker: BrokerProcess) -> None:
    name = unique_name("gone")
    with WireClient(broker.bootstrap) as client:
        create_topic(client, name, partitions=PARTITIONS)
        append(client, name, b"old")
        delete_topic(client, name)
        create_topic(client, name, partitions=1)
        append(client, name, b"new")
    for end in (broker.kill, broker.stop):
        end()
        broker.start()
        with WireClient(broker.bootstrap) as client:
            assert len(describe_topic(client, name).partitions) == 1
            assert values_from(client, name) == [b"new"]


def test_a_topic_of_an_old_kafka_that_has_no_id_keeps_its_records(tmp_path: Path) -> None:
    """Neither in its znode nor beside its log, as Kafka wrote them before 2.8."""
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        name = create_topic(client)
        append(client, name, b"v")
        written = threading.Event()
        without_id = SetData(topic_path(name), encode_assignment(Assignment(None, [(1,)], {}, {})))
        coordination = running.broker._coordination
        running.on_owner(lambda: coordination.submit(without_id, lambda _: written.set()))
        assert written.wait(30)
    (tmp_path / "log" / f"{name}-0" / "partition.metadata").unlink()
    for _ in range(3):
        with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
            assert values_from(client, name) == [b"v"]


def test_nobody_waits_for_the_next_timer(tmp_path: Path) -> None:
    """A broker at rest wakes for what it has to do, here without any timer that would wake it, too."""
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        timers = running.broker._reactor.timers
        for _ in range(5):
            running.on_owner(lambda: [timers.cancel(each) for each in list(timers._heap)])
            name = create_topic(client)
            append(client, name, b"a record")
            delete_topic(client, name)
