"""Every recipe of kazoo works against the service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.barrier import DoubleBarrier
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.lease import MultiNonBlockingLease, NonBlockingLease
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock
from kazoo.recipe.partitioner import SetPartitioner
from kazoo.recipe.party import Party, ShallowParty
from kazoo.recipe.queue import LockingQueue, Queue
from kazoo.recipe.watchers import ChildrenWatch, DataWatch, PatientChildrenWatch

Connect = Callable[..., KazooClient]
PATIENCE_SECONDS = 30


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_thread(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def join(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_lock_is_held_by_one_at_a_time_in_order_of_arrival(connect: Connect) -> None:
    clients = [connect() for _ in range(4)]
    holding: list[int] = []
    order: list[int] = []

    def take(number: int) -> None:
        with Lock(clients[number], "/lock", str(number)):
            holding.append(number)
            assert len(holding) == 1
            order.append(number)
            holding.pop()

    first = Lock(clients[0], "/lock", "holder")
    first.acquire(timeout=PATIENCE_SECONDS)
    threads = []
    for number in (1, 2, 3):
        threads.append(in_thread(lambda number=number: take(number)))  # type: ignore[misc]
        wait_until(lambda number=number: len(first.contenders()) == number + 1)  # type: ignore[misc]
    assert first.contenders() == ["holder", "1", "2", "3"]
    with pytest.raises(LockTimeout):
        Lock(clients[0], "/lock", "impatient").acquire(timeout=0.05)
    first.release()
    join(*threads)
    assert order == [1, 2, 3]


def test_read_locks_are_shared_and_write_locks_are_not(connect: Connect) -> None:
    one, two, three = connect(), connect(), connect()
    reading, also_reading = ReadLock(one, "/shared"), ReadLock(two, "/shared")
    writing = WriteLock(three, "/shared")
    assert reading.acquire(timeout=PATIENCE_SECONDS)
    assert also_reading.acquire(timeout=PATIENCE_SECONDS)
    assert not writing.acquire(blocking=False)
    reading.release()
    also_reading.release()
    assert writing.acquire(timeout=PATIENCE_SECONDS)
    assert not reading.acquire(blocking=False)
    writing.release()


def test_semaphore_lets_as_many_in_as_it_has_leases(connect: Connect) -> None:
    semaphores = [Semaphore(connect(), "/semaphore", max_leases=2) for _ in range(3)]
    assert semaphores[0].acquire(timeout=PATIENCE_SECONDS)
    assert semaphores[1].acquire(timeout=PATIENCE_SECONDS)
    assert not semaphores[2].acquire(blocking=False)
    assert len(semaphores[0].lease_holders()) == 2
    semaphores[0].release()
    assert semaphores[2].acquire(timeout=PATIENCE_SECONDS)


def test_election_has_one_leader_and_the_next_one_follows(connect: Connect) -> None:
    leaders: list[str] = []
    resign = {name: threading.Event() for name in ("one", "two")}

    def lead(name: str) -> None:
        leaders.append(name)
        resign[name].wait(PATIENCE_SECONDS)

    elections = {name: connect().Election("/election", name) for name in resign}
    first = in_thread(lambda: elections["one"].run(lead, "one"))
    wait_until(lambda: leaders == ["one"])
    second = in_thread(lambda: elections["two"].run(lead, "two"))
    wait_until(lambda: elections["one"].contenders() == ["one", "two"])
    resign["one"].set()
    wait_until(lambda: leaders == ["one", "two"])
    resign["two"].set()
    join(first, second)


@pytest.mark.parametrize("kind", [Party, ShallowParty])
def test_party_knows_its_members(connect: Connect, kind: type[Party]) -> None:
    here, there = kind(connect(), "/party", "here"), kind(connect(), "/party", "there")
    here.join()
    there.join()
    assert sorted(here) == ["here", "there"]
    there.leave()
    assert list(here) == ["here"]
    assert len(there) == 1


def test_barrier_holds_until_it_is_removed(connect: Connect) -> None:
    keeper, waiter = connect().Barrier("/barrier"), connect().Barrier("/barrier")
    keeper.create()
    assert waiter.wait(0.1) is False
    passed = []
    thread = in_thread(lambda: passed.append(waiter.wait(PATIENCE_SECONDS)))
    keeper.remove()
    join(thread)
    assert passed == [True]


def test_double_barrier_begins_and_ends_together(connect: Connect) -> None:
    inside: list[str] = []
    barriers = [DoubleBarrier(connect(), "/double", 3, str(number)) for number in range(3)]

    def cross(barrier: DoubleBarrier) -> None:
        barrier.enter()
        inside.append("entered")
        barrier.leave()
        assert len(inside) == 3

    join(*[in_thread(lambda barrier=barrier: cross(barrier)) for barrier in barriers])  # type: ignore[misc]
    assert inside == ["entered"] * 3


def test_counter_counts_what_several_clients_add(connect: Connect) -> None:
    counters = [connect().Counter("/counter") for _ in range(3)]

    def count(counter: object) -> None:
        for _ in range(10):
            counter += 1  # type: ignore[operator]

    join(*[in_thread(lambda counter=counter: count(counter)) for counter in counters])  # type: ignore[misc]
    assert counters[0].value == 30


def test_queue_gives_by_priority_and_then_by_age(connect: Connect) -> None:
    queue = Queue(connect(), "/queue")
    for item, priority in ((b"late", 200), (b"first", 100), (b"second", 100)):
        queue.put(item, priority=priority)
    assert len(queue) == 3
    assert [queue.get() for _ in range(4)] == [b"first", b"second", b"late", None]


def test_locking_queue_gives_an_item_to_one_consumer(connect: Connect) -> None:
    one, two = LockingQueue(connect(), "/work"), LockingQueue(connect(), "/work")
    one.put_all([b"a", b"b"])
    assert one.get(PATIENCE_SECONDS) == b"a"
    assert two.get(PATIENCE_SECONDS) == b"b"
    assert one.consume()
    assert two.consume()
    assert two.get(0.1) is None
    assert len(one) == 0


def test_leases_are_given_to_as_many_as_there_are(connect: Connect) -> None:
    client = connect()
    day = timedelta(days=1)
    assert NonBlockingLease(client, "/lease", day, identifier="one")
    assert not NonBlockingLease(client, "/lease", day, identifier="two")
    assert NonBlockingLease(client, "/lease", day, identifier="one")
    granted = [bool(MultiNonBlockingLease(client, 2, "/leases", day, identifier=str(n))) for n in range(3)]
    assert granted == [True, True, False]


def test_tree_cache_follows_a_part_of_the_tree(connect: Connect) -> None:
    client, other = connect(), connect()
    client.ensure_path("/cached/a")
    cache = TreeCache(client, "/cached")
    ready = threading.Event()
    cache.listen(lambda event: ready.set() if event.event_type == TreeEvent.INITIALIZED else None)
    cache.start()
    assert ready.wait(PATIENCE_SECONDS)
    other.create("/cached/a/b", b"new")
    wait_until(lambda: (found := cache.get_data("/cached/a/b")) is not None and found.data == b"new")
    other.set("/cached/a/b", b"changed")
    wait_until(lambda: cache.get_data("/cached/a/b").data == b"changed")
    assert cache.get_children("/cached/a") == frozenset({"b"})
    other.delete("/cached/a", recursive=True)
    wait_until(lambda: cache.get_data("/cached/a") is None)
    cache.close()


def test_partitioner_gives_every_item_to_exactly_one_member(connect: Connect) -> None:
    items = frozenset(range(6))
    partitioners = [
        SetPartitioner(connect(), "/parts", items, identifier=str(number), time_boundary=0.2)
        for number in range(3)
    ]

    def acquired() -> bool:
        for partitioner in partitioners:
            assert not partitioner.failed
            if partitioner.release:
                partitioner.release_set()
            elif partitioner.allocating:
                partitioner.wait_for_acquire(0.1)
        return all(partitioner.acquired for partitioner in partitioners)

    wait_until(acquired)
    held = [list(partitioner) for partitioner in partitioners]
    assert sorted(item for share in held for item in share) == sorted(items)
    assert [len(share) for share in held] == [2, 2, 2]
    partitioners.pop().finish()
    wait_until(lambda: acquired() and sum(len(list(partitioner)) for partitioner in partitioners) == 6)
    for partitioner in partitioners:
        partitioner.finish()


def test_data_and_children_watches_call_on_each_change(connect: Connect) -> None:
    client, other = connect(), connect()
    values: list[bytes | None] = []
    names: list[list[str]] = []
    DataWatch(client, "/live", lambda data, _: values.append(data))
    wait_until(lambda: values == [None])
    other.create("/live", b"1")
    wait_until(lambda: values == [None, b"1"])
    ChildrenWatch(client, "/live", lambda children: names.append(sorted(children)))
    for step in (b"2", b"3"):
        other.set("/live", step)
        wait_until(lambda step=step: values[-1] == step)  # type: ignore[misc]
    other.create("/live/a")
    wait_until(lambda: names[-1] == ["a"])
    other.delete("/live", recursive=True)
    wait_until(lambda: values[-1] is None)
    assert values == [None, b"1", b"2", b"3", None]


def test_patient_watch_waits_until_children_settle(connect: Connect) -> None:
    client, other = connect(), connect()
    client.ensure_path("/settling")
    result = PatientChildrenWatch(client, "/settling", time_boundary=0.3).start()
    other.create("/settling/one")
    other.create("/settling/two")
    children, _ = result.get(timeout=PATIENCE_SECONDS)
    assert sorted(children) == ["one", "two"]
