"""Transactions of one producer on librdkafka, one after the other."""

from __future__ import annotations

import uuid

from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.raw_load import Figures


def _trial(records: int) -> Trial:
    def run(bench: Bench) -> Figures:
        with bench.topic() as topic:
            properties = {"transactional.id": uuid.uuid4().hex}
            return bench.clients.rdkafka.transactions(
                bench.address, topic, records, 100, bench.scale.seconds, properties
            )

    return Trial((Row(f"transactions of {records} x 100 B", "/s", "per_second"),), run)


TRIALS = (_trial(1), _trial(100))
