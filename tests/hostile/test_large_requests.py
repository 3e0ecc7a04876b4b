"""Requests as large as they may be: answered within bounded memory, and beyond the limit refused unread."""

from __future__ import annotations

import struct
import time

import pytest

from hostile import figures
from hostile.bystander import Bystander
from hostile.ground import Ground
from hostile.peer import Closed, framed
from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.protocol import apis
from ottla.protocol.apis import Api

TOPIC = "t"
MEMORY_MIB_MAX = 100
IN_SLICES = (
    apis.LIST_OFFSETS,
    apis.DESCRIBE_CONFIGS,
    apis.METADATA,
    apis.DELETE_TOPICS,
)  # other clients are served in between


@pytest.fixture(scope="module", autouse=True)
def topics(ground: Ground) -> None:
    with ground.peer() as peer:
        peer.create_topic(TOPIC)
        peer.create_topic("decent")


def _request(api: Api, version: int, count: int) -> bytes:
    """A frame that names `count` things in the fewest bytes, by hand: our encoder would take its time."""
    head = struct.pack(">hhih", api.key, version, 1, -1)
    number = struct.pack(">i", count)
    one_topic = struct.pack(">i", 1) + b"\0\1t" + number
    bodies = {
        apis.METADATA: number + b"\0\0" * count,
        apis.FETCH: struct.pack(">iiiib", -1, 100, 1, 1 << 20, 0)
        + one_topic
        + b"".join(struct.pack(">iqi", index, 0, 1000) for index in range(count)),
        apis.LIST_OFFSETS: struct.pack(">i", -1)
        + one_topic
        + b"".join(struct.pack(">iq", index, -1) for index in range(count)),
        apis.PRODUCE: struct.pack(">hhi", -1, 1, 1000) + one_topic + struct.pack(">ii", 0, -1) * count,
        apis.DELETE_TOPICS: number + b"\0\0" * count + struct.pack(">i", 1000),
        apis.DESCRIBE_CONFIGS: number + b"\x02\0\1t\xff\xff\xff\xff" * count + b"\0",
    }
    return framed(head + bodies[api])


CASES = pytest.mark.parametrize(
    ("api", "version"),
    [
        (apis.METADATA, 1),
        (apis.FETCH, 4),
        (apis.LIST_OFFSETS, 1),
        (apis.PRODUCE, 3),
        (apis.DELETE_TOPICS, 1),
        (apis.DESCRIBE_CONFIGS, 1),
    ],
    ids=lambda value: value.name if isinstance(value, Api) else f"v{value}",
)


@CASES
def test_the_largest_request_costs_bounded_memory(ground: Ground, api: Api, version: int) -> None:
    count = REQUEST_ELEMENTS_MAX - 1
    ground.forget_memory_peak()
    before = ground.memory_mib()
    with Bystander(ground, "decent") as bystander, ground.peer(timeout_seconds=60) as peer:
        began = time.monotonic()
        peer.exchange(_request(api, version, count))
        seconds = time.monotonic() - began
        time.sleep(0.2)
    memory_mib = ground.memory_peak_mib() - before
    figures.note(
        f"{api.name} of {count:,} elements: {memory_mib:5.1f} MiB more, {seconds:.2f} s; "
        f"others waited {max(bystander.round_trips_ms):.0f} ms at most"
    )
    assert memory_mib < MEMORY_MIB_MAX
    assert bystander.round_trips_ms
    ground.check_closed([])
    if api in IN_SLICES and seconds > 0.2:
        assert len(bystander.round_trips_ms) > 5


@CASES
def test_one_element_more_closes_the_connection(ground: Ground, api: Api, version: int) -> None:
    with ground.peer() as peer:
        with pytest.raises(Closed):
            peer.exchange(_request(api, version, REQUEST_ELEMENTS_MAX + 1))
        (reason,) = ground.check_closed([peer.port])
    assert "more than one message may have" in reason


def test_an_old_produce_cannot_name_more_than_a_new_one(ground: Ground) -> None:
    count = REQUEST_ELEMENTS_MAX + 1
    head = struct.pack(">hhih", apis.PRODUCE.key, 0, 1, -1)
    body = struct.pack(">hii", 1, 1000, count) + bytes(6) * count
    with ground.peer() as peer:
        with pytest.raises(Closed):
            peer.exchange(framed(head + body))
        ground.check_closed([peer.port])
