"""kazoo's client against the service: every call of it, its errors, its watches, its sessions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo import exceptions
from kazoo.client import KazooClient, KazooState
from kazoo.protocol.states import EventType, WatchedEvent
from kazoo.security import OPEN_ACL_UNSAFE, make_acl, make_digest_acl

from ottla.client.zookeeper import ConnectionLost, ZooKeeperClient, ZooKeeperError
from ottla.protocol.zookeeper.operations import OpCode
from ottla.testing import CoordinationProcess

Connect = Callable[..., KazooClient]
PATIENCE_SECONDS = 30


def wait_until(condition: Callable[[], object], what: str = "it") -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)


class Seen:
    """Watch events in the order they came."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def __call__(self, event: WatchedEvent) -> None:
        self.events.append((event.type, event.path))

    def wait_for(self, *events: tuple[str, str]) -> None:
        wait_until(lambda: len(self.events) >= len(events))
        assert self.events == list(events)


def test_nodes_are_created_read_changed_and_deleted(client: KazooClient) -> None:
    assert client.create("/config", b"one") == "/config"
    data, stat = client.get("/config")
    assert (data, stat.version, stat.dataLength, stat.numChildren) == (b"one", 0, 3, 0)
    assert client.set("/config", b"two", version=0).version == 1
    with pytest.raises(exceptions.BadVersionError):
        client.set("/config", b"three", version=0)
    assert client.exists("/config").mzxid > stat.mzxid
    client.delete("/config", version=1)
    assert client.exists("/config") is None
    with pytest.raises(exceptions.NoNodeError):
        client.get("/config")


def test_every_error_has_its_exception(client: KazooClient) -> None:
    client.ensure_path("/a/b")
    with pytest.raises(exceptions.NodeExistsError):
        client.create("/a/b")
    with pytest.raises(exceptions.NotEmptyError):
        client.delete("/a")
    with pytest.raises(exceptions.NoNodeError):
        client.create("/x/y")
    client.create("/e", ephemeral=True)
    with pytest.raises(exceptions.NoChildrenForEphemeralsError):
        client.create("/e/child")
    with pytest.raises(exceptions.InvalidACLError):
        client.create("/n", acl=[make_acl("nonsense", "x", all=True)])


def test_sequential_nodes_count_on_and_create_can_make_parents(client: KazooClient) -> None:
    paths = [client.create("/queue/job-", sequence=True, makepath=True) for _ in range(3)]
    assert paths == [f"/queue/job-{number:010}" for number in range(3)]
    client.delete(paths[1])
    path, stat = client.create("/queue/job-", b"x", sequence=True, include_data=True)
    assert path == "/queue/job-0000000003"
    assert stat.dataLength == 1
    children, parent = client.get_children("/queue", include_data=True)
    assert sorted(children) == ["job-0000000000", "job-0000000002", "job-0000000003"]
    assert (parent.numChildren, parent.cversion) == (3, 5)
    client.delete("/queue", recursive=True)
    assert client.exists("/queue") is None


def test_data_may_be_large_empty_or_absent(client: KazooClient) -> None:
    large = bytes(900_000)
    client.create("/large", large)
    client.create("/empty", b"")
    assert client.get("/large")[0] == large
    assert client.get("/empty")[0] == b""
    with pytest.raises(exceptions.ConnectionLoss):  # more than jute.maxbuffer: the connection is closed
        client.create("/too-large", bytes(1_100_000))
    wait_until(lambda: client.connected, "reconnection")
    assert client.exists("/too-large") is None


def test_watches_fire_once_and_in_order(client: KazooClient, connect: Connect) -> None:
    client.create("/watched", b"0")
    data, children, created = Seen(), Seen(), Seen()
    client.get("/watched", watch=data)
    client.get_children("/watched", watch=children)
    client.exists("/not-yet", watch=created)
    other = connect()
    other.set("/watched", b"1")
    other.set("/watched", b"2")
    other.create("/watched/child")
    other.create("/not-yet")
    data.wait_for((EventType.CHANGED, "/watched"))
    children.wait_for((EventType.CHILD, "/watched"))
    created.wait_for((EventType.CREATED, "/not-yet"))
    deleted = Seen()
    client.exists("/not-yet", watch=deleted)
    other.delete("/not-yet")
    deleted.wait_for((EventType.DELETED, "/not-yet"))


def test_a_client_hears_of_a_change_before_it_sees_it(client: KazooClient, connect: Connect) -> None:
    """Both come on one connection, so the order in which kazoo gets them is the order of ours."""
    client.create("/flag", b"0")
    other = connect()
    heard = threading.Event()
    for number in range(50):
        heard.clear()
        client.get("/flag", watch=lambda _: heard.set())
        other.set_async("/flag", b"%d" % (number + 1))
        while client.get("/flag")[0] != b"%d" % (number + 1):
            pass
        # kazoo hands events to a thread of its own, in the order of the wire.
        assert heard.wait(PATIENCE_SECONDS)


def test_a_transaction_happens_as_a_whole_or_not_at_all(client: KazooClient) -> None:
    client.create("/a", b"old")
    transaction = client.transaction()
    transaction.create("/b", b"new")
    transaction.check("/a", version=0)
    transaction.set_data("/a", b"changed")
    transaction.delete("/b")
    created, checked, stat, deleted = transaction.commit()
    assert (created, checked, stat.version, deleted) == ("/b", True, 1, True)
    failing = client.transaction()
    failing.set_data("/a", b"lost")
    failing.check("/a", version=7)
    failing.create("/c")
    results = failing.commit()
    assert [type(result) for result in results] == [
        exceptions.RolledBackError,
        exceptions.BadVersionError,
        exceptions.RuntimeInconsistency,
    ]
    assert client.get("/a")[0] == b"changed"
    assert client.exists("/c") is None


def test_access_lists_keep_others_out(client: KazooClient, connect: Connect) -> None:
    owner = connect()
    owner.add_auth("digest", "ann:secret")
    mine = [make_digest_acl("ann", "secret", all=True)]
    owner.create("/private", b"x", acl=mine)
    with pytest.raises(exceptions.NoAuthError):
        client.get("/private")
    client.add_auth("digest", "ann:wrong")
    with pytest.raises(exceptions.NoAuthError):
        client.set("/private", b"y")
    assert owner.get("/private")[0] == b"x"
    acls, stat = owner.get_acls("/private")
    assert (acls, stat.aversion) == (mine, 0)
    owner.set_acls("/private", OPEN_ACL_UNSAFE, version=0)
    assert client.get("/private")[0] == b"x"
    late = connect(auth_data=[("digest", "ann:secret")])
    late.create("/by-auth", acl=[make_acl("auth", "", all=True)])
    assert [acl.id.scheme for acl in late.get_acls("/by-auth")[0]] == ["digest"]


def test_unknown_ways_to_authenticate_are_refused(connect: Connect) -> None:
    client = connect()
    with pytest.raises(exceptions.AuthFailedError):
        client.add_auth("nonsense", "x")


def test_sasl_is_refused_with_the_code_that_clients_know(service: CoordinationProcess) -> None:
    host, _, port = service.zookeeper.rpartition(":")
    silent = ZooKeeperClient(host, int(port))
    with pytest.raises(ZooKeeperError, match="authentication was refused"):
        silent.request(OpCode.SASL, b"")
    with pytest.raises(ConnectionLost):
        silent.exists("/")
    silent.close()


def test_sasl_with_a_password(tmp_path: Path) -> None:
    pytest.importorskip("puresasl")
    login = {"mechanism": "DIGEST-MD5", "username": "ann", "password": "secret"}
    with CoordinationProcess(tmp_path, {"ottla.zookeeper.sasl.users": "ann:secret"}) as service:
        ann = KazooClient(service.zookeeper, sasl_options=login)
        stranger = KazooClient(service.zookeeper)
        for client in (ann, stranger):
            client.start(PATIENCE_SECONDS)
        ann.create("/hers", b"x", acl=[make_acl("sasl", "ann", all=True)])
        assert ann.get("/hers")[0] == b"x"
        with pytest.raises(exceptions.NoAuthError):
            stranger.get("/hers")
        for client in (ann, stranger):
            client.stop()
            client.close()


def test_ephemeral_nodes_go_with_their_session(client: KazooClient, connect: Connect) -> None:
    gone = Seen()
    other = connect()
    other.create("/member", ephemeral=True)
    assert client.exists("/member", watch=gone).ephemeralOwner == other.client_id[0]
    other.stop()
    gone.wait_for((EventType.DELETED, "/member"))


def test_a_session_that_is_not_heard_of_expires(client: KazooClient, service: CoordinationProcess) -> None:
    host, _, port = service.zookeeper.rpartition(":")
    silent = ZooKeeperClient(host, int(port), session_timeout_ms=1)
    assert silent.session_timeout_ms == 400  # two ticks, the shortest there is
    silent.create(f"{client.chroot}/silent", flags=1)
    gone = Seen()
    client.exists("/silent", watch=gone)
    gone.wait_for((EventType.DELETED, "/silent"))
    with pytest.raises(ConnectionLost):
        silent.exists("/")
    silent.close()


def test_a_client_whose_session_has_ended_is_told_and_gets_a_new_one(connect: Connect) -> None:
    first = connect()
    session = first.client_id
    states: list[str] = []
    first.add_listener(states.append)
    thief = connect(client_id=session)
    thief.stop()  # takes the session over, and ends it
    wait_until(lambda: KazooState.LOST in states, "the loss")
    wait_until(lambda: states[-1] == KazooState.CONNECTED, "the new session")
    assert first.client_id[0] != session[0]


def test_a_session_moves_with_its_password(connect: Connect) -> None:
    first = connect()
    first.create("/kept", ephemeral=True)
    session_id, password = first.client_id
    states: list[str] = []
    first.add_listener(states.append)
    second = connect(client_id=(session_id, password))
    assert second.client_id[0] == session_id
    wait_until(lambda: KazooState.SUSPENDED in states, "the first connection's end")
    assert second.exists("/kept") is not None
    second.stop()


def test_a_wrong_password_is_an_expired_session(connect: Connect) -> None:
    first = connect()
    thief = connect(client_id=(first.client_id[0], b"x" * 16))
    assert thief.client_id[0] != first.client_id[0]
    assert first.exists("/") is not None


def test_sync_and_reads_of_other_clients_agree(client: KazooClient, connect: Connect) -> None:
    other = connect()
    client.create("/shared", b"")
    for number in range(20):
        client.set("/shared", b"%d" % number)
        other.sync("/shared")
        assert other.get("/shared")[0] == b"%d" % number


def test_the_version_is_one_that_clients_know(client: KazooClient) -> None:
    assert client.server_version() >= (3, 9, 0)
    assert client.command(b"ruok") == "imok"


def test_many_requests_in_flight_come_back_in_order(client: KazooClient) -> None:
    client.create("/many")
    creations = [client.create_async(f"/many/{number:04}", b"%d" % number) for number in range(500)]
    assert [creation.get(PATIENCE_SECONDS) for creation in creations] == [
        f"/many/{number:04}" for number in range(500)
    ]
    reads = [client.get_async(f"/many/{number:04}") for number in range(500)]
    assert [read.get(PATIENCE_SECONDS)[0] for read in reads] == [b"%d" % number for number in range(500)]
