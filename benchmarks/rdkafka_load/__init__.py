"""Runs `rdkafka_load`, a client in C on librdkafka, the library of the confluent-kafka package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import confluent_kafka
from benchmarks.raw_load import Figures, Running, compiled

SOURCE = Path(__file__).parent / "rdkafka_load.c"

Properties = Mapping[str, object]  # librdkafka's own: {"linger.ms": 5}


class RdkafkaLoad:
    """The client runs on the cores of its caller."""

    def __init__(self, folder: Path) -> None:
        package = Path(confluent_kafka.__file__).parent
        (library,) = (package.parent / "confluent_kafka.libs").glob("librdkafka-*.so*")
        search = f"-Wl,-rpath,{library.parent},-rpath-link,{library.parent}"
        self._program = compiled(SOURCE, folder, str(library), search)

    def produce(
        self,
        address: str,
        topic: str,
        value_bytes: int,
        properties: Properties,
        *,
        seconds: float = 600,
        count: int = 2**62,
        partitions: int = 1,
    ) -> Figures:
        """Records delivered, for so long or so many, to all partitions in turn."""
        return self._run("produce", address, properties, topic, partitions, value_bytes, count, seconds)

    def consume(self, address: str, topic: str, count: int, properties: Properties) -> Figures:
        """The first so many records of partition 0."""
        return self._run("consume", address, properties, topic, count)

    def transactions(
        self, address: str, topic: str, records: int, value_bytes: int, seconds: float, properties: Properties
    ) -> Figures:
        """Committed one after the other by one producer."""
        return self._run("transactions", address, properties, topic, records, value_bytes, seconds)

    def _run(self, what: str, address: str, properties: Properties, *arguments: object) -> Figures:
        settings = {"bootstrap.servers": address, **properties}
        command = [str(self._program), what, *map(str, arguments)]
        return Running([*command, *(f"{name}={value}" for name, value in settings.items())]).result()
