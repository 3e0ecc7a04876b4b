"""`ottla consume` and `ottla topic tail`: records of topics to the terminal or the next program."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from ottla.cli.clusters import access_of
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import count
from ottla.cli.progress import Waiting
from ottla.cli.reading_options import add_reading
from ottla.cli.record_forms import (
    CSV_COLUMNS,
    DECODERS,
    Decode,
    Form,
    csv_form,
    json_form,
    text_form,
    value_form,
)
from ottla.model.topics import INTERNAL_TOPICS

_POLL_SECONDS = 1.0
_PLACES = "start, end, 100, -5 (before the end), @-1h, @2026-11-01T10:00"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--from", dest="start", default="start", metavar="PLACE", help=_PLACES)
    parser.add_argument("--to", dest="stop", metavar="PLACE", help="where to stop, exclusive (default: end)")
    parser.add_argument("--follow", action="store_true", help="go on with new records until Ctrl-C")
    parser.add_argument("-n", "--count", type=count, metavar="N", help="stop after so many records")
    add_reading(parser)
    parser.set_defaults(run=consume)


def consume(options: argparse.Namespace) -> int:
    if options.follow and options.stop is not None:
        raise CommandFailed("--follow never stops, --to does", "leave one of them out", ExitCode.WRONG_USE)
    stop = None if options.follow else options.stop or "end"
    return _show_records(options, options.start, stop, options.count)


def tail(options: argparse.Namespace) -> int:
    """`ottla topic tail`."""
    start = f"-{options.lines}" if options.lines else "end"
    return _show_records(options, start, "end" if options.no_follow else None, None)


def _show_records(options: argparse.Namespace, start: str, stop: str | None, count: int | None) -> int:
    from ottla.cli.waiting_cluster import show_waiting
    from ottla.client.reading import read

    show_waiting()
    form = _form(options)
    settings = {"isolation.level": "read_committed" if options.committed else "read_uncommitted"}
    access = access_of(options)
    settings |= access.settings
    output, left, read_count = sys.stdout.buffer, count, 0
    silent = not sys.stdout.isatty()  # what is shown on the terminal is progress enough
    with (
        read(
            access.bootstrap, options.topic, start, stop, partitions=options.partition, **settings
        ) as reading,
        Waiting("reading") as waiting,
    ):
        if options.output == "csv" and options.format is None:
            print(",".join(CSV_COLUMNS), flush=True)
        while not reading.is_over and (left is None or left > 0):
            records = reading.poll(_POLL_SECONDS)
            read_count += len(records)
            wanted = [record for record in records if all(test(record) for test in options.filter)]
            if left is not None:
                wanted = wanted[:left]
                left -= len(wanted)
            if wanted:
                waiting.clear()
                output.write(b"".join(map(form, wanted)))
                output.flush()
            if silent or not wanted:
                waiting.tick(partial("{:,} records read".format, read_count))
            waiting.explain(None if records else reading.problem)
    return ExitCode.DONE


def _form(options: argparse.Namespace) -> Form:
    """Records of groups and transactions are told in words, with their keys, unless --decode says else."""
    if options.topic not in INTERNAL_TOPICS or options.decode is not None:
        return _plain_form(options)
    from ottla.cli.state_records import state_form

    is_table = options.format is None and options.output == "table"
    return state_form(options.topic, text_form("%k: %v\\n") if is_table else _plain_form(options))


def _plain_form(options: argparse.Namespace) -> Form:
    decode = _decoder(options)
    if options.format is not None:
        form: Form = options.format
        return form
    if options.output == "csv":
        return csv_form()
    return value_form(decode) if options.output == "table" else json_form(decode)


def _decoder(options: argparse.Namespace) -> Decode | None:
    if options.decode != "avro":
        if options.schema is not None or options.registry is not None:
            raise CommandFailed(
                "--schema and --registry are for Avro", "add --decode avro", ExitCode.WRONG_USE
            )
        return DECODERS[options.decode] if options.decode else None
    from ottla.cli.avro_values import avro_decoder

    return avro_decoder(options.schema, options.registry)
