"""What a broker costs that nobody uses: start, memory, CPU; and what idle connections and parked fetches add.

python benchmarks/idle.py [--connections 1000] [--fetches 100] [--seconds 20]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from peer import Peer

from ottla.protocol import apis
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.testing import BrokerProcess

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--fetches", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    began = time.perf_counter()
    with BrokerProcess() as broker:
        peer = Peer(broker.bootstrap)
        peer.greet()
        print(f"start to first answer        {time.perf_counter() - began:8.2f} s")
        alone_kib = resident_kib(broker.pid)
        print(f"memory                       {alone_kib / 1024:8.1f} MiB")
        print(f"idle CPU                     {cpu_share(broker.pid, options.seconds):8.2%}")
        peers = [Peer(broker.bootstrap) for _ in range(options.connections)]
        for each in peers:
            each.greet()
        with_peers_kib = resident_kib(broker.pid)
        each_kib = (with_peers_kib - alone_kib) / options.connections
        print(
            f"{options.connections:,} idle connections".ljust(28), f"{with_peers_kib / 1024:8.1f} MiB", end=""
        )
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


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def cpu_share(pid: int, seconds: float) -> float:
    before = cpu_ticks(pid)
    time.sleep(seconds)
    return (cpu_ticks(pid) - before) / TICKS_PER_SECOND / seconds


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    main()
