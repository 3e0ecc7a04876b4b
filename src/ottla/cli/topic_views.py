"""What topics there are, and what is in one."""

from __future__ import annotations

import argparse
from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ottla.cli.clusters import connected
from ottla.cli.failures import ExitCode
from ottla.cli.output import Row, print_facts, print_rows, print_table, styled
from ottla.cli.sizes import format_bytes
from ottla.model.topics import topic_id_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.client import Admin
    from ottla.client.admin_values import ConfigEntry
    from ottla.client.cluster_view import Topic
    from ottla.model.topics import TopicPartition


def ls(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        topics = [
            topic
            for topic in admin.topics(internal=options.internal)
            if options.pattern is None or fnmatchcase(topic.name, options.pattern)
        ]
        rows: list[Row] = [
            {
                "topic": topic.name,
                "partitions": len(topic.partitions),
                "replicas": topic.replication_factor,
            }
            for topic in topics
        ]
        columns = ["topic", "partitions", "replicas"]
        if options.long:
            rows = _with_content(admin, topics, rows, people=options.output == "table")
            columns += ["records", "size" if options.output == "table" else "bytes"]
    print_rows(rows, options.output, columns)
    return ExitCode.DONE


def _with_content(admin: Admin, topics: list[Topic], rows: list[Row], *, people: bool) -> list[Row]:
    records = record_counts(admin, topics)
    sizes = _sizes(admin)
    full: list[Row] = []
    for row in rows:
        name = str(row["topic"])
        size = sum(count for (topic, _), count in sizes.items() if topic == name)
        full.append({**row, "records": records[name], **_size(size, people=people)})
    return full


def record_counts(admin: Admin, topics: Sequence[Topic]) -> dict[str, int | None]:
    """Offsets between start and end: a compacted topic, or one with transactions, holds fewer records.

    None where that is not known: a partition is offline.
    """
    partitions = led_partitions(topics)
    first, end = admin.earliest_offsets(partitions), admin.latest_offsets(partitions)
    counts: Counter[str] = Counter()
    for target in partitions:
        counts[target.topic] += end[target] - first[target]
    return {topic.name: counts[topic.name] if _is_whole(topic) else None for topic in topics}


def led_partitions(topics: Iterable[Topic]) -> list[TopicPartition]:
    """Those that can be asked: one that is offline would keep whoever asks it waiting."""
    from ottla.model.topics import TopicPartition

    return [
        TopicPartition(topic.name, partition.index)
        for topic in topics
        for partition in topic.partitions
        if partition.leader is not None
    ]


def _is_whole(topic: Topic) -> bool:
    return all(partition.leader is not None for partition in topic.partitions)


def _sizes(admin: Admin) -> dict[tuple[str, int], int]:
    """Bytes by topic and partition, of the largest replica."""
    sizes: dict[tuple[str, int], int] = {}
    for directory in admin.log_dirs():
        for replica in directory.replicas:
            key = (replica.topic, replica.partition)
            sizes[key] = max(sizes.get(key, 0), replica.bytes)
    return sizes


def _size(count: int, *, people: bool) -> dict[str, str | int]:
    return {"size": format_bytes(count)} if people else {"bytes": count}


def show(options: argparse.Namespace) -> int:
    people = options.output == "table"
    with connected(options) as admin:
        topic = admin.topic(options.topic)
        partitions = _partitions(admin, topic, people=people)
        changed = [entry for entry in admin.topic_configs(topic.name).values() if not entry.is_default]
    facts: Row = {
        "topic": topic.name,
        "id": topic_id_text(topic.id),
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "internal": topic.is_internal,
    }
    if options.output == "json":
        settings = {entry.name: entry.value for entry in changed}
        print_facts({**facts, "settings": settings, "partitions": partitions}, "json")
    elif people:
        print_facts(facts, "table")
        print()
        print_table(partitions, list(partitions[0]))
        _print_settings(changed)
    else:
        print_rows(partitions, options.output)
    return ExitCode.DONE


def _partitions(admin: Admin, topic: Topic, *, people: bool) -> list[Row]:
    targets = admin.partitions_of(topic.name)
    led = led_partitions([topic])
    first, end = admin.earliest_offsets(led), admin.latest_offsets(led)
    sizes = _sizes(admin)
    return [
        {
            "partition": partition.index,
            "leader": partition.leader,
            "epoch": partition.leader_epoch,
            "replicas": list(partition.replicas),
            "in_sync": list(partition.isr),
            "start": first.get(target),
            "end": end.get(target),
            **_size(sizes.get((topic.name, partition.index), 0), people=people),
        }
        for partition, target in zip(topic.partitions, targets, strict=True)
    ]


def _print_settings(changed: list[ConfigEntry]) -> None:
    if not changed:
        return
    print()
    for entry in sorted(changed, key=lambda entry: entry.name):
        print(f"{styled(entry.name, 'dim')}={entry.value}")
