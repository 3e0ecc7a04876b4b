"""`ottla txn`: transactional ids, their transactions, and those that hang."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ottla.cli.clusters import connected
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import add_cluster, add_confirmation, add_output, add_verb, add_verbs, confirm
from ottla.cli.output import Row, print_done, print_facts, print_plan, print_rows

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_values import PartitionTransaction

_COLUMNS = ("id", "state", "producer", "coordinator")
_HANGING_COLUMNS = ("topic", "partition", "first_offset", "producer", "epoch", "last_write")
_MINUTES_DEFAULT = 15  # transaction.max.timeout.ms of a broker as it comes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    ls = add_verb(verbs, "ls", _ls, "list transactional ids")
    ls.add_argument("--state", action="append", default=[], help="only in this state, such as Ongoing")
    show = add_verb(verbs, "show", _show, "show how a transactional id stands")
    show.add_argument("id", metavar="TRANSACTION", help="the transactional id")
    abort = add_verb(verbs, "abort", _abort, "fence the producer of an id and abort its open transaction")
    abort.add_argument("id", metavar="TRANSACTION", help="the transactional id")
    hanging = add_verb(verbs, "hanging", _hanging, "find open transactions that no coordinator will end")
    hanging.add_argument("topics", nargs="*", metavar="TOPIC", help="where to look (default: everywhere)")
    hanging.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES_DEFAULT,
        help=f"without a write for so long (default: {_MINUTES_DEFAULT})",
    )
    hanging.add_argument("--abort", action="store_true", help="write the abort markers that are missing")
    for verb in (ls, show, abort, hanging):
        add_cluster(verb)
        add_output(verb)
    for verb in (abort, hanging):
        add_confirmation(verb)


def _ls(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        rows: list[Row] = [
            {"id": each.id, "state": each.state, "producer": each.producer_id, "coordinator": each.broker_id}
            for each in sorted(admin.transactions(options.state), key=lambda each: each.id)
        ]
    print_rows(rows, options.output, _COLUMNS)
    return ExitCode.DONE


def _show(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        found = admin.transaction(options.id)
    facts: Row = {
        "id": found.id,
        "state": found.state,
        "producer": found.producer_id,
        "epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "started": None if found.started_ms is None else _time(found.started_ms),
        "partitions": [str(each) for each in found.partitions],
        "coordinator": found.coordinator_id,
    }
    print_facts(facts, options.output)
    return ExitCode.DONE


def _abort(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        found = admin.transaction(options.id)
        row: Row = {"id": found.id, "state": found.state, "partitions": len(found.partitions)}
        print_plan([row], options.output)
        if not options.dry_run:
            confirm(f"Fence the producer of {options.id} and abort what it has open?", yes=options.yes)
            admin.fence_producer(options.id)
    print_done([row], options.output, "producer fenced", done=not options.dry_run)
    return ExitCode.DONE


def _hanging(options: argparse.Namespace) -> int:
    if options.minutes < 0:
        raise CommandFailed(f"--minutes {options.minutes} lies in the future", exit_code=ExitCode.WRONG_USE)
    with connected(options) as admin:
        found = _find_hanging(admin, options.topics, options.minutes)
        rows: list[Row] = [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "first_offset": each.first_offset,
                "producer": each.producer_id,
                "epoch": each.producer_epoch,
                "last_write": _time(each.last_write_ms),
            }
            for each in found
        ]
        if not options.abort:
            print_rows(rows, options.output, _HANGING_COLUMNS)
            return ExitCode.DONE
        print_plan(rows, options.output)
        if found and not options.dry_run:
            confirm(f"Abort {len(found)} open transactions where they hang?", yes=options.yes)
            for each in found:
                admin.abort_open_transaction(each)
    print_done(rows, options.output, f"{len(rows)} aborted", done=not options.dry_run)
    return ExitCode.DONE


def _find_hanging(admin: Admin, topics: list[str], minutes: float) -> list[PartitionTransaction]:
    """Open in a partition, quiet for long, and not part of any transaction that a coordinator has open."""
    names = topics or admin.topic_names(internal=True)
    partitions = [partition for name in names for partition in admin.partitions_of(name)]
    quiet_since_ms = time.time() * 1000 - minutes * 60_000
    suspects = [each for each in admin.open_transactions(partitions) if each.last_write_ms <= quiet_since_ms]
    if not suspects:
        return []
    coordinated = {
        (found.producer_id, place)
        for listed in admin.transactions(["Ongoing", "PrepareCommit", "PrepareAbort"])
        for found in [admin.transaction(listed.id)]
        for place in found.partitions
    }
    return [each for each in suspects if (each.producer_id, each.partition) not in coordinated]


def _time(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))
