"""How what a client sends is cut: a four-letter word, or frames."""

from __future__ import annotations

import pytest

from ottla.protocol.zookeeper.frames import OpeningCutter

HELLO, GET = b"\0\0\0\x05hello", b"\0\0\0\x03get"


@pytest.mark.parametrize("size", [1, 3, 4, 5, 100])
def test_frames_are_cut_however_they_arrive(size: int) -> None:
    cutter = OpeningCutter(1_000)
    sent = HELLO + GET * 3
    frames = [bytes(frame) for at in range(0, len(sent), size) for frame in cutter.feed(sent[at : at + size])]
    assert frames == [b"hello", b"get", b"get", b"get"]
    assert cutter.is_empty()


def test_what_is_not_whole_yet_is_kept() -> None:
    cutter = OpeningCutter(1_000)
    assert [bytes(frame) for frame in cutter.feed(HELLO + GET * 2, 1)] == [b"hello"]
    assert not cutter.is_empty()
    assert [bytes(frame) for frame in cutter.cut()] == [b"get", b"get"]
    assert cutter.is_empty()
    assert cutter.feed(GET[:2]) == []
    assert not cutter.is_empty()


def test_a_word_that_opens_is_a_frame_and_what_follows_is_ignored() -> None:
    cutter = OpeningCutter(1_000)
    assert cutter.feed(b"ru") == []
    assert [bytes(frame) for frame in cutter.feed(b"ok\n")] == [b"ruok"]
    assert cutter.feed(b"stat") == []
    assert cutter.is_empty()


def test_letters_behind_a_first_frame_are_no_word() -> None:
    cutter = OpeningCutter(2**31 - 1)
    cutter.feed(HELLO)
    assert cutter.feed(b"ruok") == []  # the length of a very large frame
    assert not cutter.is_empty()
