"""Between kazoo's words and ours: client, errors, transactions. kazoo is imported only when it is used."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ottla.coordination.operations import (
    NO_TTL,
    Check,
    CloseSession,
    Code,
    Create,
    Delete,
    Multi,
    OpenSession,
    Operation,
    Refusal,
    Result,
    SetAcl,
    SetData,
    Step,
    StepResult,
)
from ottla.coordination.watches import EventType

logger = logging.getLogger(__name__)


class EnsembleUnreachable(OSError):
    """No server of the ensemble answers, or kazoo is not installed."""


EVENT_TYPES = {
    "CREATED": EventType.NODE_CREATED,
    "DELETED": EventType.NODE_DELETED,
    "CHANGED": EventType.NODE_DATA_CHANGED,
    "CHILD": EventType.NODE_CHILDREN_CHANGED,
}


def new_client(hosts: str, session_timeout_ms: int) -> Any:
    try:
        from kazoo.client import KazooClient
        from kazoo.retry import KazooRetry
    except ImportError as error:
        raise EnsembleUnreachable(
            "an Apache ZooKeeper ensemble is reached with kazoo, which is not installed: "
            "pip install 'ottla[zookeeper]'"
        ) from error
    return KazooClient(
        hosts,
        timeout=session_timeout_ms / 1000,
        connection_retry=KazooRetry(max_tries=-1, max_delay=2.0),
        logger=logger,
    )


def is_connection_loss(error: BaseException | None) -> bool:
    return error is not None and code_of(error) is Code.CONNECTION_LOSS


def code_of(answer: Any) -> Code:
    """Of one of kazoo's exceptions; its "rolled back" is ZooKeeper's OK inside of a failed multi."""
    if not isinstance(answer, Exception):
        return Code.OK
    try:
        return Code(getattr(answer, "code", Code.SYSTEM_ERROR))
    except ValueError:
        return Code.SYSTEM_ERROR


def session_is_over() -> Result:
    return Result(Code.SESSION_EXPIRED, 0, [StepResult(Code.SESSION_EXPIRED)])


def steps_of(operation: Operation) -> Sequence[Step]:
    if isinstance(operation, Multi):
        return operation.steps
    if isinstance(operation, OpenSession | CloseSession):
        return [Refusal(Code.UNIMPLEMENTED)]  # sessions are kazoo's business
    return [operation]


def is_supported(step: Step) -> bool:
    if isinstance(step, Create):
        return not step.container and step.ttl_ms == NO_TTL
    return not isinstance(step, SetAcl | Refusal)


def add_step(transaction: Any, step: Step) -> None:
    if isinstance(step, Create):
        from kazoo.security import ACL, Id

        acl = [ACL(line.perms, Id(line.scheme, line.id)) for line in step.acl]
        transaction.create(step.path, step.data or b"", acl, step.ephemeral, step.sequential)
    elif isinstance(step, Delete):
        transaction.delete(step.path, step.version)
    elif isinstance(step, SetData):
        transaction.set_data(step.path, step.data or b"", step.version)
    elif isinstance(step, Check):
        transaction.check(step.path, step.version)
