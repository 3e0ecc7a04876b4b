"""`ottla pipeline`: its verbs and their options; the work is in `pipeline_views`, `pipeline_runs`."""

from __future__ import annotations

import argparse

from ottla.cli.options import (
    Verbs,
    add_cluster,
    add_confirmation,
    add_output,
    add_verb,
    add_verbs,
    count,
    lazily,
)

_TEMPLATES = ("orders", "clicks", "cdc", "payments")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    _add_beginning(verbs)
    _add_looking(verbs)
    _add_running(verbs)
    _add_again(verbs)


def _add_beginning(verbs: Verbs) -> None:
    new = add_verb(verbs, "new", lazily("pipeline_views.new"), "begin a pipeline from a template")
    new.add_argument("folder", metavar="FOLDER")
    new.add_argument("-t", "--template", choices=_TEMPLATES, default="orders", help="(default: orders)")
    add_output(new)
    infer = add_verb(verbs, "infer", lazily("pipeline_views.infer"), "guess a source's schema, and write it")
    _add_folder(infer)
    infer.add_argument("source", metavar="SOURCE")
    infer.add_argument(
        "-n", "--records", type=count, default=1000, metavar="N", help="to look at, per partition"
    )
    infer.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    _add_spark(infer)


def _add_looking(verbs: Verbs) -> None:
    check = add_verb(
        verbs,
        "check",
        lazily("pipeline_views.check"),
        "find mistakes: files, names, columns, topics; runs nothing",
    )
    preview = add_verb(
        verbs, "preview", lazily("pipeline_views.preview"), "show what each step makes of the last records"
    )
    test = add_verb(verbs, "test", lazily("pipeline_views.test"), "run the examples in tests/")
    graph = add_verb(verbs, "graph", lazily("pipeline_views.graph"), "draw the pipeline")
    for verb in (check, preview, test, graph):
        _add_folder(verb)
    check.add_argument("--offline", action="store_true", help="without asking a broker for topics")
    preview.add_argument("-n", "--rows", type=count, default=5, metavar="N", help="of each step (default: 5)")
    preview.add_argument(
        "--records", type=count, default=100, metavar="N", help="to read of each partition (default: 100)"
    )
    graph.add_argument(
        "file", nargs="?", metavar="FILE", help="PNG or SVG (default: Mermaid text on the terminal)"
    )
    add_output(graph)
    for verb in (check, preview, test):
        _add_spark(verb)


def _add_running(verbs: Verbs) -> None:
    run = add_verb(verbs, "run", lazily("pipeline_runs.run"), "run it until Ctrl-C, or once")
    status = add_verb(verbs, "status", lazily("pipeline_runs.status"), "tell how its last run does or did")
    for verb in (run, status):
        _add_folder(verb)
    run.add_argument("--once", action="store_true", help="what is there now, then stop")
    _add_spark(run)
    add_output(status)


def _add_again(verbs: Verbs) -> None:
    backfill = add_verb(
        verbs, "backfill", lazily("pipeline_runs.backfill"), "process a range of the topics once more"
    )
    _add_folder(backfill)
    backfill.add_argument("--sink", required=True, metavar="SINK")
    backfill.add_argument(
        "--from", dest="start", default="start", metavar="PLACE", help="start, 100, @-1h, …"
    )
    backfill.add_argument("--to", dest="stop", default="end", metavar="PLACE", help="exclusive")
    backfill.add_argument("--into", metavar="NAME", help="another topic, folder or table than the sink's")
    add_confirmation(backfill)
    _add_spark(backfill)
    dlq = add_verb(verbs, "dlq", lazily("pipeline_letters.ls"), "dead letters: list, show, replay")
    actions = dlq.add_subparsers(dest="action", required=True, metavar="ACTION", title="actions")
    ls = add_verb(actions, "ls", lazily("pipeline_letters.ls"), "count them by reason")
    show = add_verb(actions, "show", lazily("pipeline_letters.show"), "show them, with the bytes that came")
    replay = add_verb(
        actions, "replay", lazily("pipeline_letters.replay"), "send back those that were not sent back yet"
    )
    for verb in (ls, show, replay):
        _add_folder(verb)
        add_cluster(verb)
        add_output(verb)
    show.add_argument("-n", type=count, metavar="N", help="the last N (default: 10 in a table, else all)")
    replay.add_argument(
        "--mended", metavar="FILE", help="lines of `dlq show -o jsonl` whose `value` was changed"
    )
    add_confirmation(replay)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="FOLDER", help="with pipeline.toml (default: .)"
    )


def _add_spark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--master", metavar="ADDRESS", help="local[2], spark://HOST:PORT, sc://HOST:PORT (default: local[*])"
    )
    add_cluster(parser)
    add_output(parser)
