"""What a producer's callers do with transactions: waits for what `transactions` decides.

producer = Producer("localhost:9092", transactional_id="billing-1")
producer.init_transactions()
with producer.transaction():
    producer.send("invoices", b"...")
    producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ottla.client.admin_values import CommittedOffset, GroupMetadata, OpenTransaction
from ottla.client.errors import ClientError, Misused, TimedOut
from ottla.client.producer_core import ProducerCore
from ottla.client.producing import Changed
from ottla.client.transactions import Operation, State, Transactions
from ottla.model.topics import TopicPartition

_CLOSING_MS_MAX = 30_000  # what a producer that is closed may take to abort its open transaction


Wait = Callable[[Callable[[], bool], float | None], Awaitable[bool]]
"""Waits with the producer's lock held until a condition is true, at most so many seconds."""


class TransactionCalls:
    """The part of a producer that speaks of transactions; its shells are `producer` and `aio`."""

    def __init__(
        self,
        core: ProducerCore,
        changed: Changed,
        wait: Wait,
        flush: Callable[[float | None], Awaitable[None]],
    ) -> None:
        self._changed = changed
        self._cluster = core.cluster
        self._transactions = core.transactions
        self._max_block_ms = core.max_block_ms
        self._wait = wait
        self._flush = flush

    async def init_transactions(self) -> None:
        """Takes the place of any producer with this transactional.id, and ends what it has left open.

        Once, before the first transaction. Raises TimedOut after max.block.ms; called again it goes on.
        """
        with self._changed:
            operation = self._needed().initialize()
            await self._await(operation, "init_transactions()")

    async def begin_transaction(self) -> None:
        with self._changed:
            self._needed().begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | CommittedOffset], group: GroupMetadata
    ) -> None:
        """Commits a consumer's offsets together with the transaction, or not at all.

        They are the offsets of the next records to read; `group` is the consumer's `group_metadata()`.
        """
        commits = {
            target: CommittedOffset(each) if isinstance(each, int) else each
            for target, each in offsets.items()
        }
        with self._changed:
            transactions = self._needed()
            transactions.check_open()
            if not commits:
                return
            operation = transactions.add_offsets(group, commits)
            try:
                await self._await(operation, "send_offsets_to_transaction()")
            except TimedOut as error:
                transactions.batch_failed(error)  # nobody knows whether they are part of it
                raise

    async def commit_transaction(self) -> None:
        """Delivers what is left and commits; when this returns, that is decided for good.

        Raises TransactionFailed where it can only be aborted, ProducerFenced where another has taken over.
        After TimedOut the outcome is open: call it again, the transaction is still being committed.
        """
        with self._changed:
            operation = self._needed().commit()
            await self._await(operation, "commit_transaction()")

    async def abort_transaction(self) -> None:
        """Nobody will see anything of the transaction. Records that were not sent yet fail."""
        with self._changed:
            operation = self._needed().abort()
            await self._await(operation, "abort_transaction()")

    async def detach_transaction(self) -> OpenTransaction:
        """Delivers everything and leaves the transaction open, for `Admin.end_transactions` to end.

        After this the producer can only be closed, which does not abort it. Whoever calls init_transactions
        with the same transactional.id aborts it, and so does the coordinator after transaction.timeout.ms.
        """
        with self._changed:
            self._needed().check_open()
        await self._flush(self._max_block_ms / 1000)
        with self._changed:
            return self._needed().detach()

    def _needed(self) -> Transactions:
        if self._transactions is None:
            raise Misused("this producer has no transactions", "give it a transactional.id")
        return self._transactions

    async def _await(self, operation: Operation, what: str, block_ms: int | None = None) -> None:
        """With the lock held."""
        timeout_ms = self._max_block_ms if block_ms is None else block_ms
        self._cluster.network.wake()
        if not await self._wait(lambda: operation.is_done, timeout_ms / 1000):
            raise self._cluster.timed_out(what)
        if operation.error is not None:
            raise operation.error

    async def abort_after(self, error: BaseException) -> None:
        """As far as there is something to abort; the error that led here stays the one that is told."""
        with self._changed:
            if self._transactions is None or not self._transactions.may_be_ended:
                return
        try:
            await self.abort_transaction()
        except ClientError as problem:
            error.add_note(f"and the transaction could not be aborted: {problem}")

    async def abort_before_closing(self, timeout: float | None) -> None:
        """A transaction that its producer leaves open would hold up readers until it times out."""
        with self._changed:
            transactions = self._transactions
            if transactions is None or transactions.state is State.DETACHED:
                return
            block_ms = _CLOSING_MS_MAX if timeout is None else min(round(timeout * 1000), _CLOSING_MS_MAX)
            if transactions.may_be_ended:
                await self._await(transactions.abort(), "aborting the open transaction", block_ms)
