"""The cluster's state in an Apache ZooKeeper ensemble instead of in the broker, and starts on either."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.coordination.client import HostedCoordination
from ottla.model.broker_config import BrokerConfig
from ottla.model.errors import ErrorCode, Refused
from ottla.model.values import dataclass

if TYPE_CHECKING:
    from ottla.coordination.ensemble import KazooCoordination

ControllerOperation = Callable[[Callable[[Refused | None], None]], None]

SESSION_OVER = (
    "the ZooKeeper ensemble has not heard of this broker for longer than zookeeper.session.timeout.ms and "
    "takes it for dead; see that the ensemble is up and can be reached, then start again: everything that "
    "was acknowledged is there"
)
_RETRY_S = 0.5
_EXPIRY_SLACK_S = 10
"""A session ends up to a tick of the ensemble after its timeout; ticks are seconds."""


@dataclass(frozen=True, slots=True)
class EnsembleSettings:
    hosts: str  # host:port,host:port/path
    session_timeout_ms: int
    connection_timeout_ms: int  # for the start

    @classmethod
    def of(cls, config: BrokerConfig) -> EnsembleSettings | None:
        """None: the broker keeps the tree itself."""
        hosts = config.text_or_none("zookeeper.connect")
        if not hosts:
            return None
        session_timeout_ms = config.integer("zookeeper.session.timeout.ms")
        connection_timeout_ms = config.integer_or_none("zookeeper.connection.timeout.ms")
        return cls(hosts, session_timeout_ms, connection_timeout_ms or session_timeout_ms)


def connect(
    settings: EnsembleSettings, post: Callable[[Callable[[], None]], None], session_over: Callable[[], None]
) -> KazooCoordination:
    """Blocks until the ensemble answers; EnsembleUnreachable (an OSError) when it does not."""
    from ottla.coordination.ensemble import KazooCoordination

    coordination = KazooCoordination(
        settings.hosts,
        post,
        session_over,
        session_timeout_ms=settings.session_timeout_ms,
        connection_timeout_ms=settings.connection_timeout_ms,
    )
    coordination.start()
    return coordination


def outcome_of(operation: ControllerOperation, coordination: HostedCoordination) -> Refused | None:
    """Blocks until an operation of the controller has ended."""
    outcome: list[Refused | None] = []
    operation(outcome.append)
    coordination.sync()
    while not outcome:
        coordination.sync()
    return outcome[0]


def take_office(
    settings: EnsembleSettings | None, start: ControllerOperation, coordination: HostedCoordination
) -> Refused | None:
    """Start the controller; with an ensemble, wait for the session of a former life of this broker to end."""
    timeout_s = 0.0 if settings is None else settings.session_timeout_ms / 1000 + _EXPIRY_SLACK_S
    deadline = time.monotonic() + timeout_s
    while True:
        refusal = outcome_of(start, coordination)
        in_office_already = refusal is not None and refusal.code is ErrorCode.NOT_CONTROLLER
        if not in_office_already or time.monotonic() > deadline:
            return refusal
        time.sleep(_RETRY_S)
