"""One request and its answer. Handlers see this, never a socket.

A handler returns the response, or returns None and calls `answer` later. The answer leaves when those of all
earlier requests of the connection have.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.model.clock import monotonic_us_of
from ottla.model.metrics import Counter, Histogram, Registry
from ottla.protocol.codec import Chunk
from ottla.protocol.fields import Message
from ottla.protocol.headers import RequestHeader, encode_response, with_correlation_id
from ottla.security.authorizer import AllowAll
from ottla.server.connection import Connection
from ottla.server.parking import Waiter

if TYPE_CHECKING:
    from ottla.server.routes import Route
    from ottla.server.services import Services

log = logging.getLogger(__name__)

R = TypeVar("R")


class ApiMetrics:
    __slots__ = ("count", "errors", "time")

    def __init__(self, registry: Registry, name: str) -> None:
        self.count: Counter = registry.counter(f"requests.{name}.count")
        self.errors: Counter = registry.counter(f"requests.{name}.errors")
        self.time: Histogram = registry.histogram(f"requests.{name}.time")

    def observe_us(self, duration_us: int) -> None:
        """One request was answered."""
        self.count.value += 1
        self.time.observe_us(duration_us)


class RequestInFlight:
    """An exchange without the type of its request, which a compiled class cannot have."""

    __slots__ = (
        "arrived_us", "blocks", "chunks", "client_id", "connection", "correlation_id", "metrics", "request",
        "route", "services", "version", "waiter",
    )  # fmt: skip

    services: Services
    connection: Connection
    route: Route
    metrics: ApiMetrics
    version: int
    correlation_id: int
    client_id: str | None
    request: Any
    arrived_us: int
    blocks: bool  # whether the requests behind it wait for its answer
    chunks: Sequence[Chunk] | None  # the encoded answer, once it is known
    waiter: Waiter | None  # set while the request is parked

    def __class_getitem__(cls, _: object) -> type[RequestInFlight]:
        """`Exchange[FetchRequest]` says what the request is; at run time all are of one class."""
        return cls

    def answer(self, response: Message, throttle_ms: int = 0) -> None:
        assert self.chunks is None, f"{self.route.api.name} was answered twice"
        self.waiter = None
        try:
            self.chunks = encode_response(self.route.api, self.version, self.correlation_id, response)
        except ValueError as error:  # a field that this version cannot carry
            self.fail(error)
            return
        self._finished()
        if throttle_ms:
            self.services.reactor.mute(self.connection, throttle_ms)

    def answer_same(self, frame: bytes) -> None:
        """A response that is the same for everybody but for its correlation id."""
        self.chunks = (with_correlation_id(frame, self.correlation_id),)
        self._finished()

    def answer_with(self, frame: bytes, now_us: int) -> None:
        """A response that is encoded already, with its header, at a time that the caller has read."""
        self.waiter = None
        self.chunks = (frame,)
        self.metrics.observe_us(now_us - self.arrived_us)
        self.connection.answered()

    def answer_chunks(self, chunks: list[Chunk]) -> None:
        """A response that is encoded already, with its header."""
        self.waiter = None
        self.chunks = chunks
        self._finished()

    def answer_nothing(self) -> None:
        """For acks=0: the request takes no place in the stream of answers."""
        self.chunks = ()
        self._finished()

    def _finished(self) -> None:
        self.metrics.observe_us(monotonic_us_of(self.services.clock) - self.arrived_us)
        self.connection.answered()

    def fail(self, error: Exception) -> None:
        """A bug of ours. The peer sees a closed connection, and may try again."""
        self.waiter = None
        self.metrics.errors.value += 1
        log.error("%s failed", self.route.api.name, exc_info=error)
        self.services.reactor.drop(self.connection, f"{self.route.api.name} failed, see above")

    def abandon(self) -> None:
        """The connection closed. What was written stays written; nobody waits any more."""
        if self.waiter is not None:
            self.services.parking.forget(self.waiter)
            self.waiter = None
        self.chunks = ()

    @property
    def abandoned(self) -> bool:
        return self.connection.closed

    def may(self, resource_name: str) -> bool:
        """Whether the peer may do to `resource_name` what this API's route declares."""
        if type(self.services.authorizer) is AllowAll:
            return True
        return self.services.may(self.connection, self.route.operation, self.route.resource, resource_name)


if TYPE_CHECKING:

    class Exchange(RequestInFlight, Generic[R]):
        """One request of type R."""

        request: R
else:
    Exchange = RequestInFlight


def begin_exchange(
    services: Services,
    connection: Connection,
    route: Route,
    header: RequestHeader,
    request: Any,
    arrived_us: int,
) -> Exchange[Any]:
    """A request takes its place in the order of answers."""
    # Field by field: compiled, a call would make objects of the numbers.
    made = RequestInFlight.__new__(RequestInFlight)  # by its own name, or it is looked up as any callable
    exchange: Exchange[Any] = made  # type: ignore[assignment]
    exchange.services = services
    exchange.connection = connection
    exchange.route = route
    exchange.metrics = route.metrics
    exchange.version = header.api_version
    exchange.correlation_id = header.correlation_id
    exchange.client_id = header.client_id
    exchange.request = request
    exchange.arrived_us = arrived_us
    exchange.blocks = route.handle_turn is None
    exchange.chunks = None
    exchange.waiter = None
    connection.pending.append(exchange)
    return exchange
