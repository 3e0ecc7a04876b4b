"""How admin clients ask: any broker, one of them, again where that helps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ottla.client import admin_topics
from ottla.client.addresses import Address
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker, ClusterView
from ottla.client.errors import BrokerError
from ottla.model.errors import ErrorCode

T = TypeVar("T")


class Asking:
    def __init__(self, cluster: Cluster, timeout_ms: int) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms

    def _deadline_ms(self) -> int:
        return self._cluster.now_ms() + self._timeout_ms

    async def _view(self, topics: Sequence[str] | None, deadline_ms: int) -> ClusterView:
        return await admin_topics.view(self._cluster, topics, deadline_ms)

    async def _address(self, broker_id: int | None, deadline_ms: int) -> Address:
        if broker_id is None:
            return self._cluster.any_address()
        return broker_of(await self._view((), deadline_ms), broker_id).address

    async def _asking(self, broker_id: int | None, ask: Callable[[Cluster, Address, int], Awaitable[T]]) -> T:
        """A question to one broker (None: any), asked again where that helps."""

        async def attempt(deadline_ms: int) -> T:
            return await ask(self._cluster, await self._address(broker_id, deadline_ms), deadline_ms)

        return await self._cluster.retry(attempt, self._deadline_ms())


def broker_of(seen: ClusterView, broker_id: int) -> Broker:
    broker = seen.brokers.get(broker_id)
    if broker is None:
        known = ", ".join(str(each) for each in sorted(seen.brokers))
        raise BrokerError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id}", f"the brokers are {known}"
        )
    return broker
