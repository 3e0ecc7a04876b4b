"""The client of an Apache ZooKeeper ensemble: nothing is lost or done twice, whatever breaks on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from interop.apache_zookeeper import Ensemble, ensemble
from ottla.coordination.ensemble import KazooCoordination
from ottla.coordination.operations import (
    Check,
    Code,
    Create,
    Delete,
    Multi,
    Operation,
    Result,
    SetAcl,
    SetData,
)
from ottla.coordination.watches import EventType, WatchEvent

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with ensemble(tmp_path_factory.mktemp("zookeeper"), servers=1) as servers:
        yield servers


class Opened:
    def __init__(self, hosts: str, session_timeout_ms: int = 10_000) -> None:
        self.ended: list[bool] = []
        self.coordination = KazooCoordination(
            hosts,
            lambda call: None,
            lambda: self.ended.append(True),
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=60_000,
        )
        self.coordination.start()

    def do(self, operation: Operation) -> Result:
        results: list[Result] = []
        self.coordination.submit(operation, results.append)
        assert results == []  # never from inside
        self.coordination.sync()
        [result] = results
        return result


@pytest.fixture
def opened(servers: Ensemble, request: pytest.FixtureRequest) -> Iterator[Opened]:
    opened = Opened(f"{servers.addresses}/{abs(hash(request.node.name))}")
    yield opened
    opened.coordination.close()


def test_results_are_those_of_the_embedded_tree(opened: Opened) -> None:
    created = opened.do(Create("/a", b"1"))
    path, stat = created.steps[0].path, created.steps[0].stat
    assert (created.code, path) == (Code.OK, "/a")
    assert stat is not None
    assert (stat.version, stat.data_length, stat.czxid) == (0, 1, created.zxid)
    changed = opened.do(Multi([Check("/a", 0), SetData("/a", b"22", 0), Create("/a/n-", sequential=True)]))
    assert changed.ok
    assert changed.zxid > created.zxid
    assert changed.steps[1].stat is not None
    assert changed.steps[1].stat.version == 1
    assert changed.steps[2].path == "/a/n-0000000000"
    assert opened.coordination.children("/a") == ["n-0000000000"]
    assert opened.coordination.read("/a") == (b"22", changed.steps[1].stat)
    failed = opened.do(Multi([SetData("/a", b""), Create("/a"), Delete("/a")]))
    assert failed.code is Code.NODE_EXISTS
    assert [step.code for step in failed.steps] == [Code.OK, Code.NODE_EXISTS, Code.RUNTIME_INCONSISTENCY]
    assert opened.do(Delete("/a")).code is Code.NOT_EMPTY
    assert opened.do(Multi([Delete("/a/n-0000000000"), Delete("/a")])).ok
    assert opened.coordination.exists("/a") is None
    assert opened.do(SetAcl("/", [])).code is Code.UNIMPLEMENTED


def test_a_refusal_shows_what_somebody_else_did(opened: Opened) -> None:
    other = KazooClient(opened.coordination._hosts)
    other.start()
    other.create("/theirs", b"data")
    other.stop()
    other.close()
    assert opened.coordination.read("/theirs") is None
    assert opened.do(Create("/theirs", b"ours")).code is Code.NODE_EXISTS
    found = opened.coordination.read("/theirs")
    assert found is not None
    assert found[0] == b"data"
    assert opened.coordination.children("/") == ["ottla", "theirs"]


class Lost:
    exception = ConnectionLoss()


@pytest.mark.parametrize("losses", [1, 3])
def test_a_change_whose_answer_is_lost_is_not_done_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, losses: int
) -> None:
    opened.do(Multi([Create("/a"), Create("/q")]))
    committed = opened.coordination._committed
    left = [Lost()] * losses

    def lose(answer: Any) -> None:
        committed(left.pop() if left else answer)

    monkeypatch.setattr(opened.coordination, "_committed", lose)
    for version in range(3):
        result = opened.do(Multi([SetData("/a", b"%d" % version), Create("/q/n-", b"x", sequential=True)]))
        assert result.ok
        assert result.steps[0].stat is not None
        assert result.steps[0].stat.version == version + 1
        assert result.steps[1].path == f"/q/n-{version:010}"
    assert len(opened.coordination.children("/q") or []) == 3


def test_a_change_that_never_arrived_is_sent_again(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    client = opened.coordination._client
    transaction, lost = client.transaction, [True]

    class NeverSent:
        def __init__(self, real: Any) -> None:
            self.real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def commit_async(self) -> Any:
            if not lost:
                return self.real.commit_async()
            lost.pop()
            answer = client.handler.async_result()
            answer.set_exception(ConnectionLoss())
            return answer

    monkeypatch.setattr(client, "transaction", lambda: NeverSent(transaction()))
    result = opened.do(Create("/n-", sequential=True))
    assert (result.code, result.steps[0].path) == (Code.OK, "/n-0000000001")


def test_a_session_that_is_over_changes_nothing_any_more(opened: Opened) -> None:
    coordination = opened.coordination
    opened.do(Create("/e", ephemeral=True))
    thief = KazooClient(coordination._hosts, client_id=coordination._client.client_id)
    thief.start()
    thief.stop()
    thief.close()
    while not opened.ended:
        coordination._happened.get(timeout=60)()
    assert opened.do(Create("/late")).code is Code.SESSION_EXPIRED


def test_watches_are_told_on_the_owners_loop_and_reads_are_up_to_date(opened: Opened) -> None:
    coordination = opened.coordination
    opened.do(Create("/a", b"1"))
    seen: list[tuple[WatchEvent, bytes | None]] = []

    def note(event: WatchEvent) -> None:
        found = coordination.read("/a")
        seen.append((event, found[0] if found else None))

    coordination.watch_data("/a", note)
    coordination.sync()
    other = KazooClient(coordination._hosts)
    other.start()
    other.set("/a", b"2")
    while not seen:
        coordination._happened.get(timeout=60)()
    assert seen == [(WatchEvent(EventType.NODE_DATA_CHANGED, "/a"), b"2")]
    coordination.watch_children("/a", note)
    coordination.sync()
    other.create("/a/b")
    while len(seen) < 2:
        coordination._happened.get(timeout=60)()
    assert seen[1][0] == WatchEvent(EventType.NODE_CHILDREN_CHANGED, "/a")
    assert coordination.children("/a") == ["b"]
    other.stop()
    other.close()


def test_changes_go_on_while_servers_are_killed(tmp_path: Path) -> None:
    with ensemble(tmp_path, servers=3) as servers:
        opened = Opened(servers.addresses, session_timeout_ms=20_000)
        try:
            opened.do(Create("/q"))
            results: list[Result] = []
            for number in range(90):
                data = b"%d" % number
                opened.coordination.submit(Create("/q/n-", data, sequential=True), results.append)
                if number == 30:
                    servers.leader().kill()
                if number == 60:
                    dead = next(server for server in servers.servers if server.mode() is None)
                    dead.start()
                    dead.wait_until_serving()
                    servers.leader().kill()
                opened.coordination.sync()
            assert [result.steps[0].path for result in results] == [f"/q/n-{n:010}" for n in range(90)]
            opened.coordination.refresh(["/q"], lambda: None, below=True)
            opened.coordination.sync()
            names = opened.coordination.children("/q")
            assert names == [f"n-{number:010}" for number in range(90)]
            assert [opened.coordination.read(f"/q/{name}")[0] for name in names] == [  # type: ignore[index]
                b"%d" % number for number in range(90)
            ]
        finally:
            opened.coordination.close()
