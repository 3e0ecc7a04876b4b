"""`ottla pipeline run|status|backfill`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import confirm
from ottla.cli.output import Row, print_done, print_json_lines, print_plan, print_rows, styled
from ottla.cli.pipeline_projects import (
    brokers_of,
    explained_problems,
    loaded,
    missing_topics,
    need_topics,
    session,
)
from ottla.cli.progress import Waiting

if TYPE_CHECKING:
    from ottla.pipeline.definition import Pipeline
    from ottla.pipeline.progress import Progress

_COLUMNS = ("sink", "state", "batch", "records", "records_per_second", "batch_ms", "lag", "failed")
_REDRAW_SECONDS = 0.5
_UP = "\r\x1b[{lines}A\x1b[J"  # the keys that somebody typed stand before the cursor
_UNWRAPPED, _WRAPPED = "\x1b[?7l", "\x1b[?7h"  # a line too long for the terminal is cut: it stays one line


def run(options: argparse.Namespace) -> int:
    from ottla.pipeline.run_lock import alone
    from ottla.pipeline.running import Run
    from ottla.pipeline.status_file import write_status

    with explained_problems():
        pipeline = loaded(options)
        access = brokers_of(options, pipeline)
        need_topics(missing_topics(pipeline, access))
        with alone(pipeline), session(options, pipeline) as spark:
            work = Run(pipeline, spark, access, once=options.once)
            view = _View(pipeline, options.output)
            with _told_to_stop(work.stop):
                with Waiting("the queries start") as waiting:
                    waiting.show()
                    work.start()
                failure = work.watch(view.show)
            state = "stopped" if failure is None else "failed"
            write_status(pipeline, work.progress(), state, None if failure is None else str(failure.text))
    if failure is not None:
        raise CommandFailed(
            f"{failure.sink} failed: {failure.text}",
            "nothing is lost: mend the cause and run it again, it goes on where it was",
        )
    view.finish()
    return ExitCode.DONE


@contextmanager
def _told_to_stop(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM are a wish, to be heard soon; whoever wishes it twice does not wait."""
    previous = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for each, handler in previous.items():
            signal.signal(each, handler)

    def handle(*_: object) -> None:
        restore()
        stop()

    for each in previous:
        signal.signal(each, handle)
    try:
        yield
    finally:
        restore()


class _View:
    """One table that is drawn anew on a terminal; elsewhere a line for each batch."""

    def __init__(self, pipeline: Pipeline, form: str) -> None:
        self._pipeline = pipeline
        self._form = form
        self._live = form == "table" and sys.stdout.isatty()
        self._lines = 0
        self._drawn = 0.0
        self._told: dict[str, int | None] = {}

    def show(self, progress: Sequence[Progress]) -> None:
        from ottla.pipeline.status_file import write_status

        now = time.monotonic()
        if now - self._drawn >= _REDRAW_SECONDS or not any(each.state != "stopped" for each in progress):
            self._drawn = now
            write_status(self._pipeline, progress, "running")
            if self._live:
                self._redraw(progress)
        if not self._live:
            self._tell(progress)

    def finish(self) -> None:
        if self._form == "table":
            print(styled(f"{self._pipeline.name} stopped", "dim"))

    def _redraw(self, progress: Sequence[Progress]) -> None:
        if self._lines:
            print(_UP.format(lines=self._lines), end="")
        print(_UNWRAPPED, end="")
        print_rows([_row(each) for each in progress], "table", _COLUMNS)
        print(_WRAPPED, end="")
        self._lines = len(progress) + 1
        sys.stdout.flush()

    def _tell(self, progress: Sequence[Progress]) -> None:
        for each in progress:
            if each.batch is not None and each.records and self._told.get(each.sink) != each.batch:
                self._told[each.sink] = each.batch
                if self._form == "table":
                    lag = "" if each.lag is None else f", lag {each.lag:,}"
                    read = f"{each.records:,} records read, {each.records_per_second:,.0f} records/s"
                    print(f"{each.sink}: batch {each.batch}, {read}, {each.batch_ms} ms{lag}")
                else:
                    print_json_lines([_row(each)])
                sys.stdout.flush()


def _row(progress: Progress) -> Row:
    return {**progress.as_dict(), "records_per_second": round(progress.records_per_second)}


def status(options: argparse.Namespace) -> int:
    from ottla.pipeline.status_file import read_status

    with explained_problems():
        pipeline = loaded(options)
    told = read_status(pipeline)
    if told is None:
        raise CommandFailed(
            f"{pipeline.name} never ran",
            f"`ottla pipeline run {options.folder}` starts it",
            ExitCode.NOT_FOUND,
        )
    if options.output == "table":
        seconds = time.time() - told["time"]
        since = "" if told["state"] in ("starting", "running") else f", {seconds:,.0f} s ago"
        print(
            f"{pipeline.name}: {told['state']}{since}" + (f": {told['failure']}" if told["failure"] else "")
        )
        print_rows(told["sinks"], "table", _COLUMNS)
    else:
        print_rows([{"state": told["state"], **sink} for sink in told["sinks"]], options.output)
    return ExitCode.DONE if told["state"] in ("starting", "running", "stopped") else ExitCode.FAILED


def backfill(options: argparse.Namespace) -> int:
    from ottla.pipeline import backfill as again

    with explained_problems():
        pipeline = loaded(options)
        access = brokers_of(options, pipeline)
        work = again.plan(pipeline, access, options.sink, options.start, options.stop, options.into)
        rows: list[Row] = [
            {"source": each.source, "topic": each.topic, "partition": each.partition,
             "from": each.start, "to": each.stop, "records": each.count}
            for each in work.ranges
        ]  # fmt: skip
        print_plan(rows, options.output)
        count = sum(each.count for each in work.ranges)
        sentence = f"{count} records into {work.target.kind} {options.into or options.sink}"
        if not options.dry_run:
            confirm(f"Process {sentence}?", yes=options.yes)
            with session(options, pipeline) as spark:
                if not again.run(pipeline, spark, access, work):
                    sentence += ": it was there already, made by the same steps"
    print_done(rows, options.output, sentence, done=not options.dry_run)
    return ExitCode.DONE
