"""Which broker the suites with stock clients talk to.

`OTTLA_TEST_BOOTSTRAP=host:port` names a running one (any Kafka-compatible broker: the suites are validated
against Apache Kafka in this way); otherwise a broker of ours is started in its own process.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

CreateTopic = Callable[..., str]


@contextmanager
def running_broker(data_dir: Path) -> Iterator[str]:
    """The bootstrap address of the broker under test."""
    given = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    from ottla.testing import BrokerProcess

    with BrokerProcess(data_dir) as broker:
        yield broker.bootstrap


def topic_creator(bootstrap: str) -> CreateTopic:
    """A function that creates a topic with a name nobody has used and returns the name."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(label: str = "topic", partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = unique_name(label)
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
        admin.create_topics([topic])[name].result(30)
        return name

    return create


def unique_name(label: str) -> str:
    return f"{label}-{uuid.uuid4().hex[:12]}"
