"""What a principal may do. Every request asks here, through one hook; the numbers are Kafka's."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from ottla.model.errors import ErrorCode
from ottla.security.principals import Principal

CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1  # in filters only
    ALL = 2  # in rules only: every operation
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15  # KIP-939


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1  # in filters only
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that exist on each kind of resource."""

REFUSALS: dict[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
"""What a request is answered with that may not touch such a resource."""


class Authorizer(Protocol):
    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        """Whether `principal`, connected from address `host`, may do `operation` on the resource."""
        ...


class AllowAll:
    """No rules: whoever can connect may do everything."""

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        return True


def authorized_operations(
    authorizer: Authorizer, principal: Principal, host: str, resource_type: ResourceType, resource_name: str
) -> int:
    """The bit field of Metadata and Describe answers: bit n is set when operation n is allowed (KIP-430)."""
    bits = 0
    for operation in OPERATIONS[resource_type]:
        if authorizer.authorize(principal, host, operation, resource_type, resource_name):
            bits |= 1 << operation
    return bits
