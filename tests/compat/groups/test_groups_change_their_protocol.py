"""Groups of stock consumers of which some speak the classic protocol and some the new one (KIP-848).

Whatever happens: every acknowledged record is read, and no partition has two owners.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.broker import unique_name
from compat.groups.crew import Crew
from compat.groups.story import PARTITIONS, SETTINGS, Load, Watch, group_changes_its_protocol, new_topic
from ottla.testing import BrokerProcess


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings=SETTINGS) as process:
        yield process


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "strategy",
    [
        "range",
        pytest.param("cooperative-sticky", marks=pytest.mark.slow),
        pytest.param("roundrobin", marks=pytest.mark.slow),
    ],
)
def test_a_group_is_rolled_to_the_new_protocol_and_back_under_load(
    broker: BrokerProcess, strategy: str
) -> None:
    group_changes_its_protocol(broker, ("confluent", strategy), ("confluent", "uniform"))


@pytest.mark.timeout(300)
def test_clients_that_only_know_the_classic_protocol_share_a_group_with_the_new_one(
    broker: BrokerProcess,
) -> None:
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    load, watch = Load(broker, topic), Watch(broker, group)
    try:
        with Crew("confluent", "uniform", broker.bootstrap, group, topic) as crew:
            crew.add(1, "kafka-python", "range")
            crew.wait_for_shares(6)
            crew.add(1, "confluent", "uniform")
            crew.add(1, "aiokafka", "range")
            crew.wait_for_shares(2, 2, 2)
            crew.alive[0].kill()  # the one of kafka-python
            crew.wait_for_shares(3, 3)
            crew.add(1, "kafka-python", "range")
            crew.wait_for_shares(2, 2, 2)
            crew.alive[0].kill()  # the only one with the new protocol
            crew.wait_for_shares(3, 3)
            crew.wait_for(load.stop())
    finally:
        load.stop()
        watch.stop()
    assert watch.conflicts == []
    assert watch.types == ["CLASSIC", "CONSUMER", "CLASSIC"]


@pytest.mark.timeout(300)
def test_a_mixed_group_goes_on_after_its_broker_was_killed() -> None:
    with BrokerProcess(settings=SETTINGS) as broker:
        topic, group = new_topic(broker, PARTITIONS), unique_name("group")
        load = Load(broker, topic)
        try:
            with Crew("confluent", "uniform", broker.bootstrap, group, topic) as crew:
                crew.add(1, "confluent", "cooperative-sticky")
                crew.add(1, "confluent", "uniform")
                crew.wait_for_shares(3, 3)
                broker.kill()
                broker.start()
                crew.wait_for(load.stop())
                crew.wait_for_shares(3, 3)
        finally:
            load.stop()
