"""A client's way to its brokers: the network and the view of the cluster together.

`send` and `tick` never wait: machines that have requests under way use them. `call` and `wait` drive the
network until an answer is there. The owner holds the lock, as for `network`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, TypeVar

from ottla.client.addresses import Address, parse_bootstrap
from ottla.client.backoff import Backoff
from ottla.client.cluster_view import ClusterView
from ottla.client.conversation import Call, Done
from ottla.client.errors import (
    AdvertisedUnreachable,
    BrokerError,
    BrokerUnreachable,
    ClientError,
    ConnectionFailed,
    Disconnected,
    TimedOut,
)
from ottla.client.metadata import Metadata
from ottla.client.network import Network
from ottla.model.clock import Clock, SystemClock
from ottla.model.config_types import TypedValues
from ottla.model.limits import FRAME_BYTES_MAX
from ottla.protocol.apis import METADATA, Api
from ottla.protocol.fields import Message
from ottla.protocol.messages.metadata import MetadataResponse

T = TypeVar("T")
M = TypeVar("M", bound=Message)

_VERSION_END = 32_767
_TURN_MS_MAX = 1_000


class Cluster:
    network_type: ClassVar[type[Network]] = Network

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        settings: TypedValues,
        clock: Clock | None = None,
        *,
        auto_create: bool = False,
    ) -> None:
        self.clock = clock or SystemClock()
        self.bootstrap = parse_bootstrap(bootstrap)
        self.network = self.network_type(settings, self.clock, FRAME_BYTES_MAX)
        self.backoff = Backoff.of(settings)
        self.metadata = Metadata(
            settings.integer("metadata.max.age.ms"), self.backoff, auto_create=auto_create
        )
        self.last_problem: ClientError | None = None  # why the last metadata request failed; None: it did not
        self.last_failure: ClientError | None = None  # why the call under way is tried again
        self.told = ClusterView()  # the last answer to a caller who asked for topics of its own choice
        self.told_at_ms: int | None = None
        self._request_timeout_ms = settings.integer("request.timeout.ms")
        self._turn = -1  # which address was asked last
        self._refusals = 0  # addresses in a row that failed in a way that waiting does not mend

    def close(self) -> None:
        self.network.close()

    def now_ms(self) -> int:
        return self.clock.monotonic_ms()

    # -- without waiting -----------------------------------------------------------------------------------

    def any_address(self) -> Address:
        """A broker to ask, another one each time; the bootstrap addresses as long as none is known."""
        known = [broker.address for broker in self.metadata.view.brokers.values()]
        addresses = known or self.bootstrap
        if known and self.last_problem is not None:
            addresses = [*known, *(address for address in self.bootstrap if address not in known)]
        self._turn += 1
        return addresses[self._turn % len(addresses)]

    def send(
        self,
        address: Address,
        api: Api,
        message: Message | Callable[[int], Message],
        done: Done,
        *,
        timeout_ms: int | None = None,
        version_max: int = _VERSION_END,
        purpose: str = "",
        is_answered: bool = True,
    ) -> None:
        deadline_ms = self.now_ms() + (self._request_timeout_ms if timeout_ms is None else timeout_ms)

        def finish(result: Message | ClientError, version: int) -> None:
            if isinstance(result, BrokerUnreachable):
                result = self._explained(address, result)
            done(result, version)

        call = Call(api, message, finish, deadline_ms, version_max, is_answered)
        self.network.send(address, call, purpose)

    def tick(self, now_ms: int) -> int:
        """Asks for metadata when it is time; milliseconds until there is something to do again."""
        due_ms = self.metadata.next_request_ms(now_ms)
        if due_ms is None:
            return _TURN_MS_MAX
        if due_ms > now_ms:
            return min(due_ms - now_ms, _TURN_MS_MAX)
        self.send(self.any_address(), METADATA, self.metadata.request(), self._take_metadata)
        return _TURN_MS_MAX

    def _take_metadata(self, result: Message | ClientError, _version: int) -> None:
        if isinstance(result, ClientError):
            self.last_problem = result
            self._refusals = 0 if result.retriable else self._refusals + 1
            self.metadata.failed(self.now_ms())
            return
        assert isinstance(result, MetadataResponse)
        self.last_problem = None
        self._refusals = 0
        self.metadata.take(result, self.now_ms())

    @property
    def hopeless(self) -> ClientError | None:
        """Why no broker will ever answer: each refused the login, does not speak TLS, or is no broker."""
        return self.last_problem if self._refusals >= len(self.bootstrap) else None

    def _explained(self, address: Address, error: BrokerUnreachable) -> BrokerUnreachable:
        """An address that only the cluster told us: somebody must change what it advertises."""
        if address in self.bootstrap or self.network.has_met(address):
            return error
        asked = ",".join(str(each) for each in self.bootstrap)
        return AdvertisedUnreachable(
            str(address),
            f"the cluster at {asked} says that a broker is at {address}, but there is {error.text}",
            "set advertised.listeners of that broker to an address that can be reached from here",
        )

    async def turn(self, timeout_ms: int) -> None:
        """Waits for something to happen; here in place (see `blocking`)."""
        self.network.poll(timeout_ms)

    # -- waiting -------------------------------------------------------------------------------------------

    async def wait(self, condition: Callable[[], T | None], deadline_ms: int, what: str) -> T:
        """Drives metadata and network until `condition` gives something. Raises TimedOut."""
        while (found := condition()) is None:
            if self.hopeless is not None:
                raise self.hopeless
            now_ms = self.now_ms()
            if now_ms >= deadline_ms:
                raise self.timed_out(what)
            await self.turn(min(self.tick(now_ms), deadline_ms - now_ms))
        return found

    async def call(
        self,
        address: Address,
        api: Api,
        message: Message | Callable[[int], Message],
        answer_type: type[M],
        deadline_ms: int,
        *,
        version_max: int = _VERSION_END,
    ) -> M:
        """One request, one answer, or why there is none."""
        results: list[Message | ClientError] = []
        left_ms = max(deadline_ms - self.now_ms(), 1)
        timeout_ms = min(left_ms, self._request_timeout_ms)
        self.send(
            address,
            api,
            message,
            lambda result, _version: results.append(result),
            timeout_ms=timeout_ms,
            version_max=version_max,
        )
        while not results:
            await self.turn(_TURN_MS_MAX)
        result = results[0]
        if isinstance(result, ClientError):
            raise result
        assert isinstance(result, answer_type)
        return result

    async def retry(self, action: Callable[[int], Awaitable[T]], deadline_ms: int) -> T:
        """`action(deadline_ms)`, again after a pause as long as it fails with what may pass by itself.

        Brokers that have never answered are asked once each: the address is probably wrong, or nothing runs.
        """
        failures = 0
        lost: Disconnected | None = None  # tells more than that the time was over at the last try
        while True:
            try:
                result = await action(deadline_ms)
                self.last_failure = None
                return result
            except (BrokerError, ConnectionFailed, TimedOut) as error:
                failures += 1
                self.last_failure = error
                if isinstance(error, Disconnected):
                    lost = error
                elif isinstance(error, TimedOut) and lost is not None and self.now_ms() >= deadline_ms:
                    raise TimedOut(f"{error.text}; before, {lost.text}", lost.cure) from lost
                if isinstance(error, BrokerUnreachable | TimedOut) and not self._has_contact():
                    if failures >= len(self.bootstrap):
                        raise
                    continue
                if not error.retriable:
                    raise
                pause_ms = self.backoff.pause_ms(failures)
                if self.now_ms() + pause_ms >= deadline_ms:
                    raise
                await self.pause(pause_ms)

    def timed_out(self, what: str) -> TimedOut:
        problem = self.last_problem
        if problem is None:
            return TimedOut(f"{what} took too long")
        return TimedOut(f"{what} took too long: {problem.text}", problem.cure)

    def _has_contact(self) -> bool:
        return any(self.network.has_met(address) for address in self.bootstrap) or any(
            self.network.has_met(broker.address) for broker in self.metadata.view.brokers.values()
        )

    async def pause(self, pause_ms: int) -> None:
        """Answers are taken in meanwhile."""
        end_ms = self.now_ms() + pause_ms
        while (left_ms := end_ms - self.now_ms()) > 0:
            await self.turn(left_ms)
