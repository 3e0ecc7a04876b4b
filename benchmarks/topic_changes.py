"""Does a change of topics hold up producers? Produce latency beside topics that are made and deleted.

    python -m benchmarks.topic_changes [--rate 200] [--partitions 1,100,1000,3000] [--data DIR]

acks=1 needs no disk, so neither the files of new partitions nor the going of old ones may show in it. A topic
of each size is made, deleted, and made anew under the same name right away. Also told: how long the change
itself took, from request to answer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.latency import produce, quantile
from benchmarks.peer import Peer

from ottla.protocol import apis
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.records.content import Record, build_batch
from ottla.testing import BrokerProcess

REST_SECONDS = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--partitions", default="1,100,1000,3000")
    parser.add_argument("--data", type=Path, help="a directory on the disk to measure")
    options = parser.parse_args()
    print(f"{'produce, acks=1, ms':<40}{'p50':>9}{'p99':>9}{'max':>9}   the change took")
    with BrokerProcess(data_dir=options.data, fresh=True) as broker:
        admin = Peer(broker.bootstrap)
        admin.socket.settimeout(120)
        create(admin, "live", 1)
        beside(broker, options.rate, "nothing", lambda: time.sleep(3))
        for partitions in map(int, options.partitions.split(",")):
            changed = f"changed-{partitions}"
            for name, change in (
                ("creation", lambda: create(admin, changed, partitions)),  # noqa: B023
                ("deletion", lambda: delete(admin, changed)),  # noqa: B023
                ("creation of the same", lambda: create(admin, changed, partitions)),  # noqa: B023
                ("deletion again", lambda: delete(admin, changed)),  # noqa: B023
            ):
                beside(broker, options.rate, f"{partitions:5} partitions: {name}", change)


def create(admin: Peer, name: str, partitions: int) -> None:
    topics = [CreatableTopic(name, partitions, 1)]
    answer = admin.call(apis.CREATE_TOPICS, 5, CreateTopicsRequest(topics, timeout_ms=120_000))
    assert answer.topics[0].error_code == 0, answer


def delete(admin: Peer, name: str) -> None:
    answer = admin.call(apis.DELETE_TOPICS, 1, DeleteTopicsRequest(topic_names=[name], timeout_ms=120_000))
    assert answer.responses[0].error_code == 0, answer


def beside(broker: BrokerProcess, rate: int, name: str, change: Callable[[], None]) -> None:
    """What producers see during `change`, and a little longer: files may go after its answer."""
    stop = multiprocessing.Event()
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=produce_on, args=(broker.bootstrap, rate, stop, theirs.send))
    process.start()
    time.sleep(REST_SECONDS)
    began = time.perf_counter()
    change()
    seconds = time.perf_counter() - began
    time.sleep(REST_SECONDS)
    stop.set()
    latencies = ours.recv()
    process.join()
    figures = [quantile(latencies, share) for share in (0.5, 0.99, 1)]
    shown = "".join(f"{figure:9.2f}" for figure in figures)
    print(f"{name:<40}{shown}   {seconds:6.2f} s", flush=True)


def produce_on(bootstrap: str, rate: int, stop: Event, done: Callable[[list[float]], None]) -> None:
    """Milliseconds of each request, from when it should have left: a stall counts for all it delays."""
    peer = Peer(bootstrap)
    batch = build_batch([Record(0, int(time.time() * 1000), None, b"x" * 100)])
    latencies = []
    began = time.perf_counter()
    number = 0
    while not stop.is_set():
        due = began + number / rate
        number += 1
        while (wait := due - time.perf_counter()) > 0:
            time.sleep(wait)
        peer.call(apis.PRODUCE, 9, produce("live", batch))
        latencies.append((time.perf_counter() - due) * 1000)
    done(sorted(latencies))


if __name__ == "__main__":
    main()
