"""The network under asyncio: the same connections, driven by the running loop.

A selector is itself a file that becomes readable when one of its sockets is ready, so the loop watches that
one file for all connections of a client. Nothing here blocks, and there is no thread, except that names are
looked up the way asyncio does it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from ottla.client.aio.waiting import end_wait
from ottla.client.cluster import Cluster
from ottla.client.errors import ConnectionFailed
from ottla.client.network import Connection, Network, Route
from ottla.model.clock import Clock
from ottla.model.config_types import TypedValues


class AioNetwork(Network):
    def __init__(self, settings: TypedValues, clock: Clock, answer_bytes_max: int) -> None:
        super().__init__(settings, clock, answer_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._watched: int = self._selector.fileno()  # epoll and kqueue have one
        self._loop.add_reader(self._watched, self._ready)
        self._waiters: set[asyncio.Future[None]] = set()
        self._lookups: set[asyncio.Task[None]] = set()

    def _ready(self) -> None:
        self.poll(0)
        self.wake()

    async def wait(self, timeout_ms: int) -> None:
        """Until something has happened on a connection, somebody calls `wake`, or the time is over."""
        waiter = self._loop.create_future()
        timer = self._loop.call_later(self._wait_ms(timeout_ms) / 1000, end_wait, waiter)
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)
        self._expire(self.clock.monotonic_ms())

    def wake(self) -> None:
        """From the loop's own thread only."""
        for waiter in self._waiters:
            end_wait(waiter)

    def close(self) -> None:
        self._loop.remove_reader(self._watched)
        for lookup in self._lookups:
            lookup.cancel()
        super().close()
        self.wake()

    def _resolve(self, route: Route, connection: Connection) -> None:
        try:
            ipaddress.ip_address(route[0].host)
        except ValueError:
            connection.is_resolving = True
            lookup = self._loop.create_task(self._look_up(route, connection))
            self._lookups.add(lookup)
            lookup.add_done_callback(self._lookups.discard)
        else:
            super()._resolve(route, connection)

    async def _look_up(self, route: Route, connection: Connection) -> None:
        host, port = route[0]
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            connection.candidates = [(family, target) for family, _, _, _, target in found]
        except OSError:
            pass
        connection.is_resolving = False
        if self._connections.get(route) is connection and not self._try_next(route, connection):
            self._fail(route, connection, self._unreachable(connection))
        self.wake()

    def _kind_of(self, connection: Connection) -> ConnectionFailed | None:
        return None  # finding out what is there would block


class AioCluster(Cluster):
    network_type = AioNetwork
    network: AioNetwork

    async def turn(self, timeout_ms: int) -> None:
        await self.network.wait(timeout_ms)
