"""A request that names as much as one may, of every API whose work grows with that: answered, and others are
served beside it. What they waited is told, not asserted.
"""

from __future__ import annotations

import threading
import time

import pytest

from hostile import figures
from hostile.giants import GIANTS, TOPIC, Giant, encoded
from hostile.ground import Ground
from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.protocol import apis
from ottla.protocol.headers import encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest

COUNT = REQUEST_ELEMENTS_MAX - 10
SMALL = b"".join(map(bytes, encode_request(apis.API_VERSIONS, 3, 1, "small", ApiVersionsRequest("a", "1"))))


@pytest.fixture(scope="module", autouse=True)
def prepared(ground: Ground) -> None:
    """Topics and coordinators are there, so that what is asked for is looked up."""
    with ground.peer() as peer:
        peer.create_topic(TOPIC)
        for giant in GIANTS:
            if giant[0] is apis.FIND_COORDINATOR:
                peer.exchange(encoded(giant, 1))


@pytest.mark.parametrize("giant", GIANTS, ids=lambda giant: giant[0].name)
def test_a_giant_request_is_answered_and_others_are_served_beside_it(ground: Ground, giant: Giant) -> None:
    frame = encoded(giant, COUNT)
    waits_ms: list[float] = []
    is_over = threading.Event()
    with ground.peer(timeout_seconds=60) as other, ground.peer(timeout_seconds=60) as peer:

        def go_on() -> None:
            while not (waits_ms and is_over.is_set()):  # once at least, however late this begins
                began = time.perf_counter()
                other.exchange(SMALL)
                waits_ms.append((time.perf_counter() - began) * 1000)

        thread = threading.Thread(target=go_on)
        thread.start()
        answer = peer.exchange(frame)
        is_over.set()
        thread.join(60)
        other.exchange(SMALL)
    assert answer
    ground.check_closed([])
    figures.note(f"{giant[0].name} of {COUNT:,} elements: others waited {max(waits_ms):.0f} ms at most")
