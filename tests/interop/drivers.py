"""The clients in other languages, behind the same face as the Python ones.

A driver is a program with two commands, `produce` and `consume`. Its standard input is JSON, one object per
line: first the request, then (to produce) the records; its output is a receipt or a record per line. Keys,
values and header values are base64 or null. The driver ends with a status other than 0 when anything fails.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compat.cases import Lane
from compat.record import Delivered, Headers, Receipt, Record
from interop.builds import go_driver, java_command, node_driver

_TIMEOUT_S = 90


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _record_line(record: Record) -> dict[str, Any]:
    return {
        "key": _encoded(record.key),
        "value": _encoded(record.value),
        "headers": [[name, _encoded(value)] for name, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
    }


def _delivered(line: dict[str, Any]) -> Delivered:
    return Delivered(
        partition=line["partition"],
        offset=line["offset"],
        timestamp_ms=line["timestamp_ms"],
        timestamp_type=line["timestamp_type"],
        key=_decoded(line["key"]),
        value=_decoded(line["value"]),
        headers=tuple((name, _decoded(value)) for name, value in line["headers"]),
    )


class Driver:
    """A client of the matrix that runs as a program."""

    chooses_timestamps = True

    def __init__(self, name: str, command: Callable[[], list[str]]) -> None:
        self.name = name
        # Called at first use, because it builds the program.
        self._command = command

    def _run(self, command: str, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        done = subprocess.run(
            [*self._command(), command],
            input="".join(json.dumps(line) + "\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{self.name} {command} failed:\n{done.stderr[-4000:]}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    def unwritable(self, record: Record) -> str | None:
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], lane: Lane
    ) -> list[Receipt]:
        request = {
            "bootstrap": bootstrap,
            "topic": topic,
            "partition": partition,
            "codec": lane.codec,
            "acks": lane.acks,
            "idempotent": lane.idempotent,
            "many_requests": lane.many_requests,
        }
        answers = self._run("produce", [request, *map(_record_line, records)])
        return [Receipt(answer.get("offset"), answer.get("timestamp_ms")) for answer in answers]

    def read(self, bootstrap: str, topic: str, counts: Mapping[int, int]) -> dict[int, list[Delivered]]:
        seen: dict[int, list[Delivered]] = {partition: [] for partition in counts}
        for line in self._run("consume", [{"bootstrap": bootstrap, "topic": topic, "counts": counts}]):
            seen[line["partition"]].append(_delivered(line))
        return seen

    def view(self, record: Delivered) -> Delivered:
        return record


def _grouped(headers: Headers) -> Headers:
    """Headers of one name brought together, in the order in which the names first appear."""
    names = list(dict.fromkeys(name for name, _ in headers))
    return tuple(header for name in names for header in headers if header[0] == name)


class KafkaJs(Driver):
    """kafkajs keeps headers in an object: those of one name are together, in their order."""

    def unwritable(self, record: Record) -> str | None:
        if any(value is None for _, value in record.headers):
            return "takes no null header"
        if record.headers != _grouped(record.headers):
            return "brings headers of one name together"
        return None

    def view(self, record: Delivered) -> Delivered:
        return replace(record, headers=_grouped(record.headers))


DRIVERS = {
    driver.name: driver
    for driver in (
        Driver("java", lambda: [*java_command(), "RecordDriver"]),
        Driver("franz-go", lambda: [str(go_driver())]),
        KafkaJs("kafkajs", lambda: ["node", str(node_driver())]),
    )
}
