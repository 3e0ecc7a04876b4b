"""A path is legal here exactly where Apache ZooKeeper takes it."""

from __future__ import annotations

import pytest

from ottla.coordination.paths import is_legal, name_of, parent_of, problem


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a",
        "/a/b",
        "/a.b",
        "/.a",
        "/a..",
        "/...",
        "/a/.b/c..d",
        "/<default>",
        "/é/€",
        "/a b",
        "/ ",
        "/\xa0",
    ],
)
def test_legal_paths(path: str) -> None:
    assert is_legal(path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "start with '/'"),
        ("a", "start with '/'"),
        ("/a/", "end with '/'"),
        ("//", "end with '/'"),
        ("/a//b", "empty name"),
        ("/.", "relative"),
        ("/..", "relative"),
        ("/a/./b", "relative"),
        ("/a/../b", "relative"),
        ("/a/..", "relative"),
        ("/\x00", "character"),
        ("/a\x01", "character"),
        ("/a\x1f", "character"),
        ("/a\x7f", "character"),
        ("/a\x9f", "character"),
        ("/a\ud800", "character"),
        ("/a\uf8ff", "character"),
        ("/a\ufff0", "character"),
        ("/a\uffff", "character"),
        ("/a\U0001f600", "character"),
        ("/a\n", "character"),
    ],
)
def test_illegal_paths_and_why(path: str, reason: str) -> None:
    assert not is_legal(path)
    assert reason in problem(path)


def test_the_parts_of_a_path() -> None:
    assert [parent_of(path) for path in ("/a", "/a/b", "/a/b/c")] == ["/", "/a", "/a/b"]
    assert [name_of(path) for path in ("/a", "/a/b", "/a/b/c")] == ["a", "b", "c"]
