"""DeleteGroups 0-2: forgets groups without members, with their offsets; each succeeds or fails by itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.server.exchange import Exchange
from ottla.server.long_requests import PartOf, Work

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[DeleteGroupsRequest], services: Services) -> None:
    names = dict.fromkeys(exchange.request.groups_names)
    codes: dict[str, ErrorCode] = {}

    def finished(group_id: str, refusal: Refused | None) -> None:
        codes[group_id] = ErrorCode.NONE if refusal is None else refusal.code
        if len(codes) == len(names) and not exchange.abandoned:
            results = [DeletableGroupResult(name, codes[name]) for name in names]
            exchange.answer(DeleteGroupsResponse(results=results))

    def delete_all() -> Work:
        for group_id in names:
            yield None
            done = partial(finished, group_id)
            try:
                if not exchange.may(group_id):
                    raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
                partition = services.groups.topic.find_writable(group_id)
                records = partition.machine.delete_group(group_id)
            except Refused as refusal:
                done(refusal)
            else:
                services.groups.write_tombstones(partition, records, done)

    if names:
        services.long_requests.begin(PartOf(exchange), delete_all())
    else:
        exchange.answer(DeleteGroupsResponse())
