"""A consumer that reads a topic, writes what it did to another, and dies by its own hand at the worst moment.

    python -m client.guarantee_worker <guarantee> <bootstrap> <source> <sink> <group> <offset to die at>

Its work on a record is a record in the sink: so the sink shows what was done never, once and twice.
"""

from __future__ import annotations

import os
import signal
import sys

from ottla.client import Consumer, Producer, TopicPartition
from ottla.client.fetched import ConsumedRecord


class Worker:
    def __init__(self, bootstrap: str, source: str, sink: str, group: str, dies_at: int) -> None:
        self.sink, self.dies_at = sink, dies_at
        self.place = TopicPartition(source, 0)
        self.bootstrap, self.group = bootstrap, group
        self.consumer = Consumer(
            bootstrap,
            group_id=group,
            group_instance_id="the-only-one",  # whoever comes after a crash takes its place at once
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=3,
            isolation_level="read_committed",
            fetch_max_wait_ms=50,
        )

    def maybe_die(self, record: ConsumedRecord) -> None:
        if record.offset == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def next(self) -> list[ConsumedRecord]:
        """Empty: all is read."""
        while True:
            records = self.consumer.poll(0.2)
            if records or (self.consumer.assignment() and not any(self.consumer.lag().values())):
                return records

    def at_most_once(self) -> None:
        with Producer(self.bootstrap) as producer:
            while records := self.next():
                for record in records:
                    self.consumer.commit({self.place: record.offset + 1})
                    self.maybe_die(record)
                    producer.send(self.sink, record.value).result(30)

    def at_least_once(self) -> None:
        with Producer(self.bootstrap) as producer:
            while records := self.next():
                for record in records:
                    producer.send(self.sink, record.value).result(30)
                    self.maybe_die(record)
                    self.consumer.commit({self.place: record.offset + 1})

    def exactly_once(self) -> None:
        with Producer(self.bootstrap, transactional_id=self.group) as producer:
            producer.init_transactions()
            while records := self.next():
                with producer.transaction():
                    for record in records:
                        producer.send(self.sink, record.value).result(30)
                        offsets = {self.place: record.offset + 1}
                        producer.send_offsets_to_transaction(offsets, self.consumer.group_metadata())
                        self.maybe_die(record)


def main() -> None:
    guarantee, bootstrap, source, sink, group, dies_at = sys.argv[1:]
    worker = Worker(bootstrap, source, sink, group, int(dies_at))
    worker.consumer.subscribe([source])
    getattr(worker, guarantee)()


if __name__ == "__main__":
    main()
