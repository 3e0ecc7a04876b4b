"""The tree decides as ZooKeeper does: codes, their order of precedence, versions, zxids, sequence numbers."""

from __future__ import annotations

import pytest

from ottla.coordination.operations import (
    Check,
    CloseSession,
    Code,
    Create,
    Delete,
    Multi,
    Operation,
    Result,
    SetData,
)
from ottla.coordination.paths import RESERVED
from ottla.coordination.stat import Stat
from ottla.coordination.znodes import Tree

SESSION = 7


class Znodes:
    """A tree and a clock that goes on by 10 ms with each operation."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.now_ms = 1_000

    def do(self, operation: Operation, session_id: int = SESSION) -> Result:
        self.now_ms += 10
        txn, result = self.tree.decide(operation, session_id, self.now_ms)
        if txn is not None:
            self.tree.apply(txn)
        return result

    def all(self, *operations: Operation) -> Znodes:
        for operation in operations:
            assert self.do(operation).ok, operation
        return self

    def stat(self, path: str) -> Stat:
        stat = self.tree.exists(path)
        assert stat is not None, path
        return stat


@pytest.fixture
def znodes() -> Znodes:
    return Znodes().all(
        Create("/a", b"data"),
        Create("/a/b"),
        Create("/e", ephemeral=True),
        SetData("/a/b", b"1"),
        SetData("/a/b", b"2"),
    )


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (Create("/a"), Code.NODE_EXISTS),
        (Create("/"), Code.NODE_EXISTS),
        (Create("/x/y"), Code.NO_NODE),
        (Create("/e/child"), Code.NO_CHILDREN_FOR_EPHEMERALS),
        (Create("/e/child", sequential=True), Code.NO_CHILDREN_FOR_EPHEMERALS),
        (Create("no-slash"), Code.BAD_ARGUMENTS),
        (Create("/a/"), Code.BAD_ARGUMENTS),
        (Create("/a/.."), Code.BAD_ARGUMENTS),
        (Create("/a/..", sequential=True), Code.OK),  # its name is "..0000000001"
        (Create("/a/", sequential=True), Code.OK),  # its name is the number alone
        (Create("/a//", sequential=True), Code.BAD_ARGUMENTS),
        (Create("/c", None), Code.OK),
        (Delete("/x"), Code.NO_NODE),
        (Delete("/"), Code.BAD_ARGUMENTS),
        (Delete("/a"), Code.NOT_EMPTY),
        (Delete("/a", 5), Code.BAD_VERSION),  # comes before NOT_EMPTY
        (Delete("/a/b", 1), Code.BAD_VERSION),
        (Delete("/a/b", 2), Code.OK),
        (Delete("/a/b"), Code.OK),
        (Delete("a"), Code.BAD_ARGUMENTS),
        (SetData("/x", b""), Code.NO_NODE),
        (SetData("/a/b", b"", 1), Code.BAD_VERSION),
        (SetData("/a/b", b"", 2), Code.OK),
        (SetData("/", b"root"), Code.OK),
        (SetData("/a/", b""), Code.BAD_ARGUMENTS),
        (Check("/a/b", 2), Code.OK),
        (Check("/a/b", 3), Code.BAD_VERSION),
        (Check("/a/b"), Code.OK),
        (Check("/x"), Code.NO_NODE),
        (Multi([]), Code.OK),
        (CloseSession(99), Code.OK),
    ],
)
def test_each_operation_gets_zookeepers_code(znodes: Znodes, operation: Operation, code: Code) -> None:
    before = znodes.tree.last_zxid
    result = znodes.do(operation)
    assert result.code is code
    assert result.zxid == znodes.tree.last_zxid
    if code is not Code.OK:
        assert znodes.tree.last_zxid == before


def test_a_new_node_has_its_transaction_in_every_zxid() -> None:
    znodes = Znodes().all(Create("/a"))
    result = znodes.do(Create("/a/b", b"12345"))
    stat = Stat(2, 2, 1_020, 1_020, 0, 0, 0, 0, 5, 0, 2)
    assert result.steps[0].stat == stat == znodes.stat("/a/b")
    assert result.steps[0].path == "/a/b"
    assert znodes.stat("/a") == Stat(1, 1, 1_010, 1_010, 0, 1, 0, 0, 0, 1, 2)


def test_data_changes_move_version_mzxid_and_mtime_only() -> None:
    znodes = Znodes().all(Create("/a", b"1"), SetData("/a", b"22"), SetData("/a", None))
    assert znodes.stat("/a") == Stat(1, 3, 1_010, 1_030, 2, 0, 0, 0, 0, 0, 1)
    assert znodes.tree.get("/a") == (None, znodes.stat("/a"))


def test_children_move_the_parents_cversion_and_pzxid_only() -> None:
    znodes = Znodes().all(Create("/a"), Create("/a/b"), Create("/a/c"), Delete("/a/b"))
    assert znodes.stat("/a") == Stat(1, 1, 1_010, 1_010, 0, 3, 0, 0, 0, 1, 4)
    assert znodes.tree.children("/a") == ["c"]


@pytest.mark.parametrize(("version", "following"), [(2**31 - 1, -(2**31)), (-2, 0)])
def test_a_version_that_overflows_is_never_any_version(version: int, following: int) -> None:
    znodes = Znodes().all(Create("/a"))
    znodes.tree.nodes["/a"].version = version
    znodes.all(SetData("/a", b""))
    assert znodes.stat("/a").version == following


def test_sequence_numbers_count_creations_and_never_come_back() -> None:
    znodes = Znodes().all(Create("/q"))
    paths = [znodes.do(Create("/q/n-", sequential=True)).steps[0].path for _ in range(2)]
    assert paths == ["/q/n-0000000000", "/q/n-0000000001"]
    znodes.all(Delete("/q/n-0000000000"), Delete("/q/n-0000000001"), Create("/q/other"))
    assert znodes.do(Create("/q/n-", sequential=True)).steps[0].path == "/q/n-0000000003"


def test_a_taken_sequential_name_is_refused() -> None:
    znodes = Znodes().all(Create("/q"), Create("/q/n-0000000001"))
    assert znodes.do(Create("/q/n-", sequential=True)).code is Code.NODE_EXISTS


def test_ephemeral_nodes_go_with_their_session_in_one_transaction() -> None:
    znodes = Znodes().all(Create("/a"), Create("/a/e", ephemeral=True), Create("/e", ephemeral=True))
    znodes.do(Create("/other", ephemeral=True), session_id=8)
    assert znodes.stat("/e").ephemeral_owner == SESSION
    zxid = znodes.do(CloseSession(SESSION)).zxid
    assert sorted(znodes.tree.nodes.keys() - RESERVED) == ["/a", "/other"]
    assert znodes.stat("/a").pzxid == znodes.stat("/").pzxid == zxid
    assert znodes.tree.ephemerals == {8: {"/other"}}
    assert znodes.do(CloseSession(SESSION)).zxid == zxid  # nothing left to do


def test_a_deleted_ephemeral_node_no_longer_belongs_to_its_session() -> None:
    znodes = Znodes().all(Create("/e", ephemeral=True), Delete("/e"), Create("/e"), CloseSession(SESSION))
    assert "/e" in znodes.tree.nodes


def test_the_steps_of_a_multi_see_each_other_and_share_a_zxid() -> None:
    znodes = Znodes()
    result = znodes.do(
        Multi(
            [
                Create("/a", b"1"),
                Create("/a/s-", sequential=True),
                Create("/a/s-", sequential=True),
                SetData("/a", b"22", 0),
                Check("/a", 1),
                Delete("/a/s-0000000000"),
                Create("/a/s-0000000000"),
            ]
        )
    )
    assert result.ok
    assert result.zxid == 1
    assert [step.path for step in result.steps] == [
        "/a",
        "/a/s-0000000000",
        "/a/s-0000000001",
        None,
        None,
        None,
        "/a/s-0000000000",
    ]
    assert result.steps[3].stat == Stat(1, 1, 1_010, 1_010, 1, 2, 0, 0, 2, 2, 1)
    assert znodes.stat("/a") == Stat(1, 1, 1_010, 1_010, 1, 4, 0, 0, 2, 2, 1)


def test_a_multi_that_fails_changes_nothing_and_says_where() -> None:
    znodes = Znodes().all(Create("/a"))
    before = znodes.stat("/"), znodes.stat("/a")
    result = znodes.do(
        Multi([SetData("/a", b"x"), Create("/b"), Delete("/b"), Check("/a", 0), Create("/c"), Delete("/a")])
    )
    assert result.code is Code.BAD_VERSION
    assert result.failed_step == 3
    assert [step.code for step in result.steps] == [
        Code.OK,
        Code.OK,
        Code.OK,
        Code.BAD_VERSION,
        Code.RUNTIME_INCONSISTENCY,
        Code.RUNTIME_INCONSISTENCY,
    ]
    assert before == (znodes.stat("/"), znodes.stat("/a"))
    assert sorted(znodes.tree.nodes.keys() - RESERVED) == ["/a"]


def test_a_multi_of_checks_alone_makes_no_transaction() -> None:
    znodes = Znodes().all(Create("/a"))
    txn, result = znodes.tree.decide(Multi([Check("/a", 0), Check("/")]), SESSION, 0)
    assert txn is None
    assert result.ok


def test_deciding_changes_nothing() -> None:
    znodes = Znodes().all(Create("/a"))
    before = {path: node.stat() for path, node in znodes.tree.nodes.items()}
    txn, _ = znodes.tree.decide(Multi([Create("/a/b"), SetData("/a", b"x")]), SESSION, 5)
    assert txn is not None
    assert {path: node.stat() for path, node in znodes.tree.nodes.items()} == before


def test_reading_what_is_not_there() -> None:
    tree = Tree()
    assert tree.get("/x") is tree.exists("/x") is tree.children("/x") is None
