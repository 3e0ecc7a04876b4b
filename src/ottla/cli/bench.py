"""`ottla bench`: how fast a cluster is through this client; any Kafka broker, so that users can compare.

What is measured is broker, network and this client together. Each run makes a topic of its own and deletes
it, unless one is named.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from ottla.cli.bench_report import Result, print_result
from ottla.cli.bench_runs import run_consume, run_e2e, run_produce
from ottla.cli.clusters import access_of, connected
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import Verbs, add_cluster, add_output, add_verb, add_verbs
from ottla.cli.sizes import parse_bytes
from ottla.client.access import Access

Measure = Callable[[Access, str, argparse.Namespace], Result]
"""From the way to the cluster, topic and options."""

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_PLOTS = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    _add(verbs, "produce", run_produce, 200_000, "write records as fast as possible, or at a rate")
    _add(verbs, "consume", run_consume, 200_000, "read records as fast as possible")
    _add(verbs, "e2e", run_e2e, 1_000, "time records from sending to having them read, one by one")


def _add(verbs: Verbs, name: str, measure: Measure, records: int, summary: str) -> None:
    verb = add_verb(verbs, name, lambda options: _run(options, measure), summary)
    verb.add_argument(
        "-n", "--records", type=int, default=records, metavar="N", help=f"how many (default: {records:,})"
    )
    verb.add_argument(
        "-s", "--size", type=parse_bytes, default=100, metavar="SIZE", help="of a value (default: 100)"
    )
    verb.add_argument("--rate", type=float, metavar="N", help="records a second (default: no limit)")
    verb.add_argument("--acks", choices=("all", "1", "0"), default="all", help="default: all")
    verb.add_argument("-z", "--compression", choices=_CODECS, default="none")
    verb.add_argument("--topic", metavar="TOPIC", help="use and keep this one instead of a new one")
    verb.add_argument("-p", "--partitions", type=int, default=1, metavar="N", help="of the new topic")
    verb.add_argument(
        "-r", "--replication-factor", type=int, default=-1, metavar="N", help="of the new topic"
    )
    verb.add_argument("--plot", metavar="FILE.png", help="draw the result; needs `pip install 'ottla[plot]'`")
    add_cluster(verb)
    add_output(verb)


def _run(options: argparse.Namespace, measure: Measure) -> int:
    if options.records < 1:
        raise CommandFailed("nothing to measure", "--records must be 1 or more", ExitCode.WRONG_USE)
    if options.plot and find_spec("matplotlib") is None:
        raise CommandFailed(
            "--plot needs matplotlib", "`pip install 'ottla[plot]'` brings it", ExitCode.WRONG_USE
        )
    if options.plot and not (options.plot.endswith(_PLOTS) and Path(options.plot).parent.is_dir()):
        raise CommandFailed(
            f"--plot {options.plot}: cannot be drawn there",
            f"name a file of {', '.join(_PLOTS)} in a folder that is there",
            ExitCode.WRONG_USE,
        )
    with _topic(options) as topic:
        result = measure(access_of(options), topic, options)
    print_result(result, options.output)
    if options.plot:
        from ottla.cli.bench_plot import plot

        plot(result, options.plot)
    return ExitCode.DONE


@contextmanager
def _topic(options: argparse.Namespace) -> Iterator[str]:
    """The topic that was named, or a new one for as long as the run takes."""
    from uuid import uuid4

    with connected(options, beside_client=True) as admin:
        if options.topic is not None:
            yield admin.topic(options.topic).name
            return
        name = f"ottla-bench-{uuid4().hex[:8]}"
        admin.create_topic(name, partitions=options.partitions, replication_factor=options.replication_factor)
        try:
            yield name
        finally:
            admin.delete_topic(name)
