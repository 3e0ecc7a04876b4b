"""AlterConfigs 0-2: replaces all settings of a topic or broker by those given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.controller.configs import ConfigAlteration, ConfigEntry, ConfigResult
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ottla.server.config_alterations import alter
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[AlterConfigsRequest], services: Services) -> None:
    alterations = [
        ConfigAlteration(
            resource.resource_type,
            resource.resource_name,
            [ConfigEntry(config.name, config.value) for config in resource.configs],
        )
        for resource in exchange.request.resources
    ]

    def altered(results: list[ConfigResult]) -> None:
        told = [AlterConfigsResourceResponse(each.code, each.text, each.type, each.name) for each in results]
        exchange.answer(AlterConfigsResponse(responses=told))

    alter(
        exchange,
        services,
        alterations,
        altered,
        validate_only=exchange.request.validate_only,
        incremental=False,
    )
