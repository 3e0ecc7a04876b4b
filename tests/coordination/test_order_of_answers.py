"""A client sees answers in order, an event before the new data, and nothing that a power cut takes back."""

from __future__ import annotations

import random

import pytest

from coordination.served import Served, Visitor
from faults.power_cut import PowerCut, SimulatedFiles
from ottla.coordination.client import Answer
from ottla.coordination.operations import Code, Create, Delete, Result, SetData
from ottla.coordination.reads import AddWatch, Exists, GetChildren, GetData, MultiRead, Sync
from ottla.coordination.watches import WatchEvent


@pytest.fixture
def served() -> Served:
    served = Served()
    client = served.client()
    for path in ("/a", "/b"):
        client.do(Create(path, b"0"))
    return served


def kinds(visitor: Visitor) -> list[object]:
    """Codes of results, data of answers, types of events."""
    told: list[object] = []
    for one in visitor.told:
        if isinstance(one, WatchEvent):
            told.append(one.type.name)
        elif isinstance(one, Result):
            told.append(one.code.name)
        else:
            told.append(one.value[0] if one.code is Code.OK else one.code.name)
    return told


def test_a_read_of_what_is_durable_is_answered_at_once(served: Served) -> None:
    client, other = served.client(), served.client()
    other.submit(SetData("/b", b"1"))
    before = served.files.operations
    client.read(GetData("/a"))
    assert kinds(client) == [b"0"]
    assert served.files.operations == before


@pytest.mark.parametrize("read", [GetData("/a"), GetChildren("/a"), Exists("/a"), MultiRead([GetData("/a")])])
@pytest.mark.parametrize("change", [SetData("/a", b"1"), Delete("/a"), Create("/a/c")])
def test_a_read_of_what_is_not_durable_yet_waits(served: Served, read: GetData, change: SetData) -> None:
    client, other = served.client(), served.client()
    other.submit(change)
    client.read(read)
    assert client.told == []
    served.coordination.sync()
    assert len(client.told) == 1


def test_a_read_waits_behind_the_clients_own_write(served: Served) -> None:
    client = served.client()
    client.submit(SetData("/b", b"1"))
    client.read(GetData("/a"))
    client.submit(SetData("/none", b""))
    client.read(GetData("/b"))
    assert client.told == []
    served.coordination.sync()
    assert kinds(client) == ["OK", b"0", "NO_NODE", b"1"]


def test_sync_waits_for_everything_before_it(served: Served) -> None:
    client, other = served.client(), served.client()
    other.submit(SetData("/a", b"1"))
    client.read(Sync("/"))
    assert client.told == []
    served.coordination.sync()
    client.told.clear()
    client.read(Sync("/"))
    assert len(client.told) == 1


def test_the_event_comes_before_the_new_data(served: Served) -> None:
    client, other = served.client(), served.client()
    client.read(GetData("/a", watch=True))
    other.submit(SetData("/a", b"1"))
    client.read(GetData("/a"))
    client.read(GetData("/b"))
    assert kinds(client) == [b"0"]
    served.coordination.sync()
    assert kinds(client) == [b"0", "NODE_DATA_CHANGED", b"1", b"0"]


def test_an_event_comes_behind_the_answer_that_set_its_watch(served: Served) -> None:
    client, other = served.client(), served.client()
    client.submit(SetData("/b", b"1"))
    client.read(GetData("/a", watch=True))
    other.submit(SetData("/a", b"1"))
    served.coordination.sync()
    assert kinds(client) == ["OK", b"0", "NODE_DATA_CHANGED"]


def test_an_answers_zxid_is_never_ahead_of_the_events_that_have_left(served: Served) -> None:
    """Else a client that reconnects behind it would not ask for them any more."""
    client, other = served.client(), served.client()
    client.read(AddWatch("/", 1))
    for number in range(3):
        other.submit(SetData("/a", b"%d" % number))
        client.read(GetData("/a"))
        other.submit(SetData("/b", b"%d" % number))
    served.coordination.sync()
    client.read(GetData("/b"))
    newest_event = 0
    for one in client.told[1:]:
        if isinstance(one, WatchEvent):
            assert one.zxid > newest_event
            newest_event = one.zxid
        else:
            assert isinstance(one, Answer)
            assert newest_event <= one.zxid <= newest_event + 1
    assert served.service.zxid == newest_event


def test_requests_made_from_inside_an_answer_are_in_order_too(served: Served) -> None:
    client, other = served.client(), served.client()

    def answered(result: Result) -> None:
        client.told.append(result)
        client.read(GetData("/b"))  # its change is durable by then, but its event has not left yet
        client.read(GetData("/a"))

    client.read(Exists("/b", watch=True))
    client.told.clear()
    served.service.submit(client.client, SetData("/a", b"1"), answered)
    other.submit(SetData("/b", b"1"))
    served.coordination.sync()
    assert kinds(client) == ["OK", "NODE_DATA_CHANGED", b"1", b"1"]


def test_nothing_is_delivered_to_a_client_that_has_gone(served: Served) -> None:
    client, other = served.client(), served.client()
    client.read(GetData("/a", watch=True))
    client.told.clear()
    other.submit(SetData("/a", b"1"))
    client.submit(Create("/c"))
    client.read(GetData("/a"))
    served.service.disconnect(client.client)
    served.coordination.sync()
    assert client.told == []
    assert other.ask(Exists("/c"))


@pytest.mark.parametrize("seed", range(40))
def test_a_power_cut_takes_back_nothing_that_a_client_was_told(seed: int) -> None:
    rng = random.Random(seed)
    served = Served(SimulatedFiles(), snapshot_log_bytes=2_000)
    clients = [served.client() for _ in range(3)]
    clients[0].do(Create("/a", b"0"))
    served.files.stop_at = served.files.operations + rng.randrange(1, 60)
    try:
        while True:
            for number in range(rng.randrange(6)):
                path = rng.choice(("/a", "/b"))
                operation = rng.choice((Create(path), Delete(path), SetData(path, b"%d" % number)))
                rng.choice(clients).submit(operation)
                rng.choice(clients).read(GetData(rng.choice(("/a", "/b")), watch=True))
            served.coordination.sync()
    except PowerCut:
        pass
    newest = max((one.zxid for client in clients for one in client.told), default=0)
    after = Served(served.files.cut(seed), served.clock)
    assert after.service.zxid >= newest
    for client in clients:
        zxids = [one.zxid for one in client.told]
        assert zxids == sorted(zxids)
        assert client.come_back(after).opened == [after.service._sessions[client.session.id]]
