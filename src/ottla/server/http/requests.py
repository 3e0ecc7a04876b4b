"""The head of an HTTP request: cut from the stream as one frame, and read. Bodies are not taken."""

from __future__ import annotations

from sys import maxsize

from ottla.model.errors import Malformed
from ottla.model.values import NamedTuple
from ottla.protocol.frames import FrameCutter

_END = b"\r\n\r\n"


class HttpCutter(FrameCutter):
    """A frame is everything up to the empty line; each connection has one request, so there is only one."""

    def __init__(self, frame_bytes_max: int) -> None:
        super().__init__(frame_bytes_max)
        self.cuts_by_length = False

    @property
    def has_frame(self) -> bool:
        return _END in self._data or len(self._data) > self.frame_bytes_max

    def cut(self, count_max: int = maxsize) -> list[memoryview]:
        if count_max < 1 or not self.has_frame:
            return []
        end = self._data.find(_END)
        if not 0 <= end <= self.frame_bytes_max:
            raise Malformed(f"an HTTP request with a head of more than {self.frame_bytes_max} bytes")
        head, self._data = self._data[:end], b""
        return [memoryview(head)]


class HttpRequest(NamedTuple):
    method: str
    path: str  # without the query


def read_request(head: memoryview) -> HttpRequest | None:
    """None when the first line is not HTTP/1's."""
    line = bytes(head).partition(b"\r\n")[0].decode("latin-1")
    parts = line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[1].startswith("/"):
        return None
    return HttpRequest(parts[0], parts[1].partition("?")[0])
