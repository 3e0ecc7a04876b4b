"""What a trial works with: a broker, the clients in C, topics of its own, and how long it may take."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import topics
from benchmarks.against_kafka.brokers import Broker
from benchmarks.against_kafka.rows import Scale
from benchmarks.peer import Peer
from benchmarks.processes import cpu_seconds
from benchmarks.questions import KIB, MIB, Question, api_versions, fetch, produce
from benchmarks.raw_load import UNDISTURBED, Busy, Figures, RawLoad, Shape, Steps
from benchmarks.rdkafka_load import RdkafkaLoad

CLIENT_BUSY = "client_busy"  # the share of a core that the clients used
SERVER_BUSY = "server_busy"
OF_A_RUN = (CLIENT_BUSY, UNDISTURBED)
"""Told beside a figure; by a trial of several runs for each of its figures, as `to_all.client_busy`."""
CPU_US = "cpu_us"  # the server's, for each request
_CONNECTING_SECONDS = 0.5  # before anything counts


class Clients:
    """Compiled once for all brokers."""

    def __init__(self, folder: Path) -> None:
        self.raw = RawLoad(folder)
        self.rdkafka = RdkafkaLoad(folder)


@dataclass(frozen=True)
class Bench:
    broker: Broker
    clients: Clients
    scale: Scale

    @property
    def address(self) -> str:
        return self.broker.address

    def peer(self) -> Peer:
        return Peer(self.address)

    def topic(self, partitions: int = 1) -> AbstractContextManager[str]:
        return topics.topic(self.address, self.broker.folder, partitions)

    def ask(
        self,
        question: Question,
        topic: str,
        shape: Shape,
        seconds: float | None = None,
        steps: Steps | None = None,
    ) -> Figures:
        """One question over and over: what `raw_load` saw, and what it cost both sides. With `steps` it ends
        with the last of them.
        """
        seconds = self.scale.seconds if seconds is None else seconds
        busy, spent, began = Busy(), cpu_seconds(self.broker.pid), time.perf_counter()
        running = self.clients.raw.start(
            self.address,
            question.encoded(topic),
            shape,
            seconds,
            warm_up_seconds=_CONNECTING_SECONDS if steps is None else 0,
            steps=steps,
        )
        result = running.result()
        spent, elapsed = cpu_seconds(self.broker.pid) - spent, time.perf_counter() - began
        question.check_answer(running.answer())
        costs = {CPU_US: spent / result["all_requests"] * 1e6, SERVER_BUSY: spent / elapsed}
        return {**result, **costs, CLIENT_BUSY: busy.share()}

    def idle_cpu(self) -> float:
        """The share of a core that it uses while nobody asks anything."""
        seconds = self.scale.seconds
        spent = cpu_seconds(self.broker.pid)
        time.sleep(seconds)
        return (cpu_seconds(self.broker.pid) - spent) / seconds

    def warm_up(self, seconds: float | None = None) -> None:
        """The same for everyone, since compilers and caches need it: writes, reads, and nothing at all."""
        seconds = self.scale.warm_up_seconds if seconds is None else seconds
        with self.topic() as topic:
            topics.fill(self.address, topic, 2 * MIB)
            questions = (api_versions(), produce(100), produce(16 * KIB, acks=1), fetch(64 * KIB))
            for question in questions:
                self.ask(question, topic, Shape(16), seconds / len(questions))
