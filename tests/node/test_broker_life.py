"""A broker's life as its users see it: starting, stopping, being killed, and coming back."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
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
    fetch,
    fetch_request,
    list_offset,
    new_producer,
    produce,
    produce_request,
    told,
    topic_id_of,
    values_from,
)
from in_process import running_broker
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing import BrokerDied, BrokerProcess
from wire import PeerClosed, WireClient

CLEAN_MARKER = ".kafka_cleanshutdown"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as process:
        yield process
        if process.running:
            assert "Traceback" not in process.output(), process.output()


def leader_epoch(client: WireClient, topic: str) -> int:
    (partition,) = describe_topic(client, topic).partitions
    return partition.leader_epoch


# -- starting ------------------------------------------------------------------------------------------------


def test_port_0_takes_a_free_port_and_tells_clients_the_real_one(tmp_path: Path) -> None:
    with running_broker(tmp_path / "one") as one, running_broker(tmp_path / "other") as other:
        assert one.bootstrap != other.bootstrap
        for each in (one, other):
            with WireClient(each.bootstrap) as client:
                (node,) = client.call(MetadataRequest([]), 12).brokers
                assert f"{node.host}:{node.port}" == each.bootstrap


def test_a_second_broker_on_the_same_data_is_refused_and_harms_nothing(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"before")
        command = [sys.executable, "-m", "ottla", "up", "--data", str(broker.data_dir)]
        second = subprocess.run(
            [*command, "--set", "listeners=PLAINTEXT://127.0.0.1:0"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert second.returncode == 1
        cause, _ = second.stderr.splitlines()
        assert f"the broker with pid {broker.pid} runs already" in cause
        assert str(broker.data_dir) in cause
        append(client, topic, b"after")
        made_later = create_topic(client)
    assert broker.stop() == 0
    broker.start()
    with WireClient(broker.bootstrap) as client:
        assert values_from(client, topic) == [b"before", b"after"]
        assert describe_topic(client, made_later).error_code == ErrorCode.NONE
        assert leader_epoch(client, topic) == 0


def run_to_its_end(data: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", "up", "--data", str(data)]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_a_port_that_is_taken_is_told_with_who_has_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run_to_its_end(tmp_path / "data", f"listeners=PLAINTEXT://127.0.0.1:{port}")
    assert ended.returncode == 1
    cause, cure = ended.stderr.splitlines()
    assert f"port {port} is taken by" in cause
    assert f"(pid {os.getpid()})" in cause
    assert "--port" in cure


def test_a_taken_port_does_not_cost_the_clean_stop(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
    broker.stop()
    with socket.socket() as taken:
        host, _, port = broker.bootstrap.rpartition(":")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))
        taken.listen()
        with pytest.raises(BrokerDied):
            broker.start()
    broker.start()
    with WireClient(broker.bootstrap) as client:
        assert leader_epoch(client, topic) == 0


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("no.such.setting=1", "no.such.setting"),
        ("num.partitions=many", "num.partitions"),
        ("num.partitions=0", "num.partitions"),
        ("listeners=PLAINTEXT//127.0.0.1", "listeners"),
        ("listeners=SASL_SSL://127.0.0.1:0", "SASL_SSL"),
        ("control.plane.listener.name=CONTROL", "CONTROL"),
    ],
)
def test_a_bad_setting_is_told_with_its_name(tmp_path: Path, setting: str, named: str) -> None:
    ended = run_to_its_end(tmp_path / "data", setting)
    assert ended.returncode == 2
    cause, _ = ended.stderr.splitlines()
    assert cause.startswith("ottla: ")
    assert named in cause
    assert not (tmp_path / "data" / "log").exists()


def test_data_of_another_broker_is_refused(broker: BrokerProcess) -> None:
    broker.stop()
    ended = run_to_its_end(broker.data_dir, "node.id=7", "listeners=PLAINTEXT://127.0.0.1:0")
    assert ended.returncode == 1
    assert "node.id" in ended.stderr
    broker.start()


# -- stopping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_answers_what_waits_and_leaves_the_marker(
    broker: BrokerProcess, number: signal.Signals
) -> None:
    marker = broker.data_dir / "log" / CLEAN_MARKER
    with WireClient(broker.bootstrap) as client, WireClient(broker.bootstrap) as reader:
        topic = create_topic(client)
        append(client, topic, b"v")
        reader.send(fetch_request(topic, at(1), max_wait_ms=600_000), 12)
        reader.send(fetch_request(topic, at(0)), 12)  # behind one that waits: not taken yet
        assert reader.is_silent(0.05)
        assert not marker.exists()
        os.kill(broker.pid, number)
        (data,) = told(reader.receive().responses)
        assert data.error_code == ErrorCode.NONE
        assert not data.records
        assert reader.is_closed_by_peer()
    assert broker.stop() == 0
    assert marker.exists()
    assert not (broker.data_dir / "coordination" / "broker.json").exists()
    broker.start()
    with WireClient(broker.bootstrap) as client:
        assert leader_epoch(client, topic) == 0
        assert append(client, topic, b"w") == 1


def test_a_stop_under_load_answers_every_write_it_took(broker: BrokerProcess) -> None:
    acknowledged: list[int] = []
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        for number in range(200):
            client.send(produce_request(topic, batch_of(b"%d" % number)), 12)
        os.kill(broker.pid, signal.SIGTERM)
        while True:
            try:
                (answer,) = client.receive().responses[0].partition_responses
            except (PeerClosed, IndexError):
                break
            assert answer.error_code == ErrorCode.NONE
            acknowledged.append(answer.base_offset)
    assert broker.stop() == 0
    broker.start()
    assert acknowledged == list(range(len(acknowledged)))
    with WireClient(broker.bootstrap) as client:
        assert end_offset(client, topic) == len(acknowledged)


def test_a_broker_can_be_stopped_and_started_many_times(tmp_path: Path) -> None:
    for number in range(8):
        with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
            if number == 0:
                topic = create_topic(client, partitions=3)
            assert append(client, topic, b"%d" % number, partition=2) == number
            assert leader_epoch_of(client, topic) == [0, 0, 0]


def leader_epoch_of(client: WireClient, topic: str) -> list[int]:
    return [partition.leader_epoch for partition in describe_topic(client, topic).partitions]


# -- being killed --------------------------------------------------------------------------------------------


class Writer(threading.Thread):
    """Writes with acks=all, several requests in flight, until the broker is gone."""

    def __init__(self, address: str, topic: str, partition: int, prefix: bytes) -> None:
        super().__init__()
        self.address, self.topic, self.partition, self.prefix = address, topic, partition, prefix
        self.acknowledged: dict[int, bytes] = {}  # value by offset
        self.start()

    def run(self) -> None:
        sent = answered = 0
        with WireClient(self.address) as client:
            try:
                while True:
                    while sent - answered < 5:
                        batch = batch_of(self.value(sent))
                        client.send(produce_request(self.topic, batch, partition=self.partition), 12)
                        sent += 1
                    (answer,) = client.receive().responses[0].partition_responses
                    assert answer.error_code == ErrorCode.NONE
                    self.acknowledged[answer.base_offset] = self.value(answered)
                    answered += 1
            except (PeerClosed, OSError):
                return

    def value(self, number: int) -> bytes:
        return b"%s-%d" % (self.prefix, number)


def test_nothing_acknowledged_is_lost_when_the_broker_is_killed(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client, partitions=2, configs={"segment.bytes": str(1024 * 1024)})
    written: list[dict[int, bytes]] = [{}, {}]
    for round_number in range(3):
        writers = [
            Writer(broker.bootstrap, topic, partition, b"%d-%d" % (round_number, partition))
            for partition in (0, 1)
        ]
        while any(len(writer.acknowledged) < 100 for writer in writers):
            assert all(writer.is_alive() for writer in writers), broker.output()
            time.sleep(0.005)
        broker.kill()
        for writer in writers:
            writer.join()
            assert not written[writer.partition].keys() & writer.acknowledged.keys()
            written[writer.partition] |= writer.acknowledged
        broker.start()
        with WireClient(broker.bootstrap) as client:
            assert leader_epoch_of(client, topic) == [round_number + 1] * 2
            for partition in (0, 1):
                values = values_from(client, topic, partition=partition)
                for offset, value in written[partition].items():
                    assert values[offset] == value


def test_the_epoch_before_a_crash_is_fenced_and_the_newer_one_unknown(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"a", b"b")
    broker.kill()
    broker.start()
    with WireClient(broker.bootstrap) as client:
        append(client, topic, b"c")
        for epoch, code in ((0, "FENCED_LEADER_EPOCH"), (1, "NONE"), (2, "UNKNOWN_LEADER_EPOCH")):
            for version in (9, 12):
                (data,) = fetch(client, topic, at(0, current_leader_epoch=epoch), version=version)
                assert data.error_code == ErrorCode[code]
            for version in (13, 16, 18):
                asked = at(0, current_leader_epoch=epoch)
                (data,) = fetch(client, topic_id_of(client, topic), asked, version=version)
                assert data.error_code == ErrorCode[code]
            for version in (4, 11):
                assert (
                    list_offset(client, topic, -1, epoch=epoch, version=version).error_code == ErrorCode[code]
                )
        # Whoever read up to the end of epoch 0 goes on; whoever has more of it must cut that off.
        (data,) = fetch(client, topic, at(2, last_fetched_epoch=0))
        assert (data.error_code, data.diverging_epoch.epoch) == (ErrorCode.NONE, -1)
        (data,) = fetch(client, topic, at(3, last_fetched_epoch=0))
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)


def test_a_fenced_reader_is_told_the_leader_from_version_16_on(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"a")
    broker.kill()
    broker.start()
    with WireClient(broker.bootstrap) as client:
        for version in (13, 15, 16, 18):
            request = fetch_request(topic_id_of(client, topic), at(0, current_leader_epoch=0))
            response = client.call(request, version)
            (data,) = told(response.responses)
            assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
            leader = (data.current_leader.leader_id, data.current_leader.leader_epoch)
            endpoints = [f"{node.host}:{node.port}" for node in response.node_endpoints]
            if version >= 16:
                assert (leader, endpoints) == ((1, 1), [broker.bootstrap])
            else:
                assert (leader, endpoints) == ((-1, -1), [])


def test_a_kill_during_topic_changes_leaves_whole_topics(broker: BrokerProcess) -> None:
    kept: set[str] = set()
    for _ in range(3):
        with WireClient(broker.bootstrap) as client:
            for number in range(5):
                topic = create_topic(client, partitions=4)
                append(client, topic, b"v", partition=3)
                if number % 2:
                    delete_topic(client, topic)
                else:
                    kept.add(topic)
        broker.kill()
        broker.start()
        with WireClient(broker.bootstrap) as client:
            topics = client.call(MetadataRequest(None), 12).topics
            assert {topic.name for topic in topics} == kept
            for topic in kept:
                assert [end_offset(client, topic, partition) for partition in range(4)] == [0, 0, 0, 1]


def test_producer_ids_are_never_given_twice(broker: BrokerProcess) -> None:
    seen: set[int] = set()
    for end in (broker.kill, broker.stop, broker.kill):
        with WireClient(broker.bootstrap) as client:
            for _ in range(20):
                producer_id, epoch = new_producer(client)
                assert producer_id not in seen
                assert epoch == 0
                seen.add(producer_id)
        end()
        broker.start()


def test_broken_records_behind_a_good_checksum_do_not_stop_a_start(broker: BrokerProcess) -> None:
    from ottla.records.batch import header_bytes, read_header

    batch = batch_of(b"v", codec=4)
    broken = header_bytes(read_header(batch), b"\xff" * 50) + b"\xff" * 50
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        assert produce(client, topic, broken).base_offset == 0
        append(client, topic, b"after")
    for end in (broker.kill, broker.stop):
        end()
        broker.start()
        with WireClient(broker.bootstrap) as client:
            (data,) = fetch(client, topic, at(0))
            assert bytes(data.records)[16 : len(broken)] == broken[16:]
            assert values_from(client, topic, offset=1) == [b"after"]


def test_the_log_says_nothing_of_a_clean_start_but_that_it_is_up(broker: BrokerProcess) -> None:
    broker.stop()
    broker.start()
    assert not re.search(r"WARNING|ERROR|CRITICAL", broker.output())
