"""Cuts what a ZooKeeper client sends: frames, unless the connection opens with a four-letter word."""

from __future__ import annotations

from sys import maxsize

from ottla.protocol.frames import FrameCutter

WORD_BYTES = 4


class OpeningCutter(FrameCutter):
    """Gives a four-letter word as a frame of four bytes, as no request has, and ignores what is behind it."""

    __slots__ = ("_is_begun", "_is_word")

    def __init__(self, frame_bytes_max: int) -> None:
        super().__init__(frame_bytes_max, copies=True)
        self._is_begun = False  # whether the first four bytes have been looked at
        self._is_word = False

    def feed(self, data: bytes, count_max: int = maxsize) -> list[memoryview]:
        if self._is_word:
            return []
        if not self._is_begun and len(self._data) + len(data) >= WORD_BYTES:
            self._is_begun = True
            word = (self._data + data)[:WORD_BYTES]
            # As a length it would be more than a gigabyte.
            if word.isalpha() and word.islower():
                self._is_word = True
                self._data = b""
                return [memoryview(word)]
        return FrameCutter.feed(self, data, count_max)  # compiled, `super` is not known here
