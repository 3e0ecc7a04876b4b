"""How the transactions of a batch come to their end, in the driver: committed once it is decided, or aborted.

A transaction is only ever named by producer id and epoch here, never initialised anew: whoever is late finds
that it is over, and ends nothing of somebody else's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from ottla.client.admin import Admin
from ottla.client.admin_values import OpenTransaction
from ottla.client.errors import ClientError
from ottla.spark.errors import JobError, LostTransaction, Undecidable
from ottla.spark.ledger import Ledger, State
from ottla.spark.transactional_ids import is_of_a_task

_ENDING_SECONDS_MAX = 300.0  # a broker may restart meanwhile

log = logging.getLogger(__name__)


def check_open(admin: Admin, opened: Iterable[OpenTransaction], batch: int) -> None:
    """Before a decision: if one has timed out meanwhile the batch comes again, and nothing is lost."""
    for each in opened:
        found = admin.transaction(each.transactional_id)
        if found.state != "Ongoing" or (found.producer_id, found.producer_epoch) != (
            each.producer_id,
            each.producer_epoch,
        ):
            raise Undecidable(
                f"transaction {each.transactional_id} of batch {batch} is {found.state}, and no longer "
                "its own: it took longer than kafka.transaction.timeout.ms, or another run has taken over"
            )


def finish(admin: Admin, ledger: Ledger, query: str, state: State) -> None:
    """Commits every transaction of a decided batch, waits for a broker that is away, and notes the end."""
    left: Iterable[OpenTransaction] = state.transactions
    deadline = time.monotonic() + _ENDING_SECONDS_MAX
    while problems := _try_to_commit(admin, left):
        lost = [each for each, problem in problems.items() if not problem.retriable]
        if lost and ledger.is_ended(query, state.batch):
            return  # another driver was faster, and the ids are in use again
        if lost:
            raise LostTransaction(
                f"batch {state.batch} of query {query} was decided, but {len(lost)} of its "
                f"{len(state.transactions)} transactions cannot be committed any more, the first of them "
                f"{lost[0].transactional_id}: {problems[lost[0]]}. Their records are lost, the others are in "
                "the topic. Start again with a new checkpoint location from the offsets of that batch"
            )
        left = list(problems)
        if time.monotonic() > deadline:
            raise JobError(
                f"batch {state.batch} of query {query} is decided, but {left[0].transactional_id} is not "
                f"committed yet: {problems[left[0]]}. Start the query again within the transaction timeout "
                "to finish it"
            )
        time.sleep(0.2)
    if state.comes_again:
        ledger.note_ended(query, state.batch)
    else:
        ledger.forget(query)


def _try_to_commit(
    admin: Admin, transactions: Iterable[OpenTransaction]
) -> dict[OpenTransaction, ClientError]:
    """What could not be committed, and why."""
    try:
        answers = admin.end_transactions(transactions, commit=True)
    except ClientError as error:
        return dict.fromkeys(transactions, error)
    return {each: problem for each, problem in answers.items() if problem is not None}


def finish_others(admin: Admin, ledger: Ledger) -> None:
    """Batch writes whose driver died between its decision and the last end: nobody else would finish them."""
    for query, state in ledger.unfinished():
        try:
            finish(admin, ledger, query, state)
        except (JobError, ClientError) as error:
            log.warning("a decided write of somebody else cannot be finished: %s", error)


def abort(admin: Admin, opened: Iterable[OpenTransaction]) -> None:
    for transaction, error in admin.end_transactions(opened, commit=False).items():
        if error is not None:
            log.warning("%s could not be aborted: %s", transaction.transactional_id, error)


def drop_leftovers(admin: Admin, ledger: Ledger, query: str, run: str, *, comes_again: bool) -> None:
    """Transactions of attempts that died hold back readers until they time out.

    A later run opens transactions only after its claim. So what was open before the claim was seen to be this
    run's still is nothing of a later one.
    """
    left = [each.id for each in admin.transactions(["Ongoing"]) if is_of_a_task(each.id, query)]
    found = [each for each in map(admin.transaction, left) if each.state == "Ongoing"]
    if not found:
        return
    state = ledger.state(query)
    if comes_again and (state is None or state.run != run):
        return  # the later run will look after what it finds
    abort(admin, [OpenTransaction(each.id, each.producer_id, each.producer_epoch) for each in found])
