"""How a member comes from what it has to what it shall have (KIP-848, "reconciliation").

It keeps what it may keep, gives up the rest, says so in a heartbeat, and only then is in the target's epoch
and gets what nobody else has.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.coordinator.consumer_members import NO_SLOTS, ConsumerMember, MemberState, Slot, Slots
from ottla.model.values import replace


def reconcile(
    member: ConsumerMember,
    target: Slots,
    target_epoch: int,
    owned: Slots | None,
    is_free: Callable[[Slot], bool],
) -> ConsumerMember:
    """`owned` is what the member says it has (None: what it said last); `is_free` for this member."""
    if member.state is MemberState.STABLE and member.epoch == target_epoch and member.assigned == target:
        return member
    epoch = member.epoch
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _holds(owned, member.pending_revocation):
            return member
        epoch += 1  # a commit for what it has given up, sent before and late, is of an old epoch now
    kept = member.assigned & target
    to_revoke = member.assigned - target
    if to_revoke and _holds(owned, to_revoke):
        return replace(
            _in_epoch(member, epoch),
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=to_revoke,
        )
    wanted = target - kept
    free = frozenset(slot for slot in wanted if is_free(slot))
    return replace(
        _in_epoch(member, target_epoch),
        state=MemberState.STABLE if free == wanted else MemberState.UNRELEASED_PARTITIONS,
        assigned=kept | free,
        pending_revocation=NO_SLOTS,
    )


def _in_epoch(member: ConsumerMember, epoch: int) -> ConsumerMember:
    return member if epoch == member.epoch else replace(member, epoch=epoch, previous_epoch=member.epoch)


def _holds(owned: Slots | None, slots: Slots) -> bool:
    """Whether the member may still be reading any of them."""
    return owned is None or not owned.isdisjoint(slots)
