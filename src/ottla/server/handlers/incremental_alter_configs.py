"""IncrementalAlterConfigs 0-1: sets, deletes, appends to or subtracts from single settings (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.controller.configs import ConfigAlteration, ConfigEntry, ConfigResult
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.server.config_alterations import alter
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[IncrementalAlterConfigsRequest], services: Services) -> None:
    alterations = [
        ConfigAlteration(
            resource.resource_type,
            resource.resource_name,
            [ConfigEntry(config.name, config.value, config.config_operation) for config in resource.configs],
        )
        for resource in exchange.request.resources
    ]

    def altered(results: list[ConfigResult]) -> None:
        told = [AlterConfigsResourceResponse(each.code, each.text, each.type, each.name) for each in results]
        exchange.answer(IncrementalAlterConfigsResponse(responses=told))

    alter(
        exchange,
        services,
        alterations,
        altered,
        validate_only=exchange.request.validate_only,
        incremental=True,
    )
