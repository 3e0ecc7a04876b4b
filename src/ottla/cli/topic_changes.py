"""Topics come, change and go. What destroys something shows it first and asks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.clusters import connected
from ottla.cli.failures import CommandFailed, ExitCode, explained, report
from ottla.cli.options import confirm
from ottla.cli.output import Row, print_done, print_plan, styled
from ottla.cli.sizes import counted
from ottla.cli.topic_views import led_partitions, record_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client import Admin, ClientError
    from ottla.model.topics import TopicPartition


def create(options: argparse.Namespace) -> int:
    from ottla.client.admin_values import CreatedTopic, NewTopic
    from ottla.client.errors import TopicExists

    configs = dict(options.config)
    new = [NewTopic(name, options.partitions, options.replication_factor, configs) for name in options.topics]
    rows: list[Row] = []
    problems: list[ClientError] = []
    with connected(options) as admin:
        for name, outcome in admin.create_topics(new, validate_only=options.dry_run).items():
            if isinstance(outcome, CreatedTopic):
                rows.append({"topic": name, "partitions": outcome.partitions, "outcome": "created"})
            elif isinstance(outcome, TopicExists) and options.if_not_exists:
                rows.append({"topic": name, "partitions": None, "outcome": "exists"})
            else:
                problems.append(outcome)
    if rows:
        sentences = [f"topic {styled(str(row['topic']), 'bold')} {row['outcome']}" for row in rows]
        print_done(rows, options.output, "\n".join(sentences), done=not options.dry_run)
    return _outcome(problems)


def alter(options: argparse.Namespace) -> int:
    changed = dict(options.config)
    if not (changed or options.unset or options.partitions is not None):
        raise CommandFailed("nothing to change", "give --partitions, --config or --unset", ExitCode.WRONG_USE)
    with connected(options) as admin:
        rows = _alterations(admin, options)
        print_plan(rows, options.output)
        if options.partitions is not None:
            _grow(admin, options)
        if changed or options.unset:
            admin.alter_topic_configs(
                options.topic, set=changed, delete=options.unset, validate_only=options.dry_run
            )
    print_done(rows, options.output, f"topic {options.topic} changed", done=not options.dry_run)
    return ExitCode.DONE


def _alterations(admin: Admin, options: argparse.Namespace) -> list[Row]:
    topic = admin.topic(options.topic)
    rows: list[Row] = []
    if options.partitions is not None:
        rows.append({"change": "partitions", "before": len(topic.partitions), "after": options.partitions})
    before = admin.topic_configs(topic.name)
    for name, value in [*options.config, *((name, "its default") for name in options.unset)]:
        rows.append(
            {"change": name, "before": before[name].value if name in before else None, "after": value}
        )
    return rows


def _grow(admin: Admin, options: argparse.Namespace) -> None:
    """Cannot be undone, and moves keys: records of one key may end up in two partitions."""
    admin.create_partitions(options.topic, options.partitions, validate_only=True)
    if not options.dry_run:
        confirm(
            "New records of a key may go to another partition, and partitions cannot be taken away. Go on?",
            yes=options.yes,
        )
        admin.create_partitions(options.topic, options.partitions)


def rm(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        topics = admin.topics(options.topics)
        counts = record_counts(admin, topics)
        rows: list[Row] = [
            {"topic": topic.name, "partitions": len(topic.partitions), "records": counts[topic.name]}
            for topic in topics
        ]
        print_plan(rows, options.output)
        outcomes: dict[str, ClientError | None] = {}
        if not options.dry_run:
            confirm(f"Delete {counted(len(rows), 'topic')} and everything in it?", yes=options.yes)
            outcomes = admin.delete_topics(topic.name for topic in topics)
    gone = [row for row in rows if outcomes.get(str(row["topic"])) is None]
    if gone:
        print_done(gone, options.output, f"{counted(len(gone), 'topic')} deleted", done=not options.dry_run)
    return _outcome([problem for problem in outcomes.values() if problem is not None])


def trim(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        topic = admin.topic(options.topic)
        partitions = _chosen(admin.partitions_of(topic.name), options.partition)
        offline = [str(target) for target in partitions if target not in led_partitions([topic])]
        if offline:
            raise CommandFailed(
                f"{', '.join(offline)}: offline",
                "`ottla status` says why; -p trims the others",
                ExitCode.FAILED,
            )
        first = admin.earliest_offsets(partitions)
        before = admin.resolve_offsets(partitions, options.before)
        doomed = {target: offset for target, offset in before.items() if offset > first[target]}
        rows: list[Row] = [
            {
                "topic": target.topic,
                "partition": target.partition,
                "from": first[target],
                "before": offset,
                "records": offset - first[target],
            }
            for target, offset in sorted(doomed.items())
        ]
        print_plan(rows, options.output)
        count = sum(offset - first[target] for target, offset in doomed.items())
        if doomed and not options.dry_run:
            confirm(f"Delete {counted(count, 'record')}?", yes=options.yes)
            admin.delete_records(doomed)
    print_done(rows, options.output, f"{counted(count, 'record')} deleted", done=not options.dry_run)
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


def _outcome(problems: Sequence[ClientError]) -> int:
    """All are reported; the first one's code counts."""
    failures = [explained(problem) for problem in problems]
    for failure in failures:
        report(failure)
    return failures[0].exit_code if failures else ExitCode.DONE
