"""`ottla produce`: records from stdin, files or a generator; ends when every one is acknowledged."""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from ottla.cli.clusters import access_of, connected
from ottla.cli.failures import CommandFailed, ExitCode, explained
from ottla.cli.options import add_cluster, count
from ottla.cli.pace import Pace
from ottla.cli.progress import Waiting, watched
from ottla.cli.record_sources import header, records_of
from ottla.cli.sizes import counted, format_bytes, parse_bytes

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.accumulator import Delivery
    from ottla.client.errors import ClientError
    from ottla.client.producer import Producer

_CHECK_MS = 3_000
_PARTING_SECONDS = 5.0  # after Ctrl-C, for records that were sent before


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topic", nargs="?", metavar="TOPIC", help="without one, the input is JSON that names it in each line"
    )
    _add_sources(parser)
    _add_records(parser)
    parser.add_argument("--rate", type=float, metavar="N", help="at most so many records a second")
    parser.add_argument("-n", "--count", type=count, metavar="N", help="at most so many records in all")
    parser.add_argument("--acks", choices=("all", "1", "0"), default="all", help="default: all")
    parser.add_argument(
        "-z", "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "jsonl", "csv"), default="table",
        help="the place that each record got, in this form (default: only how many they were)",
    )  # fmt: skip
    add_cluster(parser)
    parser.set_defaults(run=produce)


def _add_sources(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "-i", "--input", choices=("lines", "json"), help="what stdin has (default: a value in each line)"
    )
    source.add_argument("--file", nargs="+", metavar="FILE", help="each file is one record")
    source.add_argument("--random", type=parse_bytes, metavar="SIZE", help="values of so many random letters")
    parser.add_argument("--random-keys", type=count, metavar="N", help="with --random: N different keys")
    parser.add_argument("--seed", type=int, metavar="N", help="with --random: the same records every time")


def _add_records(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", "--key", metavar="KEY", help="the key of every record")
    parser.add_argument(
        "-K", "--key-separator", metavar="TEXT", help="lines begin with a key, up to this text"
    )
    parser.add_argument(
        "-H", "--header", dest="headers", action="append", default=[], type=header, metavar="NAME=VALUE",
        help="a header; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "-p", "--partition", type=int, metavar="N", help="instead of the partitioner's choice"
    )


def produce(options: argparse.Namespace) -> int:
    if options.topic is None and (options.input == "lines" or options.file or options.random is not None):
        raise CommandFailed("no topic is named", "name one behind `ottla produce`", ExitCode.WRONG_USE)
    if options.topic is None:
        options.input = "json"
    options.headers = tuple(options.headers)
    with connected(options, beside_client=True, default_api_timeout_ms=_CHECK_MS) as admin:
        _find_an_open_door(admin)
    deliveries = Deliveries(options.output)
    _send_all(options, deliveries)
    return deliveries.outcome()


def _find_an_open_door(admin: Admin) -> None:
    """Addresses that do not answer are told now, not after delivery.timeout.ms; one that does is enough."""
    from ottla.client.errors import ConnectionFailed

    problem = None
    for broker in admin.cluster().brokers:
        try:
            admin.broker_versions(broker.id)
            return
        except ConnectionFailed as error:
            problem = problem or error
    if problem is not None:
        raise problem


def _send_all(options: argparse.Namespace, deliveries: Deliveries) -> None:
    from ottla.client.producer import Producer

    access = access_of(options)
    settings = {"acks": options.acks, "compression.type": options.compression, **access.settings}
    pace = Pace(options.rate)
    with Producer(access.bootstrap, **settings) as producer:
        try:
            with Waiting("producing") as waiting, watched(partial(_look, producer, waiting, deliveries)):
                for record in records_of(options):
                    pace.wait()
                    producer.send(
                        record.topic or options.topic,
                        record.value,
                        record.key,
                        partition=record.partition,
                        headers=record.headers,
                        timestamp_ms=record.timestamp_ms,
                        on_delivery=deliveries.take,
                    )
                    deliveries.sent_bytes += len(record.value or b"") + len(record.key or b"")
                    deliveries.sent += 1
                    if deliveries.error is not None:
                        break
                producer.flush()
        except KeyboardInterrupt:
            producer.close(_PARTING_SECONDS)
            raise


def _look(producer: Producer, waiting: Waiting, deliveries: Deliveries) -> None:
    """While records are sent: how many have arrived, or what they wait for."""
    waiting.tick(deliveries.progress)
    waiting.explain(None if deliveries.have_grown() else producer.problem)


class Deliveries:
    """What became of the records; `take` is called by the producer's thread."""

    def __init__(self, form: str) -> None:
        self.sent = 0
        self.sent_bytes = 0
        self.delivered = 0
        self.error: ClientError | None = None  # the first one
        self._form = form
        self._began = time.monotonic()
        self._seen = 0  # of `delivered`, at the last look
        self._topics: set[str] = set()
        if form == "csv":
            print("topic,partition,offset,timestamp_ms")

    def take(self, delivery: Delivery | None, error: ClientError | None) -> None:
        if delivery is None:
            self.error = self.error or error
            return
        self.delivered += 1
        self._topics.add(delivery.topic)
        if self._form in ("json", "jsonl"):
            place = {
                "topic": delivery.topic,
                "partition": delivery.partition,
                "offset": delivery.offset,
                "timestamp_ms": delivery.timestamp_ms,
            }
            print(json.dumps(place))
        elif self._form == "csv":
            print(delivery.topic, delivery.partition, delivery.offset, delivery.timestamp_ms, sep=",")

    def have_grown(self) -> bool:
        """Whether some have arrived since this was asked last."""
        before, self._seen = self._seen, self.delivered
        return self._seen > before

    def progress(self) -> str:
        seconds = time.monotonic() - self._began
        return (
            f"{self.delivered:,} records, {format_bytes(self.sent_bytes)}, "
            f"{self.delivered / max(seconds, 1e-9):,.0f} records/s"
        )

    def outcome(self) -> int:
        if self.error is not None:
            failure = explained(self.error)
            lost = f"{self.sent - self.delivered:,} of {counted(self.sent, 'record')}"
            raise CommandFailed(f"{lost} not delivered: {failure.cause}", failure.cure, failure.exit_code)
        if self._form == "table":
            where = f" to {', '.join(sorted(self._topics))}" if self._topics else ""
            print(f"{counted(self.delivered, 'record')}{where}", file=sys.stderr)
        return ExitCode.DONE
