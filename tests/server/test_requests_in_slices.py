"""Requests that name many things are served in slices of turns, so that others have theirs in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import create_topic
from hostile.giants import GIANTS, TOPIC, Giant, encoded
from hostile.peer import Peer
from in_process import InProcessBroker, running_broker
from ottla.protocol import apis
from ottla.server import long_requests
from ottla.server.long_requests import LongRequests
from wire import WireClient

COUNT = 3_000  # things named in one request
SLICES_MIN = 3  # of so many

# Decided at once, because it changes the state of one partition, group or transaction; or hardly any work.
IN_ONE_TURN = {
    apis.PRODUCE,
    apis.FETCH,
    apis.TXN_OFFSET_COMMIT,  # refused here, as is the next; what is taken is taken in parts
    apis.OFFSET_DELETE,
    apis.LEAVE_GROUP,
    apis.ADD_PARTITIONS_TO_TXN,
    apis.DESCRIBE_LOG_DIRS,
}
IN_SLICES = [giant for giant in GIANTS if giant[0] not in IN_ONE_TURN]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    data: Path = tmp_path_factory.mktemp("broker")
    with running_broker(data) as running, WireClient(running.bootstrap) as client:
        create_topic(client, TOPIC)
        with Peer(running.bootstrap) as peer:
            for giant in GIANTS:
                if giant[0] is apis.FIND_COORDINATOR:
                    peer.exchange(encoded(giant, 1))
        yield running


@pytest.mark.parametrize("giant", IN_SLICES, ids=lambda giant: giant[0].name)
def test_it_takes_several_turns(
    running: InProcessBroker, giant: Giant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_requests, "TURN_HANDLING_US_MAX", 0)  # a slice is one of the things, or two
    slices = 0
    make_slice = LongRequests._slice

    def count(requests: LongRequests) -> None:
        nonlocal slices
        slices += 1
        make_slice(requests)

    monkeypatch.setattr(LongRequests, "_slice", count)
    with Peer(running.bootstrap) as peer:
        peer.send(encoded(giant, COUNT))
        assert peer.frame()
    assert slices >= SLICES_MIN
