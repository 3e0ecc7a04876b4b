"""`ottla topic`: its verbs and their options; the work is in `topic_views`, `topic_changes`, `consume`."""

from __future__ import annotations

import argparse

from ottla.cli.options import (
    Verbs,
    add_cluster,
    add_confirmation,
    add_output,
    add_verb,
    add_verbs,
    assignment,
    count,
    lazily,
)
from ottla.cli.reading_options import add_reading


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    _add_views(verbs)
    _add_tail(verbs)
    _add_create(verbs)
    _add_alter(verbs)
    _add_destruction(verbs)


def _add_views(verbs: Verbs) -> None:
    ls = add_verb(verbs, "ls", lazily("topic_views.ls"), "list topics")
    ls.add_argument("pattern", nargs="?", metavar="PATTERN", help="only names that match, as 'orders*'")
    ls.add_argument("-l", "--long", action="store_true", help="with records and sizes, which takes longer")
    ls.add_argument("--internal", action="store_true", help="also what brokers keep for themselves")
    show = add_verb(verbs, "show", lazily("topic_views.show"), "show partitions, offsets and settings")
    show.add_argument("topic", metavar="TOPIC")
    for each in (ls, show):
        add_cluster(each)
        add_output(each)


def _add_tail(verbs: Verbs) -> None:
    tail = add_verb(
        verbs,
        "tail",
        lazily("consume.tail"),
        "show the last records, then new ones",
    )
    tail.add_argument("topic", metavar="TOPIC")
    tail.add_argument(
        "-n", "--lines", type=count, default=10, metavar="N", help="of each partition at first (default: 10)"
    )
    tail.add_argument("--no-follow", action="store_true", help="only what is there now")
    add_reading(tail)


def _add_create(verbs: Verbs) -> None:
    create = add_verb(verbs, "create", lazily("topic_changes.create"), "create topics")
    create.add_argument("topics", nargs="+", metavar="NAME")
    create.add_argument("-p", "--partitions", type=int, default=-1, metavar="N")
    create.add_argument("-r", "--replication-factor", type=int, default=-1, metavar="N")
    create.add_argument(
        "-c", "--config", action="append", default=[], type=assignment, metavar="NAME=VALUE",
        help="a setting; may be repeated",
    )  # fmt: skip
    create.add_argument("--if-not-exists", action="store_true", help="leave alone what exists")
    create.add_argument("--dry-run", action="store_true", help="let the broker check it, and create nothing")
    add_cluster(create)
    add_output(create)


def _add_alter(verbs: Verbs) -> None:
    alter = add_verb(verbs, "alter", lazily("topic_changes.alter"), "add partitions, or change settings")
    alter.add_argument("topic", metavar="TOPIC")
    alter.add_argument("-p", "--partitions", type=int, metavar="N", help="how many there are to be in all")
    alter.add_argument(
        "-c", "--config", action="append", default=[], type=assignment, metavar="NAME=VALUE",
        help="a setting; may be repeated",
    )  # fmt: skip
    alter.add_argument(
        "--unset", action="append", default=[], metavar="SETTING", help="back to the default; may be repeated"
    )
    add_confirmation(alter)
    add_cluster(alter)
    add_output(alter)


def _add_destruction(verbs: Verbs) -> None:
    rm = add_verb(verbs, "rm", lazily("topic_changes.rm"), "delete topics and everything in them")
    rm.add_argument("topics", nargs="+", metavar="TOPIC")
    trim = add_verb(verbs, "trim", lazily("topic_changes.trim"), "delete the oldest records of a topic")
    trim.add_argument("topic", metavar="TOPIC")
    trim.add_argument(
        "--before", required=True, metavar="OFFSET", help="what goes: records before 100, -5, @-1h, end, …"
    )
    trim.add_argument("-p", "--partition", action="append", type=int, metavar="N", help="only these")
    for each in (rm, trim):
        add_confirmation(each)
        add_cluster(each)
        add_output(each)
