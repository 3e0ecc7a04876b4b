"""Compaction in a running broker, by the cleaner's real process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calls import (
    NOW_MS,
    at,
    batch_of,
    batches_in,
    commit_request,
    create_topic,
    delete_topic,
    end_offset,
    fetch,
    produce,
)
from group_calls import commit_code, committed, fetch_request, find_coordinator
from in_process import InProcessBroker, running_broker
from ottla.log.partition_log import PartitionLog
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.messages import incremental_alter_configs
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.records.batch import header_bytes, read_header
from ottla.records.formats import records_of
from ottla.testing import BrokerProcess
from wire import WireClient

COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}
QUICK = {"log.cleaner.backoff.ms": "20"}
SLOW_DISK = {**QUICK, "log.cleaner.io.max.bytes.per.second": "100"}  # a pass is under way until it is ended
WAIT_SECONDS = 60


@pytest.fixture
def running(tmp_path: Path) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path, QUICK) as running:
        yield running


@pytest.fixture
def client(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap) as client:
        yield client


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def write(client: WireClient, topic: str, key: bytes, *values: bytes) -> None:
    for value in values:
        assert produce(client, topic, batch_of(value, key=key)).error_code == ErrorCode.NONE


def write_dirt(client: WireClient, topic: str, keys: int = 3, rounds: int = 30) -> None:
    """Several segments of keys that are written again and again."""
    for number in range(rounds):
        for key in range(keys):
            write(client, topic, b"key%d" % key, b"%d" % number)


def records(client: WireClient, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    found: list[tuple[int, bytes | None, bytes | None]] = []
    offset, end = 0, end_offset(client, topic)
    while offset < end:
        (data,) = fetch(client, topic, at(offset))
        assert data.error_code == ErrorCode.NONE, data
        for batch in batches_in(data):
            found += [(record.offset, record.key, record.value) for record in records_of(batch)]
            offset = read_header(batch).next_offset
    return found


def latest(found: list[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in found}


def is_cleaned(running: InProcessBroker, topic: str) -> bool:
    """Whether everything but the active segment was."""

    def cleaned() -> bool:
        own = log_of(running, topic)
        (directory,) = running.broker._directories
        done = directory.checkpoints.cleaned_offsets.get(own.topic_partition, 0)
        return done == own.segments[-1].base_offset > 0

    return running.on_owner(cleaned)


def log_of(running: InProcessBroker, topic: str) -> PartitionLog:
    (found,) = (each.log for each in running.broker.partitions if each.topic == topic)
    return found


def change_topic(client: WireClient, topic: str, **settings: str) -> None:
    change(client, 2, topic, {name.replace("_", "."): value for name, value in settings.items()})


def change(client: WireClient, kind: int, name: str, settings: dict[str, str]) -> None:
    alterations = [
        incremental_alter_configs.AlterableConfig(setting, 0, value) for setting, value in settings.items()
    ]
    resource = incremental_alter_configs.AlterConfigsResource(kind, name, alterations)
    (result,) = client.call(IncrementalAlterConfigsRequest([resource]), 1).responses
    assert result.error_code == ErrorCode.NONE, result


def problems(running: InProcessBroker) -> dict[str, str]:
    return dict(running.on_owner(running.broker.health.problems))


def cleaner_pids(parent: int) -> list[int]:
    """Processes of cleaners that `parent` has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"cleaner_child" in command and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_dirty_log_is_cleaned_and_serves_the_last_values(
    running: InProcessBroker, client: WireClient, tmp_path: Path
) -> None:
    topic = create_topic(client, configs=COMPACTED)
    write_dirt(client, topic)
    before = latest(records(client, topic))
    end = end_offset(client, topic)
    wait_until(lambda: is_cleaned(running, topic))
    after = records(client, topic)
    assert latest(after) == before == {b"key%d" % key: b"29" for key in range(3)}
    assert len(after) < end / 2
    assert end_offset(client, topic) == end
    assert (tmp_path / "log" / "cleaner-offset-checkpoint").read_text().startswith(f"0\n1\n{topic} 0 ")
    assert running.metric("log.cleaner.passes") >= 1
    assert problems(running) == {}
    write(client, topic, b"key0", b"more")
    assert latest(records(client, topic))[b"key0"] == b"more"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
def test_the_process_is_there_only_while_there_is_something_to_clean(
    running: InProcessBroker, client: WireClient
) -> None:
    topic = create_topic(client, configs=COMPACTED)
    write_dirt(client, topic)
    wait_until(lambda: is_cleaned(running, topic))
    wait_until(lambda: not cleaner_pids(os.getpid()))


def test_committed_offsets_outlive_the_compaction_of_their_topic(tmp_path: Path) -> None:
    settings = QUICK | {"offsets.topic.num.partitions": "1"}
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        find_coordinator(client, "readers")
        for offset in range(50):
            assert commit_code(client.call(commit_request("readers", topic, offset), 9)) == ErrorCode.NONE
        running.on_owner(lambda: log_of(running, "__consumer_offsets").roll(NOW_MS))
        assert commit_code(client.call(commit_request("others", topic, 7), 9)) == ErrorCode.NONE
        wait_until(lambda: is_cleaned(running, "__consumer_offsets"))
        assert len(records(client, "__consumer_offsets")) == 2
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        wait_until(lambda: client.call(fetch_request("readers", topic, 0, 9), 9).groups[0].error_code == 0)
        assert committed(client, "readers", topic) == 49
        assert committed(client, "others", topic) == 7


def test_a_topic_can_become_compacted_while_it_is_used(running: InProcessBroker, client: WireClient) -> None:
    topic = create_topic(client, configs=COMPACTED | {"cleanup.policy": "delete"})
    write_dirt(client, topic)
    assert len(records(client, topic)) == 90
    change_topic(client, topic, cleanup_policy="compact,delete")
    wait_until(lambda: is_cleaned(running, topic))
    assert latest(records(client, topic)) == {b"key%d" % key: b"29" for key in range(3)}


def test_a_log_that_cannot_be_cleaned_is_named_once_and_the_others_go_on(
    running: InProcessBroker, client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = (create_topic(client, configs=COMPACTED) for _ in range(2))
    change_topic(client, broken, cleanup_policy="delete")  # so that nobody looks into the batch
    good = batch_of(b"value")
    body = b"\x7f" * 40  # with a right checksum, but no records
    assert produce(client, broken, header_bytes(read_header(good), body) + body).error_code == ErrorCode.NONE
    write_dirt(client, broken)
    change_topic(client, broken, cleanup_policy="compact")
    wait_until(lambda: "cleaner" in problems(running))
    write_dirt(client, sound)
    wait_until(lambda: is_cleaned(running, sound))
    text = problems(running)["cleaner"]
    assert f"{broken}-0: " in text
    assert "batch at 0" in text
    assert running.metric("log.cleaner.uncleanable_partitions") == 1
    assert sum("is not cleaned any more" in message for message in caplog.messages) == 1
    assert latest(records_after(client, broken, 1)) == {b"key%d" % key: b"29" for key in range(3)}
    delete_topic(client, broken)
    wait_until(lambda: running.metric("log.cleaner.uncleanable_partitions") == 0)
    assert problems(running) == {}


def records_after(
    client: WireClient, topic: str, offset: int
) -> list[tuple[int, bytes | None, bytes | None]]:
    (data,) = fetch(client, topic, at(offset, bytes_max=2**24))
    found = []
    while offset < end_offset(client, topic):
        (data,) = fetch(client, topic, at(offset))
        for batch in batches_in(data):
            found += [(record.offset, record.key, record.value) for record in records_of(batch)]
            offset = read_header(batch).next_offset
    return found


def test_damage_that_the_cleaner_finds_takes_the_partition_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        running_broker(tmp_path, {"log.cleaner.enable": "false"}) as running,
        WireClient(running.bootstrap) as client,
    ):
        topic = create_topic(client, configs=COMPACTED)
        write_dirt(client, topic)
    path = tmp_path / "log" / f"{topic}-0" / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with running_broker(tmp_path, QUICK) as running, WireClient(running.bootstrap) as client:
        other = create_topic(client, configs=COMPACTED)
        wait_until(lambda: "partitions" in problems(running))
        assert "the checksum of the batch is wrong" in problems(running)["partitions"]
        write_dirt(client, other)
        wait_until(lambda: is_cleaned(running, other))


def test_a_topic_deleted_in_the_middle_of_a_pass_can_be_made_again(tmp_path: Path) -> None:
    with running_broker(tmp_path, SLOW_DISK) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, configs=COMPACTED)
        write_dirt(client, topic)
        wait_until(lambda: running.metric("log.cleaner.running") == 1)
        delete_topic(client, topic)
        wait_until(lambda: running.metric("log.cleaner.running") == 0)
        create_topic(client, topic, configs=COMPACTED | {"cleanup.policy": "delete"})
        write_dirt(client, topic, rounds=3)
        assert len(records(client, topic)) == 9
        assert problems(running) == {}


def test_a_pass_is_given_up_when_the_topic_is_not_compacted_any_more(tmp_path: Path) -> None:
    settings = QUICK | {"log.cleaner.io.max.bytes.per.second": "5000"}  # a pass takes seconds
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, configs=COMPACTED | {"cleanup.policy": "delete"})
        write_dirt(client, topic)  # first, or a pass over a part of it might have ended by now
        change_topic(client, topic, cleanup_policy="compact")
        wait_until(lambda: running.metric("log.cleaner.running") == 1)
        change_topic(client, topic, cleanup_policy="delete")
        wait_until(lambda: running.metric("log.cleaner.running") == 0)
        assert (
            TopicPartition(topic, 0)
            not in next(iter(running.broker._directories)).checkpoints.cleaned_offsets
        )
        assert latest(records(client, topic)) == {b"key%d" % key: b"29" for key in range(3)}


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
class TestDeaths:
    def test_a_cleaner_that_is_killed_shows_until_another_has_done_its_work(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with running_broker(tmp_path, SLOW_DISK) as running, WireClient(running.bootstrap) as client:
            topic = create_topic(client, configs=COMPACTED)
            write_dirt(client, topic)
            self.kill_cleaner(running)
            wait_until(lambda: "cleaner" in problems(running))
            assert "will be tried again: the cleaner's process ended with -9" in problems(running)["cleaner"]
            wait_until(lambda: cleaner_pids(os.getpid()))
            change(client, 4, "", {"log.cleaner.io.max.bytes.per.second": "1e9"})
            self.kill_cleaner(running)  # it still has the old limit
            wait_until(lambda: is_cleaned(running, topic))
            wait_until(lambda: problems(running) == {})
            assert latest(records(client, topic)) == {b"key%d" % key: b"29" for key in range(3)}

    def test_a_log_at_which_every_cleaner_dies_is_left_alone(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with running_broker(tmp_path, SLOW_DISK) as running, WireClient(running.bootstrap) as client:
            topic = create_topic(client, configs=COMPACTED)
            write_dirt(client, topic)
            for _ in range(3):
                self.kill_cleaner(running)
            wait_until(lambda: "not cleaned any more" in problems(running).get("cleaner", ""))
            assert latest(records(client, topic)) == {b"key%d" % key: b"29" for key in range(3)}

    def kill_cleaner(self, running: InProcessBroker) -> None:
        """One that is at work, and not the next one too."""
        failures = running.metric("log.cleaner.failures")
        wait_until(lambda: cleaner_pids(os.getpid()))
        (cleaner,) = cleaner_pids(os.getpid())
        os.kill(cleaner, signal.SIGKILL)
        wait_until(lambda: running.metric("log.cleaner.failures") == failures + 1)

    def test_a_broker_that_stops_takes_its_cleaner_with_it(self, tmp_path: Path) -> None:
        with running_broker(tmp_path, SLOW_DISK) as running, WireClient(running.bootstrap) as client:
            topic = create_topic(client, configs=COMPACTED)
            write_dirt(client, topic)
            wait_until(lambda: cleaner_pids(os.getpid()))
            (cleaner,) = cleaner_pids(os.getpid())
            wait_until(lambda: os.getpriority(os.PRIO_PROCESS, cleaner) == 10)
            autogroup = Path(f"/proc/{cleaner}/autogroup")
            wait_until(lambda: not autogroup.exists() or autogroup.read_text().endswith(" nice 10\n"))
            assert os.getsid(cleaner) == cleaner, "a Ctrl-C is for the broker"
        assert cleaner_pids(os.getpid()) == []
        with running_broker(tmp_path, QUICK) as running, WireClient(running.bootstrap) as client:
            assert all(directory.was_clean for directory in running.broker._directories)
            wait_until(lambda: is_cleaned(running, topic))
            assert latest(records(client, topic)) == {b"key%d" % key: b"29" for key in range(3)}

    def test_a_broker_that_is_killed_takes_its_cleaner_with_it(self, tmp_path: Path) -> None:
        broker = BrokerProcess(tmp_path, SLOW_DISK)
        with broker, WireClient(broker.bootstrap) as client:
            topic = create_topic(client, configs=COMPACTED)
            write_dirt(client, topic)
            wait_until(lambda: cleaner_pids(broker.pid))
            (cleaner,) = cleaner_pids(broker.pid)
            broker.kill()
            wait_until(lambda: not is_alive(cleaner))
            broker.settings = dict(QUICK)
            broker.start()
            with WireClient(broker.bootstrap) as after:
                directory = tmp_path / "log" / f"{topic}-0"
                wait_until(lambda: len(records(after, topic)) < 60)
                assert latest(records(after, topic)) == {b"key%d" % key: b"29" for key in range(3)}
                wait_until(lambda: not list(directory.glob("*.cleaned")))
