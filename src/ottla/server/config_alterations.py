"""What AlterConfigs and IncrementalAlterConfigs share: permission, and one way to the controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.controller.configs import ConfigAlteration, ConfigResult
from ottla.controller.configs import ResourceType as ConfigResourceType
from ottla.model.errors import ErrorCode, Refused
from ottla.security.authorizer import CLUSTER_NAME, ResourceType
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def alter(
    exchange: Exchange[Any],
    services: Services,
    alterations: Sequence[ConfigAlteration],
    done: Callable[[list[ConfigResult]], None],
    *,
    validate_only: bool,
    incremental: bool,
) -> None:
    """`done` gets a result for each resource, unless the peer has gone."""
    refused = []
    allowed = []
    for each in alterations:
        try:
            _check(exchange, services, each)
            allowed.append(each)
        except Refused as refusal:
            refused.append(ConfigResult(each.type, each.name, refusal.code, refusal.text))

    def altered(results: Sequence[ConfigResult]) -> None:
        if not exchange.abandoned:
            done([*results, *refused])

    services.controller.alter_configs(
        allowed, incremental=incremental, validate_only=validate_only, done=altered
    )


def _check(exchange: Exchange[Any], services: Services, alteration: ConfigAlteration) -> None:
    if alteration.type == ConfigResourceType.TOPIC:
        if not exchange.may(alteration.name):
            raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not services.may(exchange.connection, exchange.route.operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
