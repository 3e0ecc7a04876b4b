"""A buffer is used again when nobody can see it any more, and not before."""

from __future__ import annotations

from ottla.model.spare_rooms import SpareRooms


def test_a_buffer_with_a_view_is_not_given_out() -> None:
    rooms = SpareRooms(4, 100)
    room = bytearray(b"x" * 50)
    view = memoryview(room)[10:20].toreadonly()
    rooms.give(room)
    assert rooms.take(50) is None
    view.release()
    assert rooms.take(50) is room
    assert room == b"x" * 50
    assert rooms.take(50) is None


def test_views_of_views_count() -> None:
    rooms = SpareRooms(4, 100)
    room = bytearray(10)
    view = memoryview(room)
    part = view[2:4]
    view.release()
    rooms.give(room)
    assert rooms.take(1) is None
    assert bytes(part) == b"\0\0"
    del part
    assert rooms.take(1) is room


def test_too_small_ones_go_and_too_large_ones_are_not_kept() -> None:
    rooms = SpareRooms(4, 100)
    rooms.give(bytearray(101))
    assert rooms.take(1) is None
    rooms.give(bytearray(10))
    assert rooms.take(11) is None
    assert rooms.take(1) is None


def test_only_the_last_ones_are_kept() -> None:
    rooms = SpareRooms(2, 100)
    given = [bytearray(1), bytearray(2), bytearray(3)]
    for room in given:
        rooms.give(room)
    assert rooms.take(1) is given[1]
    assert rooms.take(1) is given[2]
    assert rooms.take(1) is None
