"""What a broker costs that nobody uses: start, memory, CPU; and what idle connections and parked fetches add.

python -m benchmarks.idle [--connections 1000] [--fetches 100] [--seconds 20]
"""

from __future__ import annotations

import argparse
import time

from benchmarks.peer import Peer
from benchmarks.processes import cpu_seconds, resident_mib

from ottla.protocol import apis
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.testing import BrokerProcess


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--fetches", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    began = time.perf_counter()
    with BrokerProcess(fresh=True) as broker:
        peer = Peer(broker.bootstrap)
        peer.greet()
        print(f"start to first answer        {time.perf_counter() - began:8.2f} s")
        alone_mib = resident_mib(broker.pid)
        print(f"memory                       {alone_mib:8.1f} MiB")
        print(f"idle CPU                     {cpu_share(broker.pid, options.seconds):8.2%}")
        peers = [Peer(broker.bootstrap) for _ in range(options.connections)]
        for each in peers:
            each.greet()
        with_peers_mib = resident_mib(broker.pid)
        each_kib = (with_peers_mib - alone_mib) * 1024 / options.connections
        print(f"{options.connections:,} idle connections".ljust(28), f"{with_peers_mib:8.1f} MiB", end="")
        print(f"  ({each_kib:.1f} KiB each), CPU {cpu_share(broker.pid, options.seconds):.2%}")
        peer.call(apis.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("quiet", 1, 1)]))
        for each in peers[: options.fetches]:
            each.send(apis.FETCH, 12, waiting_fetch(options.seconds))
        share = cpu_share(broker.pid, options.seconds)
        print(f"{options.fetches:,} parked fetches".ljust(28), f"CPU {share:.2%}")
        for each in peers:
            each.socket.close()


def waiting_fetch(seconds: float) -> FetchRequest:
    topic = FetchTopic(topic="quiet", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    return FetchRequest(max_wait_ms=int(seconds * 2_000) + 10_000, min_bytes=1, topics=[topic])


def cpu_share(pid: int, seconds: float) -> float:
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / seconds


if __name__ == "__main__":
    main()
