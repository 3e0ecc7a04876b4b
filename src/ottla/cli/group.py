"""`ottla group`: its verbs and their options; the work is in `group_views` and `group_changes`."""

from __future__ import annotations

import argparse

from ottla.cli import group_changes, group_views
from ottla.cli.options import Verbs, add_cluster, add_confirmation, add_output, add_verb, add_verbs, count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    _add_views(verbs)
    _add_changes(verbs)


def _add_views(verbs: Verbs) -> None:
    ls = add_verb(verbs, "ls", group_views.ls, "list groups")
    ls.add_argument("pattern", nargs="?", metavar="PATTERN", help="only names that match, as 'billing*'")
    ls.add_argument("-l", "--long", action="store_true", help="with members and lag, which takes longer")
    show = add_verb(verbs, "show", group_views.show, "show how far a group has read, and what is left")
    members = add_verb(
        verbs, "members", group_views.members, "show the members of a group and their partitions"
    )
    watch = add_verb(verbs, "watch", group_views.watch, "show a group's lag, again and again")
    watch.add_argument(
        "-n", "--interval", type=float, default=2, metavar="SECONDS", help="between looks (default: 2)"
    )
    watch.add_argument("--count", type=count, metavar="N", help="so many looks (default: until Ctrl-C)")
    for each in (show, members, watch):
        each.add_argument("group", metavar="GROUP")
    for each in (show, watch):
        each.add_argument(
            "--sort",
            choices=group_views.SORTS,
            default="partition",
            help="(default: partition); the most first",
        )
    for each in (ls, show, members, watch):
        add_cluster(each)
        add_output(each)


def _add_changes(verbs: Verbs) -> None:
    reset = add_verb(
        verbs, "reset", group_changes.reset, "move a group's offsets; without --yes it only shows how"
    )
    reset.add_argument("group", metavar="GROUP")
    where = reset.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--to", metavar="OFFSET", help="start, end, 100, -5 (from the end), @-1h, @2026-11-01T10:00"
    )
    where.add_argument("--shift", type=int, metavar="N", help="forward, or back when negative")
    where.add_argument("--file", metavar="PATH", help="as an undo file has them")
    reset.add_argument(
        "-t", "--topic", action="append", metavar="TOPIC",
        help="only these (default: all that the group has read); may be repeated",
    )  # fmt: skip
    reset.add_argument(
        "--undo-file", metavar="PATH", help="where the old offsets go (default: named by group and time)"
    )
    reset.add_argument("-y", "--yes", action="store_true", help="do it")
    rm = add_verb(verbs, "rm", group_changes.rm, "delete groups and their offsets")
    rm.add_argument("groups", nargs="+", metavar="GROUP")
    add_confirmation(rm)
    for each in (reset, rm):
        add_cluster(each)
        add_output(each)
