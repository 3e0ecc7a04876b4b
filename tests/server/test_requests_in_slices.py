"""Requests that name many things are served in slices of turns: others have their turns in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import create_topic
from hostile.giants import GIANTS, TOPIC, Giant, encoded
from hostile.peer import Peer
from in_process import InProcessBroker, running_broker
from ottla.protocol import apis
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.server import long_requests
from wire import WireClient

COUNT = 2_000  # things named in one request

# Decided at once, because it changes the state of one partition, group or transaction; or hardly any work.
IN_ONE_TURN = {
    apis.PRODUCE,
    apis.FETCH,
    apis.OFFSET_COMMIT,
    apis.TXN_OFFSET_COMMIT,
    apis.OFFSET_DELETE,
    apis.LEAVE_GROUP,
    apis.ADD_PARTITIONS_TO_TXN,
    apis.WRITE_TXN_MARKERS,
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
def test_others_are_served_in_between(
    running: InProcessBroker, giant: Giant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_requests, "TURN_HANDLING_US_MAX", 0)  # a slice is one of the things, or two
    small = encoded((apis.API_VERSIONS, 3, lambda _: ApiVersionsRequest("other", "1")), 0)
    served = 0
    is_over = threading.Event()
    with Peer(running.bootstrap) as other, Peer(running.bootstrap) as peer:

        def go_on() -> None:
            nonlocal served
            while not is_over.is_set():
                other.exchange(small)
                served += 1

        thread = threading.Thread(target=go_on)
        peer.send(encoded(giant, COUNT))
        thread.start()
        assert peer.frame()
        is_over.set()
        thread.join(30)
    assert served >= 10
