"""`ottla pipeline` called in this process, so that tests share one JVM, and records for it to work on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.cli.main import main
from ottla.client import Admin, Producer
from ottla.testing import BrokerProcess

QUICK = '[pipeline.spark]\n"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1"\n'


class Ottla:
    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._bootstrap = bootstrap
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str, code: int = 0, broker: bool = True) -> str:
        given = ["pipeline", *arguments]
        if broker:
            given += ["-b", self._bootstrap]
        found = main(given)
        self.out, self.err = self._capsys.readouterr()
        assert found == code, (arguments, self.out, self.err)
        return self.out

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*arguments, "-o", "jsonl").splitlines()]


def produce(broker: BrokerProcess, topic: str, values: list[str] | list[bytes]) -> None:
    with Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
        if topic not in admin.topic_names():
            admin.create_topic(topic, partitions=2)
        for number, value in enumerate(values):
            data = value.encode() if isinstance(value, str) else value
            producer.send(topic, data, partition=number % 2)
