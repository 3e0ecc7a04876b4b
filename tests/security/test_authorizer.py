"""Kafka's numbers for operations and resources, and the bit field that clients read."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode
from ottla.security.authorizer import (
    OPERATIONS,
    REFUSALS,
    AllowAll,
    Authorizer,
    Operation,
    ResourceType,
    authorized_operations,
)
from ottla.security.principals import ANONYMOUS, Principal


class ReadersOnly:
    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        return operation in (Operation.READ, Operation.DESCRIBE) and resource_name == "orders"


def test_operations_and_resources_have_kafkas_codes() -> None:
    assert [operation.name for operation in Operation] == [
        "UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
        "TWO_PHASE_COMMIT",
    ]  # fmt: skip
    assert [int(operation) for operation in Operation] == list(range(16))
    assert [(kind.name, int(kind)) for kind in ResourceType] == [
        ("UNKNOWN", 0),
        ("ANY", 1),
        ("TOPIC", 2),
        ("GROUP", 3),
        ("CLUSTER", 4),
        ("TRANSACTIONAL_ID", 5),
        ("DELEGATION_TOKEN", 6),
        ("USER", 7),
    ]


@pytest.mark.parametrize(
    ("kind", "bits"),
    [(ResourceType.TOPIC, 3576), (ResourceType.CLUSTER, 8096), (ResourceType.GROUP, 3400)],
)
def test_without_rules_every_operation_of_a_resource_is_allowed(kind: ResourceType, bits: int) -> None:
    """The numbers are what a Kafka 4 broker without an authorizer answers."""
    authorizer: Authorizer = AllowAll()
    assert authorized_operations(authorizer, ANONYMOUS, "127.0.0.1", kind, "any") == bits


def test_the_bit_field_holds_what_the_authorizer_allows() -> None:
    bits = authorized_operations(ReadersOnly(), ANONYMOUS, "127.0.0.1", ResourceType.TOPIC, "orders")
    assert bits == 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert authorized_operations(ReadersOnly(), ANONYMOUS, "127.0.0.1", ResourceType.TOPIC, "other") == 0


def test_every_concrete_resource_has_operations_and_a_refusal() -> None:
    concrete = set(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}
    assert set(OPERATIONS) == concrete
    assert set(REFUSALS) == concrete
    assert REFUSALS[ResourceType.TOPIC] is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for operations in OPERATIONS.values():
        assert not {Operation.UNKNOWN, Operation.ANY, Operation.ALL} & set(operations)
