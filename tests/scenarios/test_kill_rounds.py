"""kill -9 of a real broker under load, again and again: nothing is lost, doubled or reordered."""

from __future__ import annotations

import random

import pytest

from ottla.testing import BrokerProcess
from scenarios.orders import PARTITIONS, Orders, create_orders_topic, read


def kill_again_and_again(rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    # Small segments and frequent checkpoints, so that kills meet rolls, checkpoints and snapshots.
    settings = {
        "log.segment.bytes": str(1024 * 1024),
        "log.flush.offset.checkpoint.interval.ms": "50",
        "log.initial.task.delay.ms": "0",
    }
    with BrokerProcess(settings=settings) as broker:
        create_orders_topic(broker.bootstrap)
        orders = Orders(broker.bootstrap, value_bytes=500)
        for _ in range(rounds):
            orders.write(rng.uniform(0.05, 0.4))
            broker.kill()
            broker.start()
        orders.write(0.1)
        orders.finish()
        assert not orders.failed
        assert orders.count > rounds * PARTITIONS
        for partition in range(PARTITIONS):
            expected = [orders.value(number) for number in range(partition, orders.count, PARTITIONS)]
            assert read(broker.bootstrap, partition, len(expected)) == expected


def test_kills_under_load_lose_double_and_reorder_nothing() -> None:
    kill_again_and_again(rounds=6, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_dozens_of_kills_under_load_lose_double_and_reorder_nothing(seed: int) -> None:
    kill_again_and_again(rounds=36, seed=seed)
