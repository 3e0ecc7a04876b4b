"""Groups over broken connections: whatever is cut or lost on the way, every record is read and committed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from client.wired import WiredBroker, wired_broker
from ottla.client import Consumer, Producer, TopicPartition

_names = itertools.count()

CLASSIC = (
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "OffsetFetch",
    "OffsetCommit",
    "Heartbeat",
    "ListOffsets",
)
NEW = ("FindCoordinator", "ConsumerGroupHeartbeat", "OffsetFetch", "OffsetCommit", "ListOffsets")


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredBroker]:
    quick = {
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "100",
    }
    with wired_broker(quick) as broker:
        yield broker


@pytest.mark.parametrize("fault", ["cut", "lose_answer", "garble"])
@pytest.mark.parametrize(
    ("protocol", "api"), [*(("classic", api) for api in CLASSIC), *(("consumer", api) for api in NEW)]
)
def test_a_broken_request_costs_no_record_and_no_commit(
    wired: WiredBroker, protocol: str, api: str, fault: str
) -> None:
    topic, group = f"t-{next(_names)}", f"g-{next(_names)}"
    wired.create_topic(topic)
    with Producer(wired.bootstrap) as producer:
        for number in range(30):
            producer.send(topic, b"%d" % number, partition=0)
    settings: dict[str, object] = {
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.max.wait.ms": 20,
        "max.poll.records": 10,
        "retry.backoff.ms": 5,
    }
    if protocol == "classic":
        settings |= {"heartbeat.interval.ms": 20}
    before = wired.wire.seen[api]
    getattr(wired.wire, fault)(api, times=2)
    place = TopicPartition(topic, 0)
    seen: list[int] = []
    with Consumer(wired.bootstrap, strategy=(), **settings) as consumer:
        consumer.subscribe([topic])
        while len(seen) < 30 or wired.wire.faults_left:
            seen += [record.offset for record in consumer.poll(0.05)]
            if seen:
                consumer.commit({place: seen[-1] + 1})
        assert consumer.committed([place])[place].offset == 30
    assert seen == list(range(30))
    assert wired.wire.seen[api] >= before + 2
