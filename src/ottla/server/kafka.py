"""What a frame on a Kafka listener means: finds the route, checks the version, decodes, calls the handler.

Requests of one connection are handled in order. In a turn every connection's leading Produce requests come
first, all together (one append per partition), then what is behind them, one by one while the turn has time.
Behind a request that has to wait nothing is handled, since its answer could not leave earlier; only produces
wait side by side.
"""

from __future__ import annotations

from typing import Any

from ottla.model.clock import monotonic_us_of
from ottla.model.errors import ErrorCode, Malformed
from ottla.model.limits import ANSWER_BYTES_AHEAD, MIB, TURN_HANDLING_US_MAX
from ottla.model.spare_rooms import SpareRooms
from ottla.protocol import apis
from ottla.protocol.frames import FrameCutter
from ottla.protocol.headers import RequestHeader, decode_request_header, encode_response
from ottla.protocol.primitives import Buffer
from ottla.server.application import Arrivals
from ottla.server.connection import Connection, bytes_in_memory
from ottla.server.exchange import ApiMetrics, Exchange, begin_exchange
from ottla.server.handlers import api_versions, produce
from ottla.server.routes import Route, all_routes
from ottla.server.services import Services

assert apis.PRODUCE.key == 0
_ROOMS_KEPT = 8  # of large requests, for the next ones; twice the batch that Kafka's producers make at most
_ROOM_KEPT_BYTES_MAX = 2 * MIB


class KafkaApplication:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock
        self._routes: dict[int, Route] = {}
        for route in all_routes():
            route.metrics = ApiMetrics(services.metrics, route.api.name)
            self._routes[route.api.key] = route
        self._spares = SpareRooms(_ROOMS_KEPT, _ROOM_KEPT_BYTES_MAX)
        self._protocol_errors = services.metrics.counter("server.protocol_errors")
        services.announced = api_versions.announcement(self._routes.values())

    # -- from the reactor ------------------------------------------------------------------------------------

    def cutter(self, frame_bytes_max: int) -> FrameCutter:
        return FrameCutter(frame_bytes_max, self._spares, copies=True)

    def handle_frames(self, arrivals: Arrivals) -> list[Connection]:
        arrived_us = monotonic_us_of(self._clock)
        together: list[Exchange[Any]] = []
        others: Arrivals = []
        for connection, frames in arrivals:
            for number, frame in enumerate(frames):
                if len(frame) < 2 or frame[0] or frame[1]:  # no Produce: its key is 0
                    others.append((connection, frames[number:] if number else frames))
                    break
                exchange = self._open(connection, frame, arrived_us)
                if exchange is not None:
                    together.append(exchange)
                elif connection.closed:
                    break
        if together:
            self._handle_together(together)
        late_us = arrived_us + TURN_HANDLING_US_MAX
        unserved = []
        for connection, frames in others:
            if not self._handle_in_order(connection, frames, arrived_us, late_us):
                unserved.append(connection)
        return unserved

    def disconnected(self, connection: Connection) -> None:
        """Parked requests were abandoned by the connection itself; nothing else is kept per connection."""

    # -- handling --------------------------------------------------------------------------------------------

    def _handle_together(self, exchanges: list[Exchange[Any]]) -> None:
        produce.handle_turn(
            [exchange for exchange in exchanges if not exchange.connection.closed], self._services
        )

    def _handle_in_order(
        self, connection: Connection, frames: list[Buffer], arrived_us: int, late_us: int
    ) -> bool:
        """Frames one by one, as far as time and the connection allow; False when that was not even one."""
        answer_bytes = 0
        for number, frame in enumerate(frames):
            is_late = answer_bytes > ANSWER_BYTES_AHEAD or monotonic_us_of(self._clock) > late_us
            if is_late or not connection.may_go_on():
                connection.give_back(frames[number:])
                return number > 0
            exchange = self._open(connection, frame, arrived_us)
            if exchange is None:
                continue
            if exchange.blocks:
                self._handle(exchange)
            else:
                self._handle_together([exchange])
            if exchange.chunks:
                answer_bytes += bytes_in_memory(exchange.chunks)
        return True

    def _handle(self, exchange: Exchange[Any]) -> None:
        assert exchange.route.handle is not None
        if exchange.connection.closed:
            return
        try:
            response = exchange.route.handle(exchange, self._services)
            if response is not None:
                exchange.answer(response)
        except Malformed as problem:
            self._drop(exchange.connection, str(problem))
        except Exception as error:
            exchange.fail(error)

    def _drop(self, connection: Connection, reason: str) -> None:
        self._protocol_errors.value += 1
        self._services.reactor.drop(connection, reason)

    # -- from frame to exchange ------------------------------------------------------------------------------

    def _open(self, connection: Connection, frame: Buffer, arrived_us: int) -> Exchange[Any] | None:
        try:
            header, position = decode_request_header(frame)
            version = header.api_version
            route = self._routes.get(header.api_key)
            if route is None:
                raise Malformed(f"API key {header.api_key} is not served here (version {version} was asked)")
            connection.client_id = header.client_id
            first, last = route.handled
            if not first <= version <= last:
                self._answer_other_version(connection, header, frame, position, arrived_us)
                return None
            # Bytes behind the request are ignored, as Kafka does: librdkafka's Metadata 13 has some.
            readers = route.readers
            read = readers.get(version) or route.reader(version)
            request, _ = read(frame, position)
        except Malformed as problem:
            who = f" (client id {connection.client_id})" if connection.client_id else ""
            self._drop(connection, f"{problem}{who}")
            return None
        return begin_exchange(self._services, connection, route, header, request, arrived_us)

    def _answer_other_version(
        self, connection: Connection, header: RequestHeader, frame: Buffer, position: int, arrived_us: int
    ) -> None:
        """ApiVersions and the advertised old Produce get an answer, for others the connection is closed."""
        route = self._routes[header.api_key]
        exchange = begin_exchange(self._services, connection, route, header, None, arrived_us)
        if route.api is apis.API_VERSIONS:
            response = api_versions.response(self._services, 0, ErrorCode.UNSUPPORTED_VERSION)
            exchange.chunks = encode_response(route.api, 0, header.correlation_id, response)
        elif route.api is apis.PRODUCE and 0 <= header.api_version < route.api.versions[0]:
            answer = produce.refuse_old_version(header, frame[position:])
            exchange.chunks = [answer] if answer is not None else []
        else:
            raise Malformed(
                f"{route.api.name} v{header.api_version} is not spoken here, "
                f"only {route.versions[0]} to {route.versions[1]}"
            )
        route.metrics.errors.value += 1
        connection.answered()
