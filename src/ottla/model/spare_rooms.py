"""Buffers that are used again: memory that is new to a process costs several times what filling it does."""

from __future__ import annotations

from collections import deque


class SpareRooms:
    """The last few buffers that were given; each is taken again once nobody looks into it any more.

    Whoever gives a buffer may still have views of it, or of parts of it. For any thread.
    """

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._rooms: deque[bytearray] = deque(maxlen=count_max)
        self._bytes_max = bytes_max  # of one that is kept

    def give(self, room: bytearray) -> None:
        if len(room) <= self._bytes_max:
            self._rooms.append(room)

    def take(self, size: int) -> bytearray | None:
        """One of at least so many bytes, with whatever they were; None: there is none."""
        for _ in range(len(self._rooms)):
            try:
                room = self._rooms.popleft()
            except IndexError:  # another thread was faster
                return None
            if len(room) < size:
                continue  # larger ones are wanted now
            if _is_free(room):
                return room
            self._rooms.append(room)
        return None


def _is_free(room: bytearray) -> bool:
    try:
        room.append(0)  # refused as long as there is a view
    except BufferError:
        return False
    del room[-1]
    return True
