"""Groups of the Java client, franz-go and kafkajs, and of all of them together with Python's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.broker import unique_name
from compat.groups.crew import PYTHON_CLIENTS, Crew
from compat.groups.story import (
    PARTITIONS,
    SETTINGS,
    Load,
    Watch,
    group_changes_its_protocol,
    members_come_and_go,
    new_topic,
)
from interop.builds import go_driver, java_command, node_driver
from ottla.testing import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CASES = [
    ("java", "uniform"),
    ("java", "range"),
    ("java", "sticky"),
    ("java", "cooperative-sticky"),
    ("franz-go", "roundrobin"),
    ("franz-go", "cooperative-sticky"),
    ("kafkajs", "roundrobin"),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings=SETTINGS) as process:
        yield process


@pytest.fixture(scope="module")
def commands() -> dict[str, list[str]]:
    return {
        **PYTHON_CLIENTS,
        "java": [*java_command(), "GroupMember"],
        "franz-go": [str(go_driver()), "member"],
        "kafkajs": ["node", str(node_driver().with_name("member.js"))],
    }


@pytest.mark.parametrize(("client", "strategy"), CASES)
def test_members_come_and_go_under_load(
    broker: BrokerProcess, commands: dict[str, list[str]], client: str, strategy: str
) -> None:
    members_come_and_go(broker, client, strategy, commands)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_java_group_is_rolled_to_the_new_protocol_and_back_under_load(
    broker: BrokerProcess, commands: dict[str, list[str]], strategy: str
) -> None:
    group_changes_its_protocol(broker, ("java", strategy), ("java", "uniform"), commands)


def test_a_group_of_both_protocols_in_three_languages(
    broker: BrokerProcess, commands: dict[str, list[str]]
) -> None:
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    load, watch = Load(broker, topic), Watch(broker, group)
    try:
        with Crew("java", "uniform", broker.bootstrap, group, topic, commands) as crew:
            crew.add(1, "franz-go", "cooperative-sticky")
            crew.add(1, "java", "uniform")
            crew.add(1, "confluent", "cooperative-sticky")
            crew.wait_for_shares(2, 2, 2)
            crew.alive[1].kill()  # the only one with the new protocol
            crew.wait_for_shares(3, 3)
            crew.wait_for(load.stop())
    finally:
        load.stop()
        watch.stop()
    assert watch.conflicts == []
    assert watch.types[-1] == "CLASSIC"


def test_one_group_of_the_new_protocol_in_two_languages(
    broker: BrokerProcess, commands: dict[str, list[str]]
) -> None:
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    with Crew("java", "uniform", broker.bootstrap, group, topic, commands) as crew:
        crew.add(1)
        crew.add(2, "confluent")
        crew.wait_for_shares(2, 2, 2)
        crew.alive[0].leave()
        crew.wait_for_shares(3, 3)


def test_one_group_in_three_languages(broker: BrokerProcess, commands: dict[str, list[str]]) -> None:
    """All but kafkajs, whose round robin has a name of its own."""
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    load = Load(broker, topic)
    try:
        with Crew("java", "range", broker.bootstrap, group, topic, commands) as crew:
            for client in ("java", "franz-go", "confluent"):
                crew.add(1, client)
            crew.wait_for_shares(2, 2, 2)
            crew.alive[0].kill()
            crew.wait_for_shares(3, 3)
            crew.wait_for(load.stop())
    finally:
        load.stop()
