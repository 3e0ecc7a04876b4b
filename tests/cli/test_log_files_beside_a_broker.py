"""Dump and verify work beside a broker that writes, without a lock and without false alarms."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer

from cli.program import Program
from compat.broker import topic_creator
from ottla.testing import BrokerProcess

ROUNDS = 3
SETTINGS = {"log.segment.bytes": str(1 << 20), "log.index.interval.bytes": "256"}


def test_verify_finds_nothing_wrong_while_segments_grow_and_roll(ottla: Program, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with BrokerProcess(home, SETTINGS) as broker:
        topic = topic_creator(broker.bootstrap)("busy", partitions=2)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "batch.size": 2000})
        for number in range(ROUNDS):
            for at in range(8_000):
                producer.produce(topic, b"%d" % at * 40, partition=at % 2)
                producer.poll(0)
            done = ottla("log", "verify", "--records", str(home))  # the producer goes on meanwhile
            assert done.code == 0, (number, done)
        ottla.ok("log", "dump", str(home), "-o", "jsonl")
        assert producer.flush(60) == 0
        assert len(list((home / "log" / f"{topic}-0").glob("*.log"))) > 1, "it rolled"
