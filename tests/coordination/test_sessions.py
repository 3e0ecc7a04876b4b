"""Sessions: negotiated, kept alive, taken over, ended; and what becomes of them over a restart."""

from __future__ import annotations

import pytest

from coordination.served import Served, Visitor
from ottla.coordination.acls import Identity
from ottla.coordination.operations import Code, Create
from ottla.coordination.owners import is_session
from ottla.coordination.reads import Exists, GetChildren, GetEphemerals
from ottla.coordination.sessions import ExpiryQueue, Session, first_session_id
from ottla.coordination.watches import EventType, WatchEvent


@pytest.mark.parametrize(
    ("asked", "granted"), [(0, 4_000), (4_000, 4_000), (15_000, 15_000), (90_000, 40_000)]
)
def test_the_timeout_is_between_two_and_twenty_ticks(asked: int, granted: int) -> None:
    assert Served().client(timeout_ms=asked).session.timeout_ms == granted


def test_a_session_is_told_of_only_when_it_is_durable() -> None:
    served = Served()
    opened: list[Session] = []
    client = Visitor(served).client
    served.service.open_session(client, 10_000, opened.append)
    assert opened == []
    served.coordination.sync()
    assert opened
    assert len(opened[0].password) == 16
    assert opened[0].id in served.restarted().coordination.tree.sessions


def test_numbers_are_those_of_a_server_and_a_time_and_never_come_back() -> None:
    served = Served()
    first, second = served.client().session.id, served.client().session.id
    assert second == first + 1
    assert first >> 56 == 1
    served.clock.advance(1)
    third = served.restarted().client().session.id
    assert third > second
    assert all(map(is_session, (first, second, third)))
    assert first_session_id(1, 1_700_000_000_000).bit_length() <= 63


def test_a_session_that_is_heard_of_lives() -> None:
    served = Served()
    client = served.client(timeout_ms=4_000)
    client.do(Create("/e", ephemeral=True))
    for _ in range(20):
        served.pass_time(3_500)
        served.service.touch(client.client)
    served.pass_time(3_500)
    assert client.ask(Exists("/e")).ephemeral_owner == client.session.id  # a request counts too
    served.pass_time(3_500)
    assert not client.closed


def test_a_session_that_is_not_heard_of_ends_with_its_nodes_and_its_connection() -> None:
    served = Served()
    lost, other = served.client(timeout_ms=4_000), served.client(timeout_ms=40_000)
    lost.do(Create("/e", ephemeral=True))
    other.ask(Exists("/e", watch=True))
    served.pass_time(3_900)
    assert other.events() == []
    served.pass_time(1_200)
    assert lost.closed
    assert other.events() == [("NODE_DELETED", "/e")]
    assert lost.do(Create("/x")).code is Code.SESSION_EXPIRED
    assert lost.ask(Exists("/")) is Code.SESSION_EXPIRED
    assert lost.come_back(served).opened == [None]
    assert list(served.service.sessions()) == [other.session]


def test_time_in_which_nobody_could_be_heard_does_not_count() -> None:
    served = Served()
    client = served.client(timeout_ms=4_000)
    served.clock.advance(3_600_000)  # the machine was asleep
    served.service.tick(served.clock.monotonic_ms())
    served.pass_time(2_000)
    assert not client.closed
    served.pass_time(3_000)
    assert client.closed


def test_a_client_comes_back_with_its_password_and_only_with_it() -> None:
    served = Served()
    client = served.client()
    client.do(Create("/e", ephemeral=True))
    served.service.disconnect(client.client)
    assert client.come_back(served, bytes(16)).opened == [None]
    back = client.come_back(served)
    assert back.session is client.session
    assert back.do(Create("/e2", ephemeral=True)).ok
    assert back.ask(GetEphemerals("/")) == ["/e", "/e2"]
    assert back.ask(GetEphemerals("/e2")) == ["/e2"]


def test_who_takes_a_session_over_closes_the_connection_before() -> None:
    served = Served()
    client = served.client()
    client.submit(Create("/a"))
    back = client.come_back(served)
    assert client.closed
    served.coordination.sync()
    assert client.told == []  # nobody listens there any more
    served.service.disconnect(client.client)
    assert back.session.client is back.client
    assert back.do(Create("/b")).ok


def test_closing_ends_the_session_once() -> None:
    served = Served()
    client, other = served.client(), served.client()
    client.do(Create("/e", ephemeral=True))
    served.service.close_session(client.client, client.told.append)
    client.submit(Create("/late"))
    served.service.close_session(client.client, client.told.append)
    served.coordination.sync()
    codes = [one.code for one in client.told]  # type: ignore[union-attr]
    assert codes == [Code.OK, Code.SESSION_EXPIRED, Code.SESSION_EXPIRED]
    assert other.ask(GetChildren("/"))[0] == ["zookeeper"]


def test_sessions_and_their_nodes_outlive_a_restart_by_a_whole_timeout() -> None:
    served = Served()
    stays, goes = served.client(timeout_ms=10_000), served.client(timeout_ms=4_000)
    for name, client in (("stays", stays), ("goes", goes)):
        client.do(Create(f"/{name}", ephemeral=True))
    served.pass_time(3_000)
    after = served.restarted()
    after.pass_time(3_000)
    looks_on = after.client()
    assert sorted(looks_on.ask(GetChildren("/"))[0]) == ["goes", "stays", "zookeeper"]
    back = stays.come_back(after)
    assert back.session.timeout_ms == 10_000
    after.pass_time(3_000)
    assert sorted(looks_on.ask(GetChildren("/"))[0]) == ["stays", "zookeeper"]


def test_a_thousand_idle_sessions_are_not_looked_at() -> None:
    queue = ExpiryQueue(500, 0)
    sessions = [Session(number, bytes(16), 10_000) for number in range(1_000)]
    for session in sessions:
        queue.touch(session, 0)
    buckets = queue._buckets
    assert list(buckets) == [21]
    for now_ms in range(0, 10_000, 500):
        assert queue.due(now_ms) == []
        for session in sessions[:10]:
            queue.touch(session, now_ms + 1)
            queue.touch(session, now_ms + 2)
    assert len(buckets) == 2
    expired = [session for now_ms in range(10_000, 11_001, 500) for session in queue.due(now_ms)]
    assert expired == sessions[10:]


def test_what_one_client_proves_says_nothing_of_others_at_its_address() -> None:
    served = Served()
    proven = served.client(Identity("digest", "a:b"))
    other = served.client()
    assert Identity("digest", "a:b") in proven.client.identities
    assert other.client.identities == (Identity("ip", "127.0.0.1"),)


def test_a_connection_that_is_gone_hears_nothing() -> None:
    served = Served()
    visitor = served.client()
    served.service.disconnect(visitor.client)
    visitor.client.notify(WatchEvent(EventType.NODE_CREATED, "/a", 1))
    assert visitor.told == []
