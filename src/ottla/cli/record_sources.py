"""Where the records of `ottla produce` come from: lines, JSON lines, whole files, or chance."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import islice

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.record_json import Record, read_record

_ALPHABET = b"abcdefghijklmnopqrstuvwxyz0123456789"


def records_of(options: argparse.Namespace) -> Iterator[Record]:
    """As the options of `produce` say. Raises CommandFailed for what is no record."""
    if options.random is not None:
        records = _random(options)
    elif options.file:
        records = (_with_options(options, _file(name)) for name in options.file)
    elif options.input == "json":
        records = _json_lines(options)
    else:
        records = _lines(options)
    return islice(records, options.count) if options.count is not None else records


def _with_options(options: argparse.Namespace, value: bytes | None, key: bytes | None = None) -> Record:
    if key is None and options.key is not None:
        key = options.key.encode()
    return Record(options.topic, options.partition, None, key, value, options.headers)


def _lines(options: argparse.Namespace) -> Iterator[Record]:
    separator = options.key_separator.encode() if options.key_separator else None
    if sys.stdin.isatty():
        print("one record for each line; Ctrl-D ends", file=sys.stderr)
    for number, line in enumerate(sys.stdin.buffer, 1):
        line = line.removesuffix(b"\n")
        if separator is None:
            yield _with_options(options, line)
            continue
        key, found, value = line.partition(separator)
        if not found:
            raise CommandFailed(
                f"line {number} of the input has no {options.key_separator!r} behind its key",
                "leave out --key-separator for lines without keys",
                ExitCode.WRONG_USE,
            )
        yield _with_options(options, value, key)


def _json_lines(options: argparse.Namespace) -> Iterator[Record]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            record = read_record(line, number)
            yield record._replace(
                topic=options.topic or _topic(record, number),
                partition=options.partition if options.partition is not None else _partition(record, options),
                key=options.key.encode() if options.key is not None else record.key,
                headers=record.headers + options.headers,
            )


def _topic(record: Record, number: int) -> str:
    if record.topic is None:
        raise CommandFailed(
            f"line {number} of the input names no topic",
            "name one behind `ottla produce`",
            ExitCode.WRONG_USE,
        )
    return record.topic


def _partition(record: Record, options: argparse.Namespace) -> int | None:
    """A copy into the same topic keeps the partitions; another topic may have fewer."""
    return record.partition if options.topic is None else None


def _file(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read()


def _random(options: argparse.Namespace) -> Iterator[Record]:
    source = random.Random(options.seed)
    while True:
        value = bytes(source.choices(_ALPHABET, k=options.random))
        key = b"%d" % source.randrange(options.random_keys) if options.random_keys else None
        yield _with_options(options, value, key)


def header(text: str) -> tuple[str, bytes | None]:
    """For argparse: NAME=VALUE, or NAME for a header without a value."""
    name, separator, value = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no header, expected NAME=VALUE")
    return name, value.encode() if separator else None
