"""Topics come, change and go. What destroys something shows it first and asks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.clusters import connected
from ottla.cli.failures import CommandFailed, ExitCode, explained, report
from ottla.cli.options import confirm
from ottla.cli.output import styled
from ottla.cli.sizes import counted
from ottla.cli.topic_views import record_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.client import Admin, ClientError
    from ottla.model.topics import TopicPartition


def create(options: argparse.Namespace) -> int:
    from ottla.client.admin_values import CreatedTopic, NewTopic
    from ottla.client.errors import TopicExists

    configs = dict(options.config)
    new = [NewTopic(name, options.partitions, options.replication_factor, configs) for name in options.topics]
    problems: list[ClientError] = []
    with connected(options) as admin:
        for name, outcome in admin.create_topics(new, validate_only=options.dry_run).items():
            if isinstance(outcome, CreatedTopic):
                done = "would be created" if options.dry_run else "created"
                shape = f" with {counted(outcome.partitions, 'partition')}" if outcome.partitions > 0 else ""
                print(f"topic {styled(name, 'bold')} {done}{shape}")
            elif isinstance(outcome, TopicExists) and options.if_not_exists:
                print(f"topic {styled(name, 'bold')} exists")
            else:
                problems.append(outcome)
    return _outcome(problems)


def alter(options: argparse.Namespace) -> int:
    changed = dict(options.config)
    if not (changed or options.unset or options.partitions is not None):
        raise CommandFailed("nothing to change", "give --partitions, --config or --unset", ExitCode.WRONG_USE)
    with connected(options) as admin:
        if options.partitions is not None:
            _grow(admin, options)
        if changed or options.unset:
            admin.alter_topic_configs(
                options.topic, set=changed, delete=options.unset, validate_only=options.dry_run
            )
            would_be = "would be " if options.dry_run else ""
            for name, value in changed.items():
                print(f"{name} {would_be}set to {value}")
            for name in options.unset:
                print(f"{name} {would_be}back at its default")
    return ExitCode.DONE


def _grow(admin: Admin, options: argparse.Namespace) -> None:
    """Cannot be undone, and moves keys: records of one key may end up in two partitions."""
    count = len(admin.topic(options.topic).partitions)
    admin.create_partitions(options.topic, options.partitions, validate_only=True)
    change = f"topic {styled(options.topic, 'bold')}: {count} -> {options.partitions} partitions"
    if options.dry_run:
        print(f"{change} (not done)")
        return
    confirm(
        f"{change}; new records of a key may go to another partition, and it cannot be undone. Go on?",
        yes=options.yes,
    )
    admin.create_partitions(options.topic, options.partitions)
    print(change)


def rm(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        topics = admin.topics(options.topics)
        counts = record_counts(admin, [topic.name for topic in topics])
        for topic in topics:
            print(
                f"topic {styled(topic.name, 'bold')}: {counted(len(topic.partitions), 'partition')}, "
                f"{counted(counts[topic.name], 'record')}"
            )
        if options.dry_run:
            return ExitCode.DONE
        what = "this topic" if len(topics) == 1 else f"these {len(topics)} topics"
        confirm(f"Delete {what} and everything in it?", yes=options.yes)
        outcomes = admin.delete_topics(topic.name for topic in topics)
    for name, problem in outcomes.items():
        if problem is None:
            print(f"{name} deleted")
    return _outcome([problem for problem in outcomes.values() if problem is not None])


def trim(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        partitions = _chosen(admin.partitions_of(options.topic), options.partition)
        first = admin.earliest_offsets(partitions)
        before = admin.resolve_offsets(partitions, options.before)
        doomed = {target: offset for target, offset in before.items() if offset > first[target]}
        if not doomed:
            print("nothing to delete: no record is before that")
            return ExitCode.DONE
        _show_doomed(first, doomed)
        if options.dry_run:
            return ExitCode.DONE
        count = sum(offset - first[target] for target, offset in doomed.items())
        confirm(f"Delete {counted(count, 'record')}?", yes=options.yes)
        admin.delete_records(doomed)
    print(f"{counted(count, 'record')} deleted")
    return ExitCode.DONE


def _chosen(partitions: Sequence[TopicPartition], wanted: Sequence[int] | None) -> list[TopicPartition]:
    from ottla.client.errors import UnknownPartition

    if wanted is None:
        return list(partitions)
    by_index = {target.partition: target for target in partitions}
    for index in wanted:
        if index not in by_index:
            raise UnknownPartition(partitions[0].topic, index, len(partitions))
    return [by_index[index] for index in wanted]


def _show_doomed(first: Mapping[TopicPartition, int], doomed: Mapping[TopicPartition, int]) -> None:
    for target, offset in sorted(doomed.items()):
        print(
            f"{target}: offsets {first[target]} to {offset - 1}, {counted(offset - first[target], 'record')}"
        )


def _outcome(problems: Sequence[ClientError]) -> int:
    """All are reported; the first one's code counts."""
    failures = [explained(problem) for problem in problems]
    for failure in failures:
        report(failure)
    return failures[0].exit_code if failures else ExitCode.DONE
