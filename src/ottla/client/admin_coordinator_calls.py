"""What admin clients ask of coordinators: groups, what they have committed, transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client import admin_ends, admin_groups, admin_transactions
from ottla.client.admin_asking import Asking
from ottla.client.admin_values import (
    CommittedOffset,
    GroupDescription,
    GroupListing,
    ListedTransaction,
    OpenTransaction,
    PartitionTransaction,
    TransactionDescription,
)
from ottla.client.errors import ClientError
from ottla.model.topics import TopicPartition


class CoordinatorCalls(Asking):
    # -- groups --------------------------------------------------------------------------------------------

    async def groups(self) -> tuple[GroupListing, ...]:
        """All groups of the cluster, by id."""
        return await admin_groups.list_groups(self._cluster, self._deadline_ms())

    async def group(self, group_id: str) -> GroupDescription:
        return await admin_groups.describe_group(self._cluster, group_id, self._deadline_ms())

    async def remove_group_members(self, group_id: str, instance_ids: Iterable[str] | None = None) -> None:
        """Takes members out of a classic group: those with these static names, or (None) all there are."""
        deadline_ms = self._deadline_ms()
        there = (await admin_groups.describe_group(self._cluster, group_id, deadline_ms)).members
        if instance_ids is not None:
            wanted = set(instance_ids)
            there = tuple(each for each in there if each.instance_id in wanted)
        await admin_groups.remove_members(self._cluster, group_id, there, deadline_ms)

    async def delete_groups(self, ids: Iterable[str]) -> dict[str, ClientError | None]:
        """By id, what hindered the deletion; None: it is gone."""
        return await admin_groups.delete_groups(self._cluster, ids, self._deadline_ms())

    async def group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed; partitions without a commit are left out.

        `require_stable` waits for transactions that are about to commit for it (KIP-447).
        """
        wanted = None if partitions is None else tuple(partitions)
        return await admin_groups.fetch_offsets(
            self._cluster, group_id, wanted, self._deadline_ms(), require_stable=require_stable
        )

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> None:
        """Commits for a group that has no members; one that is not there is made."""
        commits = {
            target: CommittedOffset(each) if isinstance(each, int) else each
            for target, each in offsets.items()
        }
        await admin_groups.alter_offsets(self._cluster, group_id, commits, self._deadline_ms())

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        await admin_groups.delete_offsets(self._cluster, group_id, tuple(partitions), self._deadline_ms())

    # -- transactions --------------------------------------------------------------------------------------

    async def transactions(self, states: Sequence[str] = ()) -> tuple[ListedTransaction, ...]:
        """The transactional ids of all coordinators, in these states (none named: in any)."""
        deadline_ms = self._deadline_ms()
        brokers = (await self._view((), deadline_ms)).brokers.values()
        return await admin_transactions.list_transactions(self._cluster, brokers, states, deadline_ms)

    async def transaction(self, transactional_id: str) -> TransactionDescription:
        return await admin_transactions.describe_transaction(
            self._cluster, transactional_id, self._deadline_ms()
        )

    async def open_transactions(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[PartitionTransaction, ...]:
        """Those that have records in the partitions and no end, whatever a coordinator knows of them."""
        return await admin_transactions.open_transactions(self._cluster, partitions, self._deadline_ms())

    async def fence_producer(self, transactional_id: str) -> None:
        """Whoever writes under the id is fenced, and its open transaction aborted."""
        await admin_transactions.fence_producer(self._cluster, transactional_id, self._deadline_ms())

    async def end_transactions(
        self, transactions: Iterable[OpenTransaction], *, commit: bool
    ) -> dict[OpenTransaction, ClientError | None]:
        """Ends what `Producer.detach_transaction` left open; by transaction, why not (None: it is ended).

        One that was ended the same way before counts as ended. After TimedOut or a broken connection the
        outcome is open, and may be asked for again.
        """
        return await admin_ends.end_transactions(
            self._cluster, transactions, self._deadline_ms(), commit=commit
        )

    async def end_transaction(self, transaction: OpenTransaction, *, commit: bool = True) -> None:
        error = (await self.end_transactions([transaction], commit=commit))[transaction]
        if error is not None:
            raise error

    async def abort_open_transaction(self, hanging: PartitionTransaction) -> None:
        """Ends it in that partition, past any coordinator: only for one that no coordinator will end."""
        await admin_transactions.abort_open(self._cluster, hanging, self._deadline_ms())
