"""What groups cost: commits, joins, a thousand groups that only say that they live, and a log of old commits.

    python -m benchmarks.groups [--seconds 5] [--connections 50] [--groups 1000] [--kafka [name=value ...]]

Commits are of one partition each, one under way per connection, answered when the disk has them. A join is a
whole generation: two joins (KIP-394) and a sync. With `--kafka` the same is asked of an Apache Kafka in the
same run, each on the same core in its turn; it answers from memory unless it is given
log.flush.interval.messages=1. Both are asked twice, and the second time counts.
"""

from __future__ import annotations

import argparse
import os
import select
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any

from benchmarks.against_kafka.brokers import apache_kafka
from benchmarks.peer import Peer
from benchmarks.processes import CLIENT_CORE, SERVER_CORE, cpu_seconds, on_core

from ottla.coordinator.group_records import OffsetCommitKey, OffsetCommitValue, offset_record
from ottla.model.topics import OFFSETS_TOPIC as OFFSETS
from ottla.protocol import apis
from ottla.protocol.consumer_protocol import Subscription, encode_subscription
from ottla.protocol.fields import Message
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.records.content import Record, build_batch
from ottla.testing import BrokerProcess

MEMBERS = 5
HEARTBEAT_SECONDS = 3
SESSION_MS = 45_000  # the default of consumers
BATCH = 10_000
WAVE = 200  # groups that are made at once
TOPIC = "groups-bench"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--commits", type=int, default=1_000_000, help="in the log that is loaded")
    parser.add_argument("--only", choices=["requests", "lives"], help="half of it")
    parser.add_argument("--kafka", nargs="*", metavar="name=value", help="settings of an Apache Kafka")
    options = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    if options.only != "lives":
        compare(options)
    if options.only != "requests":
        with on_one_core() as broker:
            prepare(broker.bootstrap)
            heartbeats(broker, options.groups, options.seconds)
        loading(options.commits)


def compare(options: argparse.Namespace) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with ExitStack() as stack:
        ours = stack.enter_context(on_one_core(settings))
        brokers = [("ottla", ours.bootstrap, ours.pid)]
        if options.kafka is not None:
            given = [*(f"{name}={value}" for name, value in settings.items()), *options.kafka]
            theirs = stack.enter_context(apache_kafka(given))
            brokers.append(("apache kafka", theirs.address, theirs.pid))
        for _, address, _ in brokers:
            prepare(address)
        for measure in (commits, joins):
            for name, address, pid in brokers:
                measure(address, options)
                cpu_of(pid)
                show(measure.__name__, name, measure(address, options), cpu_of(pid))


@contextmanager
def on_one_core(settings: Mapping[str, str] | None = None) -> Iterator[BrokerProcess]:
    with ExitStack() as stack:
        with on_core(SERVER_CORE):
            broker = stack.enter_context(BrokerProcess(settings=settings or {}))
        yield broker


def show(what: str, who: str, result: tuple[int, float], cpu_seconds: float) -> None:
    count, seconds = result
    print(f"{what:<11}{who:<14}{count / seconds:>9,.0f}/s  {cpu_seconds / count * 1e6:6.0f} µs of CPU each")


_cpu_before: dict[int, float] = {}


def cpu_of(pid: int) -> float:
    """Seconds since it was last asked."""
    now = cpu_seconds(pid)
    used = now - _cpu_before.get(pid, 0)
    _cpu_before[pid] = now
    return used


def prepare(address: str) -> None:
    peer = Peer(address)
    peer.call(apis.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)]))
    for _ in range(100):
        found = peer.call(apis.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
        if found.coordinators[0].error_code == 0:
            return
        time.sleep(0.1)
    raise SystemExit(f"{address} has no coordinator")


# -- one request after the other, on many connections --------------------------------------------------------

Question = tuple[apis.Api, int, Message]
Script = Generator[Question, Any, None]


def closed_loop(address: str, scripts: list[Script], seconds: float) -> float:
    """Each script has a connection, and asks again as soon as the last answer is there; how long it took."""
    poll = select.epoll()
    by_fd: dict[int, tuple[Peer, Script, apis.Api, int]] = {}
    began = time.perf_counter()
    for script in scripts:
        peer = Peer(address)
        api, version, question = next(script)
        peer.send(api, version, question)
        by_fd[peer.socket.fileno()] = (peer, script, api, version)
        poll.register(peer.socket.fileno(), select.EPOLLIN)
    while (left := began + seconds - time.perf_counter()) > 0:
        for fd, _ in poll.poll(left):
            peer, script, api, version = by_fd[fd]
            api, version, question = script.send(peer.receive(api, version))
            peer.send(api, version, question)
            by_fd[fd] = (peer, script, api, version)
    spent = time.perf_counter() - began
    for peer, *_ in by_fd.values():
        peer.socket.close()
    return spent


def commits(address: str, options: argparse.Namespace) -> tuple[int, float]:
    done = [0]

    def script(number: int) -> Script:
        for offset in count():
            committed = [OffsetCommitRequestPartition(0, offset)]
            topic = OffsetCommitRequestTopic(TOPIC, partitions=committed)
            answer = yield apis.OFFSET_COMMIT, 9, OffsetCommitRequest(f"commits-{number}", topics=[topic])
            assert answer.topics[0].partitions[0].error_code == 0
            done[0] += 1

    scripts = [script(number) for number in range(options.connections)]
    seconds = closed_loop(address, scripts, options.seconds)
    return done[0], seconds


def joins(address: str, options: argparse.Namespace) -> tuple[int, float]:
    done, unique = [0], time.time_ns()

    def script(number: int) -> Script:
        for turn in count():
            group = f"joins-{unique}-{number}-{turn}"
            answer = yield apis.JOIN_GROUP, 9, join_request(group)
            answer = yield apis.JOIN_GROUP, 9, join_request(group, answer.member_id)
            assert answer.error_code == 0
            given = [SyncGroupRequestAssignment(answer.member_id, b"all")]
            request = SyncGroupRequest(
                group, answer.generation_id, answer.member_id, None, "consumer", "range", given
            )
            answer = yield apis.SYNC_GROUP, 5, request
            assert answer.error_code == 0
            done[0] += 1

    scripts = [script(number) for number in range(options.connections)]
    seconds = closed_loop(address, scripts, options.seconds)
    return done[0], seconds


def join_request(group: str, member_id: str = "") -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", encode_subscription(Subscription([TOPIC])))]
    return JoinGroupRequest(group, SESSION_MS, SESSION_MS, member_id, None, "consumer", protocols)


# -- a thousand groups that live -----------------------------------------------------------------------------


def heartbeats(broker: BrokerProcess, groups: int, seconds: float) -> None:
    """Every member each three seconds; a session that was missed shows as an error."""
    peers = [Peer(broker.bootstrap) for _ in range(min(groups, WAVE) * MEMBERS)]
    members: list[tuple[Peer, HeartbeatRequest]] = []
    for first in range(0, groups, WAVE):
        members += settle(peers, range(first, min(first + WAVE, groups)))
    cpu_of(broker.pid)
    rounds = max(2, int(seconds / HEARTBEAT_SECONDS))
    began = time.perf_counter()
    missed = 0
    for turn in range(rounds):
        for number, (peer, request) in enumerate(members):
            due = began + (turn + number / len(members)) * HEARTBEAT_SECONDS
            time.sleep(max(0.0, due - time.perf_counter()))
            missed += peer.call(apis.HEARTBEAT, 4, request).error_code != 0
    spent = time.perf_counter() - began
    total = rounds * len(members)
    share = cpu_of(broker.pid) / spent
    print(
        f"heartbeats {groups:,} groups of {MEMBERS}: {total / spent:,.0f}/s, {missed} missed, CPU {share:.1%}"
    )


def settle(peers: list[Peer], groups: range) -> list[tuple[Peer, HeartbeatRequest]]:
    """Stable groups, each member on a connection of its own."""
    places = [(group, member) for group in groups for member in range(MEMBERS)]
    pairs = list(zip(peers, places, strict=False))
    for peer, (group, _) in pairs:
        peer.send(apis.JOIN_GROUP, 3, join_request(f"alive-{group}"))
    joined = [peer.receive(apis.JOIN_GROUP, 3) for peer, _ in pairs]
    for (peer, (group, _)), answer in zip(pairs, joined, strict=True):
        given = [SyncGroupRequestAssignment(each.member_id, b"part") for each in answer.members]
        request = SyncGroupRequest(
            f"alive-{group}", answer.generation_id, answer.member_id, assignments=given
        )
        peer.send(apis.SYNC_GROUP, 3, request)
    for peer, _ in pairs:
        answer = peer.receive(apis.SYNC_GROUP, 3)
        assert answer.error_code == 0, answer
    return [
        (peer, HeartbeatRequest(f"alive-{group}", answer.generation_id, answer.member_id))
        for (peer, (group, _)), answer in zip(pairs, joined, strict=True)
    ]


# -- reading it all back -------------------------------------------------------------------------------------


def loading(count: int) -> None:
    """A log of many commits to ten keys: what the cleaner leaves of it, and how long a start takes with it.

    The segment that is written to is not cleaned, so there is a new one each second here.
    """
    with BrokerProcess(
        settings={"offsets.topic.num.partitions": "1", "log.cleaner.enable": "false"}
    ) as broker:
        prepare(broker.bootstrap)
        write_commits(broker.bootstrap, count)
        print(f"loading    {count:,} commits to ten keys: {restart_seconds(broker):.3f} s")
    with BrokerProcess(settings={"offsets.topic.num.partitions": "1", **CLEANS_SOON}) as broker:
        prepare(broker.bootstrap)
        write_commits(broker.bootstrap, count)
        time.sleep(1)
        write_commits(broker.bootstrap, 10)  # into a new segment
        began = time.perf_counter()
        while (size := size_of(broker)) > 1_000_000 and time.perf_counter() < began + 60:
            time.sleep(0.1)
        seconds = time.perf_counter() - began
        print(f"cleaning   leaves {size / 1e3:,.0f} kB of them, {seconds:.1f} s after the last")
        print(f"loading    what is left: {restart_seconds(broker):.3f} s")


CLEANS_SOON = {
    "log.roll.ms": "1000",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.flush.offset.checkpoint.interval.ms": "500",  # nothing behind it is cleaned
}


def write_commits(address: str, count: int) -> None:
    peer = Peer(address, client_id="__admin_client")
    for first in range(0, count, BATCH):
        now_ms = int(time.time() * 1000)
        values = (OffsetCommitValue(first + at, -1, "", now_ms) for at in range(min(BATCH, count - first)))
        records = [
            Record(at, now_ms, *offset_record(OffsetCommitKey("g", TOPIC, at % 10), value))
            for at, value in enumerate(values)
        ]
        for begin in range(0, len(records), 1_000):  # as many as one batch of small segments can have
            batch = [each._replace(offset=at) for at, each in enumerate(records[begin : begin + 1_000])]
            data = PartitionProduceData(0, build_batch(batch))
            request = ProduceRequest(
                acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(OFFSETS, partition_data=[data])]
            )
            answer = peer.call(apis.PRODUCE, 9, request)
            assert answer.responses[0].partition_responses[0].error_code == 0, answer


def size_of(broker: BrokerProcess) -> int:
    """Of the log's files, indexes too; those of before go a minute later (file.delete.delay.ms)."""
    files = (broker.data_dir / "log").glob(f"{OFFSETS}-0/*[!d]")
    total = 0
    for file in files:
        with suppress(FileNotFoundError):  # the cleaner has just taken it away
            total += file.stat().st_blocks * 512
    return total


def restart_seconds(broker: BrokerProcess) -> float:
    """From the first answer after a start to when groups are known again."""
    broker.stop()
    broker.start()
    peer = Peer(broker.bootstrap)
    started = time.perf_counter()
    while peer.call(apis.LIST_GROUPS, 4, ListGroupsRequest()).error_code:
        time.sleep(0.002)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
