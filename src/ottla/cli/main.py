"""`ottla`: the entry point. Each command imports what it needs when it runs, so that `--help` is instant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

DEFAULT_DATA = Path("ottla-data")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.command == "up":
        from ottla.cli.up import up

        return up(options.data, options.port, options.config, options.set)
    from ottla.cli.doctor import doctor

    return doctor()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ottla", description="A message system in Python that any Kafka client can use unmodified."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="run a broker until Ctrl-C", description="Run a broker until Ctrl-C.")
    up.add_argument(
        "--data", type=Path, metavar="DIR", help=f"where everything is kept (default: ./{DEFAULT_DATA})"
    )
    up.add_argument("--port", type=int, metavar="N", help="listen on 127.0.0.1:N (default: 9092)")
    up.add_argument(
        "--config", type=Path, metavar="FILE", help="settings by Kafka's names, as in server.properties"
    )
    up.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one setting; may be given many times",
    )
    commands.add_parser(
        "doctor", help="say what this installation can do", description="Check the installation."
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
