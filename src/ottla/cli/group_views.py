"""What groups there are, who is in one, and how far it has read: lag in records and in seconds.

Lag in seconds is the age of the first record that the group has not read yet.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ottla.cli.clusters import access_of, connected
from ottla.cli.failures import ExitCode
from ottla.cli.output import Row, print_facts, print_rows, print_table
from ottla.cli.sizes import counted
from ottla.cli.topic_views import led_partitions
from ottla.model.values import NamedTuple

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_values import GroupDescription
    from ottla.model.topics import TopicPartition

SORTS = ("partition", "lag", "seconds")
_COLUMNS = ("topic", "partition", "committed", "end", "lag", "lag_seconds", "member")
_CLEAR_SCREEN = "\x1b[H\x1b[2J"
_PATIENCE_SECONDS = 5.0  # for the first unread record of each partition


class Progress(NamedTuple):
    """One partition that a group reads."""

    place: TopicPartition
    committed: int | None  # None: it has a reader, but no commit yet
    end: int | None  # None: the partition is offline
    lag_seconds: float | None  # None: nothing is unread, or it is not known
    member: str | None

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else max(self.end - self.committed, 0)

    def row(self) -> Row:
        seconds = None if self.lag_seconds is None else round(self.lag_seconds, 1)
        return dict(
            zip(
                _COLUMNS,
                (
                    self.place.topic,
                    self.place.partition,
                    self.committed,
                    self.end,
                    self.lag,
                    seconds,
                    self.member,
                ),
                strict=True,
            )
        )


def ls(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        groups = [
            group
            for group in admin.groups()
            if options.pattern is None or fnmatchcase(group.id, options.pattern)
        ]
        rows: list[Row] = [
            {"group": group.id, "state": group.state, "type": group.type or None} for group in groups
        ]
        columns = ["group", "state", "type"]
        if options.long:
            led = led_partitions(admin.topics(internal=True))
            rows = [{**row, **_content(admin, str(row["group"]), led)} for row in rows]
            columns += ["members", "partitions", "lag"]
    print_rows(rows, options.output, columns)
    return ExitCode.DONE


def _content(admin: Admin, group_id: str, led: Sequence[TopicPartition]) -> Row:
    offsets = admin.group_offsets(group_id)
    ends = admin.latest_offsets(place for place in led if place in offsets)
    lag = sum(max(end - offsets[place].offset, 0) for place, end in ends.items())
    return {"members": len(admin.group(group_id).members), "partitions": len(offsets), "lag": lag}


def show(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        group = admin.group(options.group)
        rows = [each.row() for each in progress(admin, options, group)]
    if options.output == "json":
        print_facts({**_facts(group), "partitions": rows}, "json")
    elif options.output == "table":
        print_facts({**_facts(group), "lag": _total(rows)}, "table")
        print()
        print_table(rows, _COLUMNS)
    else:
        print_rows(rows, options.output, _COLUMNS)
    return ExitCode.DONE


def members(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        group = admin.group(options.group)
    rows: list[Row] = [
        {
            "member": member.id,
            "instance": member.instance_id,
            "client": member.client_id,
            "host": member.host.removeprefix("/"),
            "partitions": [str(each) for each in member.assignment],
        }
        for member in group.members
    ]
    print_rows(rows, options.output, ["member", "instance", "client", "host", "partitions"])
    return ExitCode.DONE


def watch(options: argparse.Namespace) -> int:
    looks = 0
    with connected(options) as admin:
        while True:
            group = admin.group(options.group)
            rows = [each.row() for each in progress(admin, options, group)]
            if options.output == "table":
                _draw(group, rows)
            else:
                now_ms = int(time.time() * 1000)
                print_rows([{"timestamp_ms": now_ms, **row} for row in rows], options.output)
            sys.stdout.flush()
            looks += 1
            if options.count is not None and looks >= options.count:
                return ExitCode.DONE
            time.sleep(options.interval)


def _draw(group: GroupDescription, rows: list[Row]) -> None:
    if sys.stdout.isatty():
        print(_CLEAR_SCREEN, end="")
    count = counted(len(group.members), "member")
    print(f"{group.id}  {group.state}  {count}  lag {_total(rows)}  {time.strftime('%H:%M:%S')}")
    print_table(rows, _COLUMNS)


def _facts(group: GroupDescription) -> Row:
    return {
        "group": group.id,
        "state": group.state,
        "protocol": group.assignor or None,
        "members": len(group.members),
        "coordinator": str(group.coordinator.address),
    }


def _total(rows: list[Row]) -> int:
    return sum(lag for row in rows if isinstance(lag := row["lag"], int))


def progress(admin: Admin, options: argparse.Namespace, group: GroupDescription) -> list[Progress]:
    """Of every partition that the group has committed or somebody in it reads, sorted as asked for."""
    committed = {place: each.offset for place, each in admin.group_offsets(group.id).items()}
    readers = {place: member.client_id for member in group.members for place in member.assignment}
    places = sorted({*committed, *readers})
    led = set(led_partitions(admin.topics(internal=True)))
    ends = admin.latest_offsets(place for place in places if place in led)
    ages = _ages(options, {place: at for place, at in committed.items() if at < ends.get(place, 0)})
    found = [
        Progress(place, committed.get(place), ends.get(place), ages.get(place), readers.get(place))
        for place in places
    ]
    if options.sort == "lag":
        found.sort(key=lambda each: -(each.lag or 0))
    elif options.sort == "seconds":
        found.sort(key=lambda each: -(each.lag_seconds or 0))
    return found


def _ages(options: argparse.Namespace, unread: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
    """How old the first unread record of each partition is, in seconds."""
    if not unread:
        return {}
    from ottla.client import Consumer
    from ottla.model.topics import TopicPartition

    ages: dict[TopicPartition, float] = {}
    access = access_of(options)
    with Consumer(access.bootstrap, max_partition_fetch_bytes=1, **access.settings) as consumer:
        consumer.assign(unread)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(ages) < len(unread) and time.monotonic() < deadline:
            for record in consumer.poll(0.5):
                place = TopicPartition(record.topic, record.partition)
                ages.setdefault(place, max(time.time() - record.timestamp_ms / 1000, 0.0))
                consumer.pause(place)
    return ages
