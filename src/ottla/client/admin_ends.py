"""Ends transactions that their producers have left open, many at once. Used by `admin`.

All FindCoordinator questions go out together, then all EndTxn requests, and only what may pass by itself is
asked again. An answer that a producer was fenced, or that the transaction is in no state for this, is an
outcome: it never counts as done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.client import admin_topics
from ottla.client.addresses import Address
from ottla.client.admin_values import OpenTransaction
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError, ConnectionFailed, TimedOut, broker_error, error_code
from ottla.client.transaction_requests import (
    END_VERSION_BEFORE_LEVEL_2,
    FEATURE,
    LEVEL_2,
    Verdict,
    judge,
)
from ottla.protocol.apis import END_TXN, FIND_COORDINATOR
from ottla.protocol.fields import Message
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_KEY_TYPE_TRANSACTION = 1
_MANY_KEYS_SINCE = 4
_VERSION_END = 32_767
_BURST = 100  # requests under way: brokers take only so many of one connection

Outcomes = dict[OpenTransaction, ClientError | None]


async def end_transactions(
    cluster: Cluster, transactions: Iterable[OpenTransaction], deadline_ms: int, *, commit: bool
) -> Outcomes:
    """By transaction, why it could not be ended; None: it is."""
    outcomes: Outcomes = {}
    pending = list(dict.fromkeys(transactions))
    failures = 0
    while pending:
        asked = [each for each in pending if not each.is_empty]
        outcomes |= {each: None for each in pending if each.is_empty}
        outcomes |= await _end_once(cluster, asked, deadline_ms, commit=commit)
        pending = [each for each in asked if _may_pass(outcomes[each])]
        failures += 1
        pause_ms = cluster.backoff.pause_ms(failures)
        if pending and cluster.now_ms() + pause_ms >= deadline_ms:
            return outcomes
        if pending:
            await cluster.pause(pause_ms)
    return outcomes


def _may_pass(outcome: ClientError | None) -> bool:
    if isinstance(outcome, BrokerError):
        return judge(outcome.code) in (Verdict.ASK_AGAIN, Verdict.FIND_AGAIN)
    return isinstance(outcome, ConnectionFailed | TimedOut) and outcome.retriable


async def _end_once(
    cluster: Cluster, transactions: Sequence[OpenTransaction], deadline_ms: int, *, commit: bool
) -> Outcomes:
    outcomes: Outcomes = {}
    try:
        found = await _coordinators(cluster, [each.transactional_id for each in transactions], deadline_ms)
    except ClientError as error:
        return dict.fromkeys(transactions, error)
    levels: dict[Address, int] = {}
    for start in range(0, len(transactions), _BURST):
        burst = transactions[start : start + _BURST]
        expected = len(outcomes) + len(burst)
        for each in burst:
            place = found[each.transactional_id]
            try:
                if isinstance(place, ClientError):
                    raise place
                if place not in levels:
                    levels[place] = await _level(cluster, place, deadline_ms)
                _send_end(cluster, place, each, outcomes, levels[place], commit=commit)
            except ClientError as error:
                outcomes[each] = error
        while len(outcomes) < expected:
            await cluster.turn(1_000)
    return outcomes


def _send_end(
    cluster: Cluster, address: Address, each: OpenTransaction, outcomes: Outcomes, level: int, *, commit: bool
) -> None:
    def take(result: Message | ClientError, _version: int) -> None:
        if isinstance(result, ClientError):
            outcomes[each] = result
            return
        assert isinstance(result, EndTxnResponse)
        code = error_code(result.error_code)
        outcomes[each] = broker_error(code, f"transactional id {each.transactional_id!r}") if code else None

    message = EndTxnRequest(each.transactional_id, each.producer_id, each.producer_epoch, commit)
    version_max = _VERSION_END if level >= LEVEL_2 else END_VERSION_BEFORE_LEVEL_2
    cluster.send(address, END_TXN, message, take, version_max=version_max)


async def _level(cluster: Cluster, address: Address, deadline_ms: int) -> int:
    """Of transaction.version, at the coordinator."""
    features = (await admin_topics.broker_versions(cluster, address, deadline_ms)).finalized_features
    return features.get(FEATURE, (0, 0))[1]


async def _coordinators(
    cluster: Cluster, ids: Sequence[str], deadline_ms: int
) -> dict[str, Address | ClientError]:
    """Where each transactional id is coordinated, or why that is not known."""
    found: dict[str, Address | ClientError] = {}
    while unknown := [each for each in ids if each not in found]:

        def request(version: int, unknown: Sequence[str] = unknown) -> FindCoordinatorRequest:
            if version < _MANY_KEYS_SINCE:
                return FindCoordinatorRequest(key=unknown[0], key_type=_KEY_TYPE_TRANSACTION)
            return FindCoordinatorRequest(coordinator_keys=unknown, key_type=_KEY_TYPE_TRANSACTION)

        answer = await cluster.call(
            cluster.any_address(), FIND_COORDINATOR, request, FindCoordinatorResponse, deadline_ms
        )
        if not answer.coordinators:
            found[unknown[0]] = _place(unknown[0], answer)
        found |= {told.key: _place(told.key, told) for told in answer.coordinators}
    return found


def _place(key: str, told: Coordinator | FindCoordinatorResponse) -> Address | ClientError:
    if told.error_code:
        return broker_error(told.error_code, f"transactional id {key!r}", told.error_message)
    return Address(told.host, told.port)
