"""Serves pages by path to GET and HEAD, one request for each connection.

A page is made in pieces. All pages together get a small slice of a turn, so that neither a scrape of ten
thousand partitions nor a flood of scrapes holds up those who produce and consume.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus

from ottla.model.clock import Clock
from ottla.model.limits import (
    HTTP_CONNECTIONS_MAX,
    HTTP_IDLE_MS_MAX,
    HTTP_REQUEST_BYTES_MAX,
    HTTP_TURN_US_MAX,
)
from ottla.model.values import dataclass
from ottla.protocol.codec import Chunk
from ottla.server.accepting import SocketOptions
from ottla.server.application import Arrivals
from ottla.server.connection import Connection
from ottla.server.http.requests import HttpCutter, read_request

log = logging.getLogger(__name__)

TEXT = "text/plain; charset=utf-8"


def http_socket_options() -> SocketOptions:
    return SocketOptions(
        listen_backlog=HTTP_CONNECTIONS_MAX,
        request_bytes_max=HTTP_REQUEST_BYTES_MAX,
        connections_max=HTTP_CONNECTIONS_MAX,
        connections_per_address_max=lambda _: HTTP_CONNECTIONS_MAX,
        idle_ms_max=HTTP_IDLE_MS_MAX,
        connections_max_setting="the limit of HTTP connections",
    )


@dataclass(slots=True)
class Page:
    pieces: Iterable[str]  # made one by one, as there is time
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Pages = Mapping[str, Callable[[], Page]]


class _Answer:
    """A page's place on its connection while it is made."""

    blocks = True

    def __init__(self, connection: Connection, page: Page, *, with_body: bool) -> None:
        self.connection = connection
        self.page = page
        self.with_body = with_body
        self.chunks: Sequence[Chunk] | None = None
        self.abandoned = False
        self.made: list[str] = []
        self.pieces: Iterator[str] = iter(page.pieces)

    def abandon(self) -> None:
        self.abandoned = True


class HttpApplication:
    def __init__(self, pages: Pages, clock: Clock, post: Callable[[Callable[[], None]], None]) -> None:
        self._pages = pages
        self._clock = clock
        self._post = post  # runs a callable in the next turn
        self._under_way: deque[_Answer] = deque()

    # -- from the reactor ----------------------------------------------------------------------------------

    def cutter(self, frame_bytes_max: int) -> HttpCutter:
        return HttpCutter(frame_bytes_max)

    def handle_frames(self, arrivals: Arrivals) -> list[Connection]:
        for connection, (head, *_) in arrivals:
            request = read_request(head)
            page = self._page(request.method, request.path) if request else _refusal(HTTPStatus.BAD_REQUEST)
            answer = _Answer(connection, page, with_body=request is None or request.method != "HEAD")
            connection.expect(answer)
            if not self._under_way:
                self._post(self._go_on)
            self._under_way.append(answer)
        return []

    def disconnected(self, connection: Connection) -> None:
        """Its answer was abandoned by the connection itself."""

    # -- pages ---------------------------------------------------------------------------------------------

    def _page(self, method: str, path: str) -> Page:
        if method not in ("GET", "HEAD"):
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        make = self._pages.get(path)
        if make is None:
            return _refusal(HTTPStatus.NOT_FOUND, f"; there are {', '.join(self._pages)}")
        return make()

    def _go_on(self) -> None:
        late_us = self._clock.monotonic_us() + HTTP_TURN_US_MAX
        while self._under_way:
            answer = self._under_way[0]
            if not self._make(answer, late_us):
                self._post(self._go_on)
                return
            self._under_way.popleft()

    def _make(self, answer: _Answer, late_us: int) -> bool:
        """False when time ran out before the page was whole."""
        if answer.abandoned:
            return True
        try:
            for piece in answer.pieces:
                answer.made.append(piece)
                if self._clock.monotonic_us() > late_us:
                    return False
        except Exception:  # a mistake of ours; those who produce and consume must not pay for it
            log.exception("a page could not be made")
            answer.page, answer.made = _refusal(HTTPStatus.INTERNAL_SERVER_ERROR), []
        answer.chunks = [_encode(answer)]
        answer.connection.answered()
        answer.connection.end()
        return True


def _refusal(status: HTTPStatus, hint: str = "") -> Page:
    return Page([f"{status.phrase}{hint}\n"], status)


def _encode(answer: _Answer) -> bytes:
    page = answer.page
    body = "".join(answer.made).encode()
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    return head + body if answer.with_body else head
