"""The checker of histories finds what is broken, and nothing in what is not."""

from __future__ import annotations

import pytest

from coordination.histories import Call, problems


def write(
    client: int,
    began: float,
    ended: float | None,
    value: bytes,
    zxid: int = 0,
    version: int = -1,
    expected_version: int = -1,
) -> Call:
    return Call(client, "write", "/a", began, ended, value, zxid, version, expected_version)


def read(client: int, began: float, value: bytes | None, zxid: int, version: int, path: str = "/a") -> Call:
    return Call(client, "read", path, began, began + 0.5, value, zxid, version)


def watching(call: Call) -> Call:
    call.watch = True
    return call


def sync(client: int, began: float) -> Call:
    return Call(client, "sync", "/", began, began + 0.5)


def event(client: int, at: float, zxid: int) -> Call:
    return Call(client, "event", "/a", at, at, None, zxid)


def connect(client: int, at: float) -> Call:
    return Call(client, "connect", "", at, at)


ONE, TWO = write(1, 1, 2, b"one", 11, 1), write(2, 3, 4, b"two", 12, 2)
OTHER = Call(1, "write", "/b", 5, 6, b"b", 13, 1)

RIGHT = {
    "nothing": [],
    "one after the other": [ONE, TWO, read(1, 5, b"two", 12, 2)],
    "at the same time, in either order": [write(1, 1, 5, b"late", 12, 2), write(2, 1, 5, b"early", 11, 1)],
    "an old view, as a follower gives it": [ONE, TWO, read(3, 5, b"one", 11, 1), read(3, 6, b"two", 12, 2)],
    "a write that was lost": [ONE, write(2, 3, None, b"lost"), read(1, 5, b"one", 11, 1)],
    "an answer that was lost": [ONE, write(2, 3, None, b"seen"), read(1, 5, b"seen", 12, 2)],
    "a lost write that was overwritten": [ONE, write(2, 3, None, b"lost"), write(1, 5, 6, b"x", 13, 3)],
    "fresh behind a sync": [ONE, TWO, sync(3, 5), read(3, 6, b"two", 12, 2)],
    "an event first": [
        ONE,
        watching(read(3, 2.1, b"one", 11, 1)),
        TWO,
        event(3, 4, 12),
        read(3, 5, b"two", 12, 2),
    ],
    "an event while the read was under way": [
        ONE,
        watching(read(3, 2.1, b"one", 11, 1)),
        TWO,
        read(3, 5, b"two", 12, 2),
        event(3, 5.2, 12),
    ],
    "a watch that went with its connection": [
        ONE,
        watching(read(3, 2.1, b"one", 11, 1)),
        connect(3, 3),
        TWO,
        read(3, 5, b"two", 12, 2),
    ],
    "a node that was not there yet": [read(3, 0, None, 0, -1), ONE],
    "the condition held": [ONE, write(2, 3, 4, b"two", 12, 2, expected_version=1)],
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_history_has_no_problem(name: str) -> None:
    assert problems(RIGHT[name]) == []


BROKEN = {
    "the order does not fit the times": (
        [write(1, 1, 2, b"one", 12, 2), write(2, 3, 4, b"two", 11, 1)],
        "came before it",
    ),
    "two writes in one transaction": (
        [write(1, 1, 9, b"one", 11, 1), write(2, 1, 9, b"two", 11, 2)],
        "have transaction 11",
    ),
    "an acknowledged write is lost": (
        [ONE, TWO, write(1, 5, 6, b"three", 13, 2)],
        "the versions do not",
    ),
    "a version is skipped": ([ONE, write(2, 3, 4, b"two", 12, 3)], "the versions do not"),
    "more is skipped than was lost": (
        [ONE, write(2, 3, None, b"lost"), write(1, 5, 6, b"x", 13, 4)],
        "the versions do not",
    ),
    "the condition did not hold": (
        [ONE, write(2, 3, 4, b"two", 12, 2, expected_version=0)],
        "another version than it asked for",
    ),
    "a value nobody wrote": ([ONE, read(2, 5, b"ghost", 11, 1)], "what nobody wrote"),
    "a transaction nobody made": ([ONE, read(2, 5, b"one", 99, 1)], "what nobody wrote"),
    "the future": ([read(2, 0, b"one", 11, 1), ONE], "written later"),
    "back in time": ([ONE, TWO, read(3, 5, b"two", 12, 2), read(3, 6, b"one", 11, 1)], "older than"),
    "back in time over another path": (
        [ONE, TWO, OTHER, read(3, 7, b"b", 13, 1, "/b"), read(3, 8, b"one", 11, 1)],
        "older than",
    ),
    "behind its own write": ([ONE, TWO, read(2, 5, b"one", 11, 1)], "older than"),
    "old behind a sync": ([ONE, TWO, sync(3, 5), read(3, 6, b"one", 11, 1)], "does not show transaction 12"),
    "data before its event": (
        [ONE, watching(read(3, 2.1, b"one", 11, 1)), TWO, read(3, 5, b"two", 12, 2), event(3, 6, 12)],
        "whose event had not come",
    ),
    "a node that has vanished": ([ONE, read(1, 5, None, 0, -1)], "older than"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_is_found(name: str) -> None:
    history, complaint = BROKEN[name]
    found = problems(history)
    assert found
    assert all(complaint in problem for problem in found), found


def test_where_reads_are_linearizable_an_old_view_is_broken() -> None:
    history = RIGHT["an old view, as a follower gives it"]
    assert "does not show transaction 12" in problems(history, linearizable_reads=True)[0]
    seen_by_one_only = [
        ONE,
        write(2, 3, 20, b"two", 12, 2),
        read(3, 5, b"two", 12, 2),
        read(4, 6, b"one", 11, 1),
    ]
    assert problems(seen_by_one_only) == []
    assert "does not show" in problems(seen_by_one_only, linearizable_reads=True)[0]
