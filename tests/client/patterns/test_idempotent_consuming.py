"""Records that come twice are handled once: strictly with a ledger, nearly always with remembered ids."""

from __future__ import annotations

import threading
import uuid
from contextlib import closing

import pytest

from client.patterns.databases import Connect, redis_server
from ottla.client.errors import InvalidSetting
from ottla.client.patterns import Ledger, RedisSeenIds, SeenIds
from ottla.client.patterns.statements import execute


@pytest.fixture
def ledger(connect: Connect) -> Ledger:
    ledger = Ledger(f"ledger_{uuid.uuid4().hex}")
    with closing(connect()) as connection:
        ledger.create(connection)
        ledger.create(connection)
        connection.commit()
    return ledger


def test_the_same_id_is_new_once_for_each_consumer(connect: Connect, ledger: Ledger) -> None:
    with closing(connect()) as connection:
        assert ledger.first_time(connection, "billing", "order-1")
        assert not ledger.first_time(connection, "billing", "order-1")
        assert ledger.first_time(connection, "points", "order-1")
        connection.commit()
    with closing(connect()) as connection:
        assert not ledger.first_time(connection, "billing", "order-1")


def test_an_id_is_new_again_when_its_work_was_rolled_back(connect: Connect, ledger: Ledger) -> None:
    with closing(connect()) as connection:
        assert ledger.first_time(connection, "billing", "order-1")
        connection.rollback()
        assert ledger.first_time(connection, "billing", "order-1")


def test_of_many_workers_with_one_id_one_does_the_work(connect: Connect, ledger: Ledger) -> None:
    table = f"work_{uuid.uuid4().hex}"
    with closing(connect()) as connection:
        execute(connection, f"CREATE TABLE {table} (id VARCHAR(40))")
        connection.commit()

    def work() -> None:
        with closing(connect()) as connection:
            if ledger.first_time(connection, "billing", "order-1"):
                execute(connection, f"INSERT INTO {table} VALUES (?)", ("order-1",))
            connection.commit()

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with closing(connect()) as connection:
        assert execute(connection, f"SELECT COUNT(*) FROM {table}").fetchone() == (1,)


def test_a_table_name_is_a_plain_name() -> None:
    with pytest.raises(InvalidSetting, match="no name of a table"):
        Ledger("x; DROP TABLE orders")


def test_ids_in_memory_expire_and_are_bounded() -> None:
    now = [0.0]
    seen = SeenIds(10, count_max=3, clock=lambda: now[0])
    assert seen.first_time("a")
    assert not seen.first_time("a")
    seen.forget("a")
    assert seen.first_time("a")
    now[0] = 10.0
    assert seen.first_time("a"), "it has expired"
    for each in "bcd":
        assert seen.first_time(each)
    assert seen.first_time("a"), "only the newest are remembered"
    assert not seen.first_time("d")


@pytest.mark.slow
def test_ids_in_redis_are_shared_and_expire() -> None:
    with redis_server() as client:
        one, other = RedisSeenIds(client, 60), RedisSeenIds(client, 60)
        assert one.first_time("a")
        assert not other.first_time("a")
        other.forget("a")
        assert one.first_time("a")
        assert 59_000 < client.pttl("ottla:seen:a") <= 60_000
        brief = RedisSeenIds(client, 0.001, prefix="brief:")
        assert brief.first_time("b")
        while client.exists("brief:b"):
            pass
        assert brief.first_time("b")
