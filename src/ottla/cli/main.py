"""`ottla`: finds the command, has its module parse and run, reports what went wrong in words.

Only the module of the command that is used gets imported, so that `--help` and completion are instant.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from ottla import __version__
from ottla.cli.commands import COMMANDS
from ottla.cli.failures import CommandFailed, ExitCode, explained, report
from ottla.cli.options import Parser, add_debug, debug_is_on

COMPLETE = "__complete"  # what the shells' completion calls; not for people
_EPILOG = "`ottla COMMAND --help` explains a command. Exit codes: " + ", ".join(
    f"{code.value} {code.meaning}" for code in ExitCode
)


def main(arguments: Sequence[str] | None = None, given: Mapping[str, object] = {}) -> int:
    """`given`: what a command may be given that no command line can say; only by who starts it in Python."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if arguments[:1] == [COMPLETE]:
            return _complete(arguments[1:])
        options = _understand(arguments, given)
        status: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _output_closed()
    except Exception as error:
        if debug_is_on(arguments):
            raise
        failure = error if isinstance(error, CommandFailed) else explained(error)
        report(failure)
        return failure.exit_code
    return status


def _understand(arguments: Sequence[str], given: Mapping[str, object]) -> argparse.Namespace:
    was_collecting = gc.isenabled()
    gc.disable()  # what gets imported stays, and looking at it again and again takes its time
    try:
        options: argparse.Namespace = parser_for(arguments).parse_args(arguments, argparse.Namespace(**given))
        return options
    finally:
        if was_collecting:
            gc.enable()


def parser_for(arguments: Sequence[str], *, whole: bool = False) -> Parser:
    """Knows the options of the command that is used; the others too, by name, where they may be asked for."""
    parser = Parser(
        prog="ottla",
        description="A message system in Python that any Kafka client can use unmodified.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"ottla {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    used = next((argument for argument in arguments if not argument.startswith("-")), None)
    alone = [each for each in COMMANDS if [each.name] == arguments[:1] and not whole]
    for name, summary, module in alone or COMMANDS:
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", add_help=name == used
        )
        if name == used:
            add_debug(command)
            import_module(f"ottla.cli.{module}").add_arguments(command)
    return parser


def _complete(words: Sequence[str]) -> int:
    from ottla.cli.completing import print_completions

    print_completions(words, parser_for(words, whole=True))
    return ExitCode.DONE


def _output_closed() -> int:
    """The reader of our output has seen enough, as `head` does; Python must not try to flush once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.OUTPUT_CLOSED


if __name__ == "__main__":
    sys.exit(main())
