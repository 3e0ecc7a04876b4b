"""Throttling (KIP-219): the answer leaves at once, then nothing is read for the time that it names."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from calls import append, at, batch_of, create_topic, fetch_request, produce_request
from in_process import InProcessBroker, running_broker
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.security.principals import Principal
from ottla.security.quotas import Unlimited
from wire import WireClient

THROTTLE_MS = 300
TRIES = 3  # a busy disk may keep one answer longer than the throttle does


class Strict(Unlimited):
    """Every client named `greedy` has used up its share."""

    def produced(self, principal: Principal, client_id: str | None, size: int, now_ms: int) -> int:
        return THROTTLE_MS if client_id == "greedy" and size else 0

    def fetched(self, principal: Principal, client_id: str | None, size: int, now_ms: int) -> int:
        return THROTTLE_MS if client_id == "greedy" and size else 0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path_factory.mktemp("strict")) as running:
        running.on_owner(lambda: setattr(running.broker._services, "quotas", Strict()))
        yield running


@pytest.fixture
def modest(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap, client_id="modest") as client:
        yield client


@pytest.fixture
def greedy(running: InProcessBroker) -> Iterator[WireClient]:
    with WireClient(running.bootstrap, client_id="greedy") as client:
        yield client


def seconds_until_answered(client: WireClient) -> float:
    began = time.monotonic()
    client.call(MetadataRequest([]), 12)
    return time.monotonic() - began


@pytest.mark.parametrize("acks", [1, -1])
def test_a_writer_is_told_and_then_left_unread(modest: WireClient, greedy: WireClient, acks: int) -> None:
    topic = create_topic(modest)

    def is_told_at_once() -> bool:
        began = time.monotonic()
        response = greedy.call(produce_request(topic, batch_of(b"v"), acks=acks), 12)
        at_once = time.monotonic() - began
        assert response.throttle_time_ms == THROTTLE_MS
        waited = seconds_until_answered(greedy)
        assert at_once + waited >= THROTTLE_MS / 1000
        return at_once < waited and seconds_until_answered(greedy) < waited  # then it goes on as before

    assert any(is_told_at_once() for _ in range(TRIES))


def test_a_reader_is_told_and_then_left_unread(modest: WireClient, greedy: WireClient) -> None:
    topic = create_topic(modest)
    append(modest, topic, b"v")
    began = time.monotonic()
    response = greedy.call(fetch_request(topic, at(0)), 12)
    assert response.throttle_time_ms == THROTTLE_MS
    assert response.responses[0].partitions[0].records
    seconds_until_answered(greedy)
    assert time.monotonic() - began >= THROTTLE_MS / 1000


def test_a_writer_without_answers_is_left_unread_too(modest: WireClient, greedy: WireClient) -> None:
    topic = create_topic(modest)
    began = time.monotonic()
    greedy.send_unanswered(produce_request(topic, batch_of(b"v"), acks=0), 12)
    time.sleep(0.05)  # so that the next request is not read together with it
    seconds_until_answered(greedy)
    assert time.monotonic() - began >= THROTTLE_MS / 1000


def test_others_do_not_notice(modest: WireClient, greedy: WireClient) -> None:
    topic = create_topic(modest)

    def is_answered_sooner() -> bool:
        greedy.call(produce_request(topic, batch_of(b"v")), 12)
        began = time.monotonic()
        append(modest, topic, b"w")
        waited = time.monotonic() - began
        return waited < seconds_until_answered(greedy)

    assert any(is_answered_sooner() for _ in range(TRIES))


def test_two_throttles_end_with_the_later_one(running: InProcessBroker, modest: WireClient) -> None:
    """The timer of the first must not cut the second short."""
    seconds_until_answered(modest)
    reactor = running.broker._reactor

    def mute() -> None:
        (connection,) = (
            each for each in reactor._connections.values() if each.peer_port == modest.socket.getsockname()[1]
        )
        reactor.mute(connection, 100)
        reactor.mute(connection, 400)
        reactor.mute(connection, 50)

    began = time.monotonic()
    running.on_owner(mute)
    seconds_until_answered(modest)
    assert time.monotonic() - began >= 0.399, "the broker counts whole milliseconds"


def test_a_muted_connection_that_closes_is_forgotten(running: InProcessBroker, modest: WireClient) -> None:
    topic = create_topic(modest)
    before = running.metric("server.connections.open")
    with WireClient(running.bootstrap, client_id="greedy") as greedy:
        greedy.call(produce_request(topic, batch_of(b"v")), 12)
    deadline = time.monotonic() + 10
    while running.metric("server.connections.open") > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
