"""The ledger under many hands at once: one run holds a query, and every hand agrees on what was decided."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ottla.client.admin import Admin
from ottla.client.admin_values import OpenTransaction
from ottla.spark import ledger as ledgers
from ottla.spark.ledger import Ledger
from ottla.testing import BrokerProcess


def test_tasks_of_one_run_claim_at_the_same_moment(broker: BrokerProcess) -> None:
    def claim(number: int) -> str:
        bootstrap = ",".join(
            [broker.bootstrap] * (number + 1)
        )  # nothing shared, as in processes of their own
        with Admin(bootstrap) as admin:
            return Ledger(admin, bootstrap, {}).claim("crowded", "run").run

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(claim, range(4))) == {"run"}


def test_a_later_run_keeps_what_was_decided_and_remembers_whom_it_followed(
    broker: BrokerProcess, admin: Admin
) -> None:
    ledger = Ledger(admin, broker.bootstrap, {})
    transactions = (OpenTransaction("a", 7, 1), OpenTransaction("b", 8, 2))
    ledger.claim("followed", "first")
    ledger.decide("followed", "first", 3, transactions)
    ledger.note_ended("followed", 3)
    ledger.claim("followed", "second")
    ledgers._scans.clear()  # another process reads it from the topic
    state = Ledger(admin, broker.bootstrap, {}).state("followed")
    assert state is not None
    assert (state.run, state.past, state.batch) == ("second", ("first",), 3)
    assert state.transactions == transactions
    assert ledger.ended("followed") == 3
    assert ledger.decide("followed", "second", 3, ()).transactions == transactions
    ledger.forget("followed")
    assert ledger.state("followed") is None
