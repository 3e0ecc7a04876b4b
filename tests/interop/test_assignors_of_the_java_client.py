"""Our assignors beside the Java client's own, on the same random groups with racks (KIP-881)."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from interop.apache_kafka import apache_kafka_in_two_racks
from interop.builds import java_command
from interop.kafka_tool import kafka_tool
from ottla.client import Admin, Consumer
from ottla.client.assignors import BUILT_IN, Assigned, Member, RackAwareAssignor
from ottla.client.group_formats import Subscription, encode_subscription
from ottla.model.topics import TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

GROUPS = 400
GENERATION = 5
SECONDS = 60


@dataclass(frozen=True)
class Case:
    broker_racks: list[str | None]
    topics: dict[str, list[list[int]]]  # the brokers of each partition
    members: dict[str, Member]

    @property
    def counts(self) -> dict[str, int]:
        return {topic: len(partitions) for topic, partitions in self.topics.items()}

    @property
    def racks(self) -> dict[TopicPartition, frozenset[str]]:
        return {
            TopicPartition(topic, index): frozenset(
                rack for rack in map(self.broker_racks.__getitem__, brokers) if rack is not None
            )
            for topic, partitions in self.topics.items()
            for index, brokers in enumerate(partitions)
        }

    def line(self, assignor: RackAwareAssignor) -> str:
        members = {
            name: base64.b64encode(
                encode_subscription(
                    Subscription(
                        sorted(each.topics),
                        assignor.user_data(each.owned, GENERATION),
                        (),
                        GENERATION,
                        each.rack,
                    )
                )
            ).decode()
            for name, each in self.members.items()
        }
        return json.dumps(
            {"assignor": assignor.name, "racks": self.broker_racks, "topics": self.topics, "members": members}
        )


def random_case(seed: int) -> Case:
    chance = random.Random(seed)
    brokers: list[str | None] = [chance.choice(["a", "b", "c", None]) for _ in range(chance.randrange(1, 7))]
    topics = {
        f"t{topic}": [
            chance.sample(range(len(brokers)), chance.randrange(1, min(len(brokers), 3) + 1))
            for _ in range(chance.choice([3, 6, chance.randrange(1, 12)]))
        ]
        for topic in range(chance.randrange(1, 4))
    }
    is_uniform = chance.random() < 0.5
    members = {
        f"C{index}": Member(
            frozenset(
                topics if is_uniform else chance.sample(sorted(topics), chance.randrange(1, len(topics) + 1))
            ),
            rack=chance.choice(["a", "b", "c", "elsewhere", None]),
        )
        for index in range(chance.randrange(1, 8))
    }
    case = Case(brokers, topics, members)
    return case if chance.random() < 0.4 else replace(case, members=_with_history(chance, case))


def _with_history(chance: random.Random, case: Case) -> dict[str, Member]:
    owned: dict[str, list[TopicPartition]] = {name: [] for name in case.members}
    for target in case.racks:
        readers = [name for name, each in case.members.items() if target.topic in each.topics]
        if readers and chance.random() < 0.8:
            owned[chance.choice(readers)].append(target)
    return {
        name: replace(each, owned=tuple(owned[name]), generation=GENERATION)
        for name, each in case.members.items()
    }


def theirs(cases: list[Case], assignor: RackAwareAssignor) -> list[Assigned]:
    done = subprocess.run(
        [*java_command(), "AssignorDriver"],
        input="\n".join(case.line(assignor) for case in cases),
        text=True,
        capture_output=True,
        timeout=120,
        check=True,
    )
    return [
        {name: [TopicPartition(*target) for target in targets] for name, targets in json.loads(line).items()}
        for line in done.stdout.splitlines()
    ]


def near_assignor(name: str) -> RackAwareAssignor:
    assignor = BUILT_IN[name]
    assert isinstance(assignor, RackAwareAssignor)
    return assignor


def test_range_gives_every_member_what_the_java_client_gives_it() -> None:
    cases, assignor = [random_case(seed) for seed in range(GROUPS)], near_assignor("range")
    for case, expected in zip(cases, theirs(cases, assignor), strict=True):
        ours = assignor.assign_near(case.counts, case.members, case.racks)
        assert {name: sorted(each) for name, each in ours.items()} == {
            name: sorted(each) for name, each in expected.items()
        }, case


def test_sticky_is_as_even_as_the_java_client_and_in_all_no_farther_and_no_less_sticky() -> None:
    cases, assignor = [random_case(seed) for seed in range(GROUPS)], near_assignor("sticky")
    far, moved = [0, 0], [0, 0]
    for case, expected in zip(cases, theirs(cases, assignor), strict=True):
        ours = assignor.assign_near(case.counts, case.members, case.racks)
        both = (ours, expected)
        unevenness = [sum(len(each) ** 2 for each in assigned.values()) for assigned in both]
        assert unevenness[0] <= unevenness[1], case
        if unevenness[0] == unevenness[1]:
            for index, assigned in enumerate(both):
                far[index] += _far(case, assigned)
                moved[index] += _moved(case.members, assigned)
    assert far[0] <= far[1]
    assert moved[0] <= moved[1]


def _far(case: Case, assigned: Assigned) -> int:
    racks = case.racks
    return sum(
        case.members[name].rack is not None and case.members[name].rack not in racks[target]
        for name, targets in assigned.items()
        for target in targets
    )


def _moved(members: Mapping[str, Member], assigned: Assigned) -> int:
    owners = {target: name for name, each in members.items() for target in each.owned}
    return sum(owners.get(target, name) != name for name, targets in assigned.items() for target in targets)


@pytest.mark.parametrize("leader", ["ours", "librdkafka's"])
def test_a_mixed_group_reads_within_its_racks(tmp_path: Path, leader: str) -> None:
    with apache_kafka_in_two_racks(tmp_path) as bootstrap, ExitStack() as stack:
        with Admin(bootstrap) as admin:
            admin.create_topic("topic", assignment={0: [1], 1: [2], 2: [1], 3: [2]})
        common = {"group.id": "group", "partition.assignment.strategy": "range", "session.timeout.ms": 6000}
        ours = Consumer(bootstrap, **common, client_rack="far")
        stack.callback(ours.close)
        stock = ConfluentConsumer({"bootstrap.servers": bootstrap, **common, "client.rack": "near"})
        stack.callback(stock.close)
        joins = [lambda: ours.subscribe(["topic"]), lambda: stock.subscribe(["topic"])]
        for join in joins if leader == "ours" else reversed(joins):
            join()
            _poll_until(ours, stock, lambda: bool(ours.assignment() or stock.assignment()))
        _poll_until(
            ours,
            stock,
            lambda: (
                {each.partition for each in ours.assignment()} == {0, 2}
                and {each.partition for each in stock.assignment()} == {1, 3}
            ),
        )


def test_a_group_follows_replicas_that_move_to_other_racks(tmp_path: Path) -> None:
    with apache_kafka_in_two_racks(tmp_path) as bootstrap, ExitStack() as stack:
        with Admin(bootstrap) as admin:
            admin.create_topic("topic", assignment={0: [1], 1: [2], 2: [1], 3: [2]})
        settings: dict[str, object] = {"group.id": "group", "metadata.max.age.ms": 500}
        far, near = (
            stack.enter_context(Consumer(bootstrap, strategy=("range",), client_rack=rack, **settings))
            for rack in ("far", "near")
        )

        def read(partitions: set[int], others: set[int]) -> bool:
            shares = [{each.partition for each in member.assignment()} for member in (far, near)]
            return shares == [partitions, others]

        for member in (far, near):
            member.subscribe(["topic"])
        _poll_until(far, near, lambda: read({0, 2}, {1, 3}))
        moves = [
            {"topic": "topic", "partition": partition, "replicas": [replica]}
            for partition, replica in ((0, 2), (1, 1), (2, 2), (3, 1))
        ]
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))
        kafka_tool(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *("--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan), "--execute"),
        )
        _poll_until(far, near, lambda: read({1, 3}, {0, 2}))


def _poll_until(ours: Consumer, other: Consumer | ConfluentConsumer, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, (ours.assignment(), other.assignment())
        ours.poll(0.1)
        other.poll(0.1)
