"""What handlers may use: the rooms below the server, wired together once by the node."""

from __future__ import annotations

from ottla.controller.controller import Controller
from ottla.controller.producer_ids import ProducerIds
from ottla.log.directories import LogDirectories
from ottla.model.clock import Clock
from ottla.model.configs import BrokerConfig
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.model.values import dataclass, field
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.replica.partitions import Partitions
from ottla.security.authorizer import Authorizer, Operation, ResourceType, authorized_operations
from ottla.security.quotas import Quotas
from ottla.server.connection import Connection
from ottla.server.fetch_sessions import FetchSessions
from ottla.server.group_service import GroupService
from ottla.server.long_requests import Chore, LongRequests
from ottla.server.parking import Parking
from ottla.server.reactor import Reactor
from ottla.server.transaction_service import TransactionService
from ottla.server.warming import Offload


@dataclass(slots=True)
class Services:
    node_id: int
    clock: Clock
    reactor: Reactor
    parking: Parking
    partitions: Partitions
    directories: LogDirectories
    controller: Controller
    authorizer: Authorizer
    quotas: Quotas
    metrics: Registry
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    offload_read: Offload  # for reads that would wait for the disk
    fetch_bytes_max: int  # fetch.max.bytes: of one answer, whatever the client asks for
    announced: tuple[ApiVersion, ...] = ()  # what ApiVersions tells, once the routes are known
    announced_frames: dict[int, bytes] = field(default_factory=dict)  # whole answers, by version
    long_requests: LongRequests = field(init=False)
    groups: GroupService = field(init=False)
    transactions: TransactionService = field(init=False)

    def __post_init__(self) -> None:
        self.long_requests = LongRequests(self.clock, self.reactor.post, self.offload_read)
        self.controller.pace = lambda steps: self.long_requests.begin(Chore("a change of many things"), steps)
        self.groups = GroupService(self)
        self.transactions = TransactionService(self)

    @property
    def broker_config(self) -> BrokerConfig:
        """Settings as they are now, with what was changed while the broker runs."""
        return self.controller.config

    def may(self, connection: Connection, operation: Operation, resource: ResourceType, name: str) -> bool:
        """The one place where permission is asked for."""
        return self.authorizer.authorize(
            connection.principal, connection.peer_host, operation, resource, name
        )

    def operations_allowed(self, connection: Connection, resource: ResourceType, name: str) -> int:
        return authorized_operations(
            self.authorizer, connection.principal, connection.peer_host, resource, name
        )

    def advertised(self, listener: Listener) -> tuple[str, int]:
        """Where a client that came in by `listener` finds this broker."""
        endpoint = self.controller.image.brokers[self.node_id].endpoint(listener.name)
        return (endpoint.host, endpoint.port) if endpoint is not None else (listener.host, listener.port)

    def brokers(self, listener: Listener) -> list[tuple[int, str, int, str | None]]:
        """(id, host, port, rack) of every broker that has a listener of the same name."""
        found = []
        for broker in self.controller.image.brokers.values():
            endpoint = broker.endpoint(listener.name)
            if endpoint is not None:
                found.append((broker.id, endpoint.host, endpoint.port, broker.rack))
        return found
