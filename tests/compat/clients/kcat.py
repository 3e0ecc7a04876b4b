"""kcat, the command line client on librdkafka.

It takes a fixed set of headers per run and chooses timestamps itself; reading, it prints headers as one
line of text and does not say the timestamp's type: `view` brings expectations down to that.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace

from compat.cases import Lane
from compat.clients.client import PATIENCE_S
from compat.record import Delivered, Headers, Receipt, Record

# Strings that no case contains, so that binary keys and values pass through a text pipe.
_RECORD_END = b"<<end-of-record>>"
_KEY_END = b"<<end-of-key>>"
_HEADERS_END = b"<<end-of-headers>>"
_FORMAT = "%p %o %T %K %S %h" + _HEADERS_END.decode() + "%k%s"


def installed() -> bool:
    return shutil.which("kcat") is not None


def run(arguments: Sequence[str], stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["kcat", *arguments], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, f"kcat {' '.join(arguments)[:500]}: {done.stderr.decode(errors='replace')}"
    return done.stdout


def _header_text(headers: Headers) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers)


def _header_arguments(headers: Headers) -> list[bytes]:
    pairs = ([b"-H", name.encode() + (b"" if value is None else b"=" + value)] for name, value in headers)
    return list(itertools.chain.from_iterable(pairs))


class Kcat:
    name = "kcat"
    chooses_timestamps = False

    def unwritable(self, record: Record) -> str | None:
        if None in (record.key, record.value) and b"" in (record.key, record.value):
            return "writes empty as null or null as empty, not both in one run"
        if sum(len(name) + len(value or b"") for name, value in record.headers) > 10_000:
            return "takes headers as command line arguments"
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], lane: Lane
    ) -> list[Receipt]:
        def run_of(record: Record) -> tuple[Headers, bool]:
            return record.headers, b"" in (record.key, record.value)

        for (headers, keeps_empty), group in itertools.groupby(records, key=run_of):
            arguments = ["-P", "-b", bootstrap, "-t", topic, "-p", str(partition), "-z", lane.codec]
            arguments += ["-D", _RECORD_END.decode(), "-K", _KEY_END.decode()]
            arguments += [
                "-X",
                f"enable.idempotence={str(lane.idempotent).lower()}",
                "-X",
                f"acks={lane.acks}",
            ]
            arguments += ["-X", f"message.max.bytes={12 * 1024 * 1024}"]
            arguments += ["-X", "batch.num.messages=2"] if lane.many_requests else ["-X", "linger.ms=1"]
            arguments += [] if keeps_empty else ["-Z"]
            lines = (self._line(record, keeps_empty) for record in group)
            run([*arguments, *_header_arguments(headers)], _RECORD_END.join(lines))  # type: ignore[list-item]
        return [Receipt() for _ in records]

    @staticmethod
    def _line(record: Record, keeps_empty: bool) -> bytes:
        if keeps_empty and record.key is None:
            return record.value or b""
        return (record.key or b"") + _KEY_END + (record.value or b"")

    def read(self, bootstrap: str, topic: str, counts: Mapping[int, int]) -> dict[int, list[Delivered]]:
        seen: dict[int, list[Delivered]] = {partition: [] for partition in counts}
        for partition, count in counts.items():
            arguments = ["-C", "-b", bootstrap, "-t", topic, "-p", str(partition), "-o", "beginning"]
            out = run([*arguments, "-c", str(count), "-q", "-f", _FORMAT])
            seen[partition] = self._parse(out)
        return seen

    @staticmethod
    def _parse(out: bytes) -> list[Delivered]:
        records: list[Delivered] = []
        position = 0
        while position < len(out):
            line_end = out.index(_HEADERS_END, position)
            partition, offset, timestamp_ms, key_size, value_size, headers = out[position:line_end].split(
                b" ", 5
            )
            key_start = line_end + len(_HEADERS_END)
            value_start = key_start + max(int(key_size), 0)
            position = value_start + max(int(value_size), 0)
            records.append(
                Delivered(
                    partition=int(partition),
                    offset=int(offset),
                    timestamp_ms=int(timestamp_ms),
                    timestamp_type=None,
                    key=None if int(key_size) < 0 else out[key_start:value_start],
                    value=None if int(value_size) < 0 else out[value_start:position],
                    headers=(("printed", headers),),
                )
            )
        return records

    def view(self, record: Delivered) -> Delivered:
        return replace(record, timestamp_type=None, headers=(("printed", _header_text(record.headers)),))
